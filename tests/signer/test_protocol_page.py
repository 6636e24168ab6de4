"""docs/protocol.md and its list of messages against the code, and spoken byte by byte with a running signer."""

import typing
from pathlib import Path
from typing import Any

from custody.protocol.failures import Kind
from custody.protocol.frames import MAX_FRAME, VERSION
from custody.worker import agent_queues, peers
from signer import secrets
from tests.acts.table import BY_COMMAND, NOTHING
from tests.fixtures.commands import COMMANDS
from tests.fixtures.each import each
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import SOCKETS, connect, greet

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "protocol.md").read_text()
KINDS = ("agent", "tenant_key", "platform_key", "session", "app_client")
ORIGIN = {"request_id": "test"}


def table(heading: str, page: str = PAGE) -> dict[str, list[str]]:
    """The first table of a section: its first column gives the names."""
    section = page.split(f"\n### {heading}\n", 1)[1].split("\n##", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {first.strip("`"): rest for first, *rest in cells}


def test_the_page_lists_every_kind_of_proof() -> None:
    assert set(table("3. Requests and replies")) == set(KINDS)


def test_the_page_lists_every_kind_of_failure() -> None:
    assert set(table("6. Failures")) == set(typing.get_args(Kind))


def test_the_page_states_the_limits_of_the_code() -> None:
    limits = {name: int(row[0]) for name, row in table("7. Limits").items()}
    assert limits["protocol version"] == VERSION
    assert limits["bytes in a frame"] == MAX_FRAME
    assert limits["orders of one agent that may wait, beside the one at work"] == agent_queues.MAX_WAITING
    assert limits["bytes in the value of a secret"] == secrets.MAX_VALUE_BYTES


def test_a_status_is_answered_as_the_page_says(service: Service) -> None:
    with greet(service) as wire:
        answer = wire.ask("Status")
    assert answer["type"] == "Done"
    assert set(answer["data"]) == {
        "version",
        "counters",
        "waiting",
        "stopped_logs",
        "room",
        "commits",
        "history",
        "prices",
    }


def test_the_page_says_which_process_speaks_on_which_socket() -> None:
    spoken = {process: row[0].strip("`").removesuffix(".sock") for process, row in table("2. Hello").items()}
    assert spoken == SOCKETS
    sockets = {"sign": peers.SIGN_SOCKET, "reveal": peers.REVEAL_SOCKET}
    assert {process: name for name, processes in sockets.items() for process in processes} == spoken


@each(
    ("name", "hello"),
    [
        ("sign", {"version": VERSION + 1, "process": "api"}),
        ("sign", {"version": VERSION, "process": "proxy"}),
        ("sign", {"version": VERSION, "process": "api", "extra": 1}),
        ("sign", {}),
        *(
            ("reveal", {"version": VERSION, "process": process})
            for process in ("api", "scheduler", "operator", "signer")
        ),
        ("reveal", {"version": VERSION + 1, "process": "proxy"}),
        ("identity", {"version": VERSION, "process": "proxy"}),
        ("identity", {"version": VERSION, "process": "signer"}),
    ],
)
def test_a_hello_that_is_not_known_is_not_answered(service: Service, name: str, hello: dict[str, Any]) -> None:
    with connect(service, name) as wire:
        wire.say(hello)
        assert wire.hear() is None


def test_a_request_before_the_hello_is_not_answered(service: Service) -> None:
    with connect(service) as wire:
        wire.say(
            {"v": VERSION, "n": 7, "deadline_ms": 5000, "origin": {"request_id": "test"}, "body": {"type": "Status"}}
        )
        assert wire.hear() is None


@each(
    "change",
    [
        {"extra": 1},
        {"body": {"type": "Status", "extra": 1}},
        {"body": {"type": "SignHash"}},
        {"n": "7"},
        {"origin": {}},
    ],
)
def test_a_request_that_does_not_decode_ends_the_connection(service: Service, change: dict[str, Any]) -> None:
    request = {"v": VERSION, "n": 7, "deadline_ms": 5000, "origin": {"request_id": "test"}, "body": {"type": "Status"}}
    with greet(service) as wire:
        wire.say(request | change)
        assert wire.hear() is None


@each("length", [0, MAX_FRAME + 1, 2**32 - 1])
def test_a_frame_outside_the_limits_ends_the_connection(service: Service, length: int) -> None:
    with greet(service) as wire:
        wire.say_bytes(b"", length=length)
        assert wire.hear() is None


# The proxy has no connection to identity.
@each(
    ("name", "process"),
    [
        (name, process)
        for process in SOCKETS
        for name, (_, declared) in COMMANDS.items()
        if process != "proxy" or "signer" in declared.workers
    ],
)
def test_a_process_may_send_what_is_declared_for_it_and_nothing_else(service: Service, process: str, name: str) -> None:
    declared = COMMANDS[name][1]
    with greet(service, process) as wire:
        if process == "proxy" and "signer" not in declared.workers:
            # It is no peer of identity, and the signer does not even decode what is not its own.
            wire.say(
                {"v": VERSION, "n": 7, "deadline_ms": 5000, "origin": {"request_id": "test"}, "body": {"type": name}}
            )
            assert wire.hear() is None
            return
        answer = wire.ask(name, NOTHING[name])
    assert (answer.get("code") != "message_not_allowed") == (process in BY_COMMAND[name].senders.split())


@each("kind", KINDS)
@each("name", [name for name, (_, declared) in COMMANDS.items() if declared.proofs])
def test_a_message_takes_the_proofs_that_are_declared_and_only_good_ones(
    service: Service, name: str, kind: str
) -> None:
    declared = COMMANDS[name][1]
    with greet(service, next(iter(declared.senders))) as wire:
        without = wire.ask(name, NOTHING[name])
        answer = wire.ask(name, NOTHING[name], {"kind": kind, "value": "not a credential of anybody"})

    assert (without["type"], without["kind"]) == ("Failed", "BadProof")
    assert answer["kind"] == ("BadProof" if kind in declared.proofs else "Forbidden")

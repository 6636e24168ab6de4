"""`custody events`: what happens in the tenant, each once and in order, whatever breaks off meanwhile."""

import asyncio
from pathlib import Path

import pytest

from custody.webhooks.names import SUBSCRIBABLE
from tenant_command.event_names import EVENTS
from tests.fixtures.callers import Agent, Tenant
from tests.fixtures.eventually import eventually, soon
from tests.fixtures.people import Person
from tests.fixtures.server import Service, free_ports
from tests.fixtures.tenant_commands import Desk
from tests.outside import odd_api
from tests.outside.odd_api import OddApi, refuses, streams
from tests.outside.terminal import terminal
from tests.routes.webhooks.receivers import running_receiver
from tests.tenant_command.running import Running, running

FOLLOW = ("events", "-f", "--json")
# A stream that is there, and its place.
OPEN = b": open\nid: 5\n\n"


def is_listening(command: Running) -> bool:
    """Tell whether it would miss nothing from now on."""
    return any(line.startswith("Listening to ") for line in list(command.complained))


def frame(number: int, name: str = "tx.signed") -> bytes:
    """An event as the service sends it."""
    data = f'{{"id": "e{number}", "event": "{name}", "agentId": "buyer", "data": {{"txId": "t{number}"}}}}'
    return f"id: {number}\nevent: {name}\ndata: {data}\n\n".encode()


def test_the_names_of_events_are_those_of_the_service() -> None:
    assert EVENTS == SUBSCRIBABLE


def test_a_line_is_what_a_webhook_is_sent_and_the_events_number(
    owner_desk: Desk, as_owner: Person, agent: Agent
) -> None:
    with running_receiver() as receiver, running(owner_desk, *FOLLOW) as command:
        as_owner.ok("POST", "/webhooks", {"url": receiver.url("/200/in")})
        eventually(lambda: is_listening(command), about=lambda: str(command))
        agent.sign()
        eventually(lambda: len(command.said), 1)
        [received] = eventually(lambda: receiver.at("/200/in"), len)
        ended = command.stop()

    [event] = command.json
    number = event.pop("number")
    assert event == received.envelope
    assert number.isdecimal()
    assert ended == 130
    assert not any("Traceback" in line for line in command.complained)


def test_events_after_a_number_are_printed_once_and_that_is_all(desk: Desk, agent: Agent) -> None:
    with running(desk, *FOLLOW) as command:
        eventually(lambda: is_listening(command), about=lambda: str(command))
        for _ in range(3):
            agent.sign()
        eventually(lambda: len(command.said), 3)
    first, second, third = command.json
    after = desk.run("events", "--since", first["number"])
    others = desk.run("events", "--since", first["number"], "--events", "tx.failed")
    last = desk.run("events", "--since", third["number"])

    cells = [line.split("\t") for line in after.said.splitlines()]
    assert cells == [
        [one["number"], one["timestamp"], "tx.signed", agent.id, one["data"]["txId"]] for one in (second, third)
    ]
    assert (after.status, others.said, last.said, last.status) == (0, "", "", 0)


def test_a_service_that_is_killed_in_between_costs_no_event(desk: Desk, agent: Agent, service: Service) -> None:
    with running(desk, *FOLLOW) as command:
        eventually(lambda: is_listening(command), about=lambda: str(command))
        agent.sign()
        eventually(lambda: len(command.said), 1)
        service.kill("api")
        service.start("api")
        orders = [agent.sign().json()["data"]["txId"] for _ in range(2)]
        eventually(lambda: len(command.said), 3, about=lambda: str(command))
        assert command.stop() == 130

    assert [event["data"]["txId"] for event in command.json[1:]] == orders


async def test_a_stream_that_breaks_off_is_taken_up_after_the_last_whole_event(odd_desk: Desk, odd: OddApi) -> None:
    half = frame(7)[:-9]
    odd.does(streams(OPEN, frame(6), half, then=odd_api.hangs_up), "/events")
    with running(odd_desk, *FOLLOW, "--since", "5") as command:
        await soon(lambda: len(command.said), 1)
        odd.does(streams(frame(7)), "/events")
        await soon(lambda: len(command.said), 2)

        assert [event["number"] for event in command.json] == ["6", "7"]
        last_ids = [request.headers["last-event-id"] for request in odd.at("/events")]
        assert (last_ids[0], {*last_ids[1:]}) == ("5", {"6"})


@pytest.mark.parametrize(
    "trouble",
    [
        refuses(503, "Not now", "database_full"),
        refuses(429, "Too many streams", "too_many_streams", retry_after="1"),
        odd_api.answers(502, b"<h1>Bad gateway</h1>"),
        odd_api.hangs_up,
        streams(b"data: " + b"x" * 2**21),
    ],
    ids=["busy", "too many", "gateway", "hung up", "endless event"],
)
async def test_trouble_that_passes_is_waited_for_and_told_once(
    odd_desk: Desk, odd: OddApi, trouble: odd_api.Deed
) -> None:
    odd.does(streams(OPEN, frame(6), then=odd_api.hangs_up), "/events")
    with running(odd_desk, *FOLLOW) as command:
        await soon(lambda: len(command.said), 1)
        odd.does(trouble, "/events")
        before = len(odd.at("/events"))
        await soon(lambda: len(odd.at("/events")) >= before + 2)
        odd.does(streams(frame(7)), "/events")
        await soon(lambda: len(command.said), 2)

        assert sum("Connecting again" in line for line in command.complained) >= 1
        assert [event["number"] for event in command.json] == ["6", "7"]


async def test_trouble_that_does_not_pass_ends_it(odd_desk: Desk, odd: OddApi) -> None:
    odd.does(streams(OPEN, frame(6), then=odd_api.hangs_up), "/events")
    with running(odd_desk, *FOLLOW) as command:
        await soon(lambda: len(command.said), 1)
        odd.does(refuses(401, "The key is not known.", "unauthenticated"), "/events")

        assert await asyncio.to_thread(command.ends) == 3
    assert "unauthenticated" in command.complained[-1]


async def test_a_first_try_that_fails_is_the_last(odd_desk: Desk, odd: OddApi) -> None:
    odd.does(refuses(429, "Too many streams", "too_many_streams", retry_after="1"), "/events")
    refused = await asyncio.to_thread(odd_desk.run, *FOLLOW)
    [nobodys] = free_ports(1)
    odd_desk.environment["SERVICE_URL"] = f"http://127.0.0.1:{nobodys}"
    away = await asyncio.to_thread(odd_desk.run, *FOLLOW)

    assert (refused.status, refused.failure["code"]) == (1, "too_many_streams")
    assert (away.status, away.failure["code"]) == (4, "away")


async def test_a_gap_is_told(odd_desk: Desk, odd: OddApi) -> None:
    odd.does(streams(b": open\n\nid: 9\nevent: reset\ndata: {}\n\n", frame(10), then=odd_api.hangs_up), "/events")
    ended = await asyncio.to_thread(odd_desk.run, "events", "--since", "5", "--json")
    with running(odd_desk, *FOLLOW, "--since", "5") as command:
        await soon(lambda: len(command.said) >= 2)

        assert [(one["number"], one["event"]) for one in command.json[:2]] == [("9", "reset"), ("10", "tx.signed")]
        assert any("not kept any more" in line for line in command.complained)
    assert (ended.status, ended.said, ended.failure["code"]) == (1, "", "event_forgotten")


def test_a_number_that_is_not_kept_says_so(desk: Desk, agent: Agent) -> None:
    agent.sign()
    ended = desk.run("events", "--since", "0", "--json")

    assert (ended.status, ended.failure["code"]) == (1, "event_forgotten")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "say -f for what happens from now on, or --since NUMBER"),
        (("--since", "yesterday"), "it is no number of an event"),
        (("--since", "9" * 19), "it is no number of an event"),
    ],
)
def test_words_that_ask_for_nothing_are_refused(desk: Desk, words: tuple[str, ...], complaint: str) -> None:
    ended = desk.run("events", *words)

    assert (ended.status, ended.said) == (2, "")
    assert complaint in " ".join(ended.complained.split())


def test_an_event_that_is_none_is_remarked_upon(desk: Desk, tenant: Tenant, agent: Agent) -> None:
    with running(desk, "events", "-f", "--events", "tx.singed,tx.signed") as command:
        eventually(lambda: is_listening(command), about=lambda: str(command))

        assert command.complained[0].startswith("This command knows no event tx.singed. ")
        assert len(command.complained) == 2


async def test_lines_of_a_terminal_are_in_columns_and_harmless(odd_desk: Desk, odd: OddApi, tmp_path: Path) -> None:
    hostile = frame(7).replace(b"buyer", b"\\u001b[2Jbuyer")
    odd.does(streams(OPEN, frame(6), hostile), "/events")

    def look() -> str:
        command = odd_desk.command("events", "-f")
        with terminal(list(command), tmp_path, odd_desk.environment) as window:
            window.sees("tx.signed", "buyer", "t6", "\\x1b[2Jbuyer", "t7")
            text = window.text
            window.press("C-c")
            assert window.wait_for_end() == 130
            return text

    lines = [line for line in (await asyncio.to_thread(look)).splitlines() if "tx.signed" in line]
    assert [line.index("tx.signed") for line in lines] == [36, 36]

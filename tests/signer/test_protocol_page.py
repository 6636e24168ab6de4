"""docs/protocol-signer.md and its list of messages against the code, and spoken byte by byte with a running signer."""

import re
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from custody.identity.roles import ADMINS, ANYBODY, BUILDERS, READERS
from custody.protocol import messages
from signer import peers, secrets, turns
from signer.table import TABLE
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import SOCKETS, connected, greeted

ANY_UUID = "00000000-0000-4000-8000-000000000000"

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "protocol-signer.md").read_text()
LIST = (DOCS / "protocol-messages.md").read_text()
KINDS = ("agent", "tenant_key", "platform_key", "session", "app_client")
ROLES = {"any": ANYBODY, "reader": READERS, "builder": BUILDERS, "admin": ADMINS}
# The smallest body of each message that decodes.
SAMPLES: dict[str, dict[str, Any]] = {
    "CreateTenant": {"id": "t", "name": "T"},
    "DeleteTenant": {"id": "t"},
    "PutConfig": {"document": "{}", "judging": {}},
    "CreateAgents": {"agents": []},
    "DeleteAgent": {"agent": "a"},
    "ReplacePolicies": {"agent": "a", "policies": []},
    "MintAgentToken": {"agent": "a", "ttl_seconds": 1, "expires_in": "1s"},
    "RevokeAgentTokens": {"agent": "a"},
    "SignEvm": {
        "agent": "a",
        "tx_id": ANY_UUID,
        "order": {"to": "0x" + "11" * 20, "value": "1"},
    },
    "SignTypedData": {
        "agent": "a",
        "tx_id": ANY_UUID,
        "order": {"domain": {}, "types": {}, "primaryType": "T", "value": {}},
    },
    "SignSolana": {
        "agent": "a",
        "tx_id": ANY_UUID,
        "order": {"transaction": "AAAA", "to": "1" * 32, "value": "1"},
    },
    "ReplaceEvm": {"agent": "a", "tx_id": ANY_UUID, "replaces": ANY_UUID},
    "Simulate": {"agent": "a", "question": {"kind": "evm", "request": {"to": "0x" + "11" * 20, "value": "1"}}},
    "IssueReceipt": {"agent": "a", "tx_id": ANY_UUID},
    "Approve": {},
    "Deny": {},
    "CreateSecret": {"name": "n", "value": "v"},
    "RotateSecret": {"secret": ANY_UUID, "value": "v", "rotate": True},
    "DeleteSecret": {"secret": ANY_UUID},
    "CreateCredentialRoute": {
        "secret": ANY_UUID,
        "fields": {"hostPattern": "api.example.com", "injectAs": "header", "injectKey": "x-key"},
    },
    "ChangeCredentialRoute": {"route": ANY_UUID, "changes": {}},
    "DeleteCredentialRoute": {"route": ANY_UUID},
    "RevealForRoute": {"route": ANY_UUID},
    "NewNonce": {},
    "SignInWithWallet": {"message": "m", "signature": "0x00"},
    "NewEmailCode": {"email": "a@example.com"},
    "SignInWithEmail": {"email": "a@example.com", "code": "000000"},
    "NewSignInChallenge": {},
    "SignInWithPasskey": {"credential": {}},
    "RefreshSession": {"refresh_token": "rt_"},
    "NewDeviceCode": {"tenant": "nobody"},
    "PollDeviceCode": {"device_code": "dc"},
    "EndSession": {},
    "SwitchTenant": {"tenant": "t"},
    "LookAtDevice": {"user_code": "AAAA-AAAA"},
    "DecideDevice": {"user_code": "AAAA-AAAA", "approve": False},
    "EnrolTotp": {},
    "ConfirmTotp": {"code": "000000"},
    "RemoveTotp": {},
    "NewRecoveryCodes": {},
    "EnrolSms": {"phone": "+41790000000"},
    "ConfirmSms": {"code": "000000"},
    "NewSmsCode": {},
    "NewPasskeyChallenge": {"purpose": "register"},
    "RegisterPasskey": {"credential": {}},
    "RemovePasskey": {"passkey": ANY_UUID},
    "StepUp": {"method": "totp", "code": "000000"},
    "PutMember": {"tenant": "t", "user": ANY_UUID, "role": "viewer"},
    "RemoveMember": {"tenant": "t", "user": ANY_UUID},
    "PutAppClients": {"clients": [], "mode": "upsert"},
    "DeleteAppClient": {"client": "web"},
    "NewAppSecret": {"client": "web"},
    "RevokeAppSecret": {"client": "web", "secret": ANY_UUID},
    "NewSigningKey": {},
    "RevokeSigningKey": {"key": ANY_UUID},
    "Freeze": {},
    "Unfreeze": {},
    "CheckRequestSignature": {
        "method": "POST",
        "path": "/agents",
        "timestamp": None,
        "expires_at": None,
        "idempotency_key": "12345678",
        "body_sha256": "0" * 64,
        "signature": "v1=" + "0" * 64,
    },
    "CreatePlatformKey": {"name": "n", "scopes": ["platform:tenant:read"]},
    "RevokePlatformKey": {"key": ANY_UUID},
    "ListPlatformKeys": {},
    "RotateKeys": {"act": "status"},
    "AcceptRestore": {},
    "CreateWebhook": {"url": "https://example.com/hook"},
    "ChangeWebhook": {"webhook": ANY_UUID},
    "DeleteWebhook": {"webhook": ANY_UUID},
    "SendWebhookTest": {"webhook": ANY_UUID},
    "RetryDelivery": {"delivery": ANY_UUID},
    "ReplayDelivery": {"delivery": ANY_UUID},
    "SignDelivery": {"tenant": "t", "endpoint": ANY_UUID, "delivery": ANY_UUID, "timestamp": 1, "body": b"{}"},
    "PublicKeys": {},
    "Status": {},
    "Expire": {"tenant": "t", "approval": ANY_UUID},
    "SealCheckpoint": {},
    "BroadcastOutcome": {"tenant": "t", "tx_id": ANY_UUID, "outcome": "sent"},
    "ChainOutcome": {"tenant": "t", "tx_id": ANY_UUID, "outcome": "sent"},
}


def table(heading: str, page: str = PAGE) -> dict[str, list[str]]:
    """The first table of a section: its first column gives the names."""
    section = page.split(f" {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {first.strip("`"): rest for first, *rest in cells}


# Of each message: fields, proofs, processes, what a session needs, answer.
MESSAGES = {
    name: row for heading in re.findall(r"^## (.+)$", LIST, re.MULTILINE) for name, row in table(heading, LIST).items()
}


def fields_of(kind: type[msgspec.Struct]) -> list[str]:
    return [field.name + ("" if field.required else "?") for field in msgspec.structs.fields(kind)]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_page_lists_every_message_with_its_fields() -> None:
    bodies = typing.get_args(messages.Body)
    assert {name: named(row[0]) for name, row in MESSAGES.items()} == {b.__name__: fields_of(b) for b in bodies}


def test_the_page_lists_who_may_send_what() -> None:
    for process, allowed in (peers.SIGN_SOCKET | peers.REVEAL_SOCKET).items():
        listed = {name for name, row in MESSAGES.items() if process in row[2].split(", ")}
        assert listed == {body.__name__ for body in allowed}, process


def proofs_of(name: str) -> set[str]:
    return set(MESSAGES[name][1].split(", ")) - {"none"}


def test_the_page_lists_every_kind_of_proof() -> None:
    assert set(table("3. Requests and replies")) == set(KINDS)


def test_the_page_lists_the_proofs_that_a_message_takes() -> None:
    # What the server answers by itself has no row there; only one of these takes a proof.
    taken = {kind.__name__: set(row.by) for kind, row in TABLE.items()} | {"RevealForRoute": {"agent"}}
    assert {name: proofs for name in MESSAGES if (proofs := proofs_of(name))} == {
        name: proofs for name, proofs in taken.items() if proofs
    }


@pytest.mark.parametrize("kind", [kind for kind, row in TABLE.items() if "session" in row.by])
def test_the_page_says_what_a_session_needs(kind: type) -> None:
    roles, _, action = MESSAGES[kind.__name__][3].partition(", ")
    assert (ROLES[roles], action or None) == (TABLE[kind].roles, TABLE[kind].action)


def test_the_page_says_nothing_of_sessions_where_none_is_taken() -> None:
    assert {name for name, row in MESSAGES.items() if row[3]} == {n for n in MESSAGES if "session" in proofs_of(n)}


def test_the_page_lists_every_answer_with_its_fields() -> None:
    outcomes = typing.get_args(messages.Outcome)
    listed = {name: named(row[0]) for name, row in table("5. Answers").items()}
    assert listed == {outcome.__name__: fields_of(outcome) for outcome in outcomes}


def test_the_page_lists_every_kind_of_failure() -> None:
    kinds = typing.get_args(messages.Failed.__annotations__["kind"])
    assert set(table("6. Failures")) == set(kinds)


def test_the_page_states_the_limits_of_the_code() -> None:
    limits = {name: int(row[0]) for name, row in table("7. Limits").items()}
    assert limits["protocol version"] == messages.VERSION
    assert limits["bytes in a frame"] == messages.MAX_FRAME
    assert limits["orders of one agent that may wait, beside the one at work"] == turns.MAX_WAITING
    assert limits["bytes in the value of a secret"] == secrets.MAX_VALUE_BYTES


def test_a_status_is_answered_as_the_page_says(service: Service) -> None:
    with greeted(service) as wire:
        answer = wire.ask("Status")
    assert answer["type"] == "Done"
    assert set(answer["data"]) == {"version", "counters", "waiting", "stopped_logs"}


def test_the_page_says_which_process_speaks_on_which_socket() -> None:
    spoken = {process: row[0].strip("`").removesuffix(".sock") for process, row in table("2. Hello").items()}
    assert spoken == SOCKETS
    tables = {"sign": peers.SIGN_SOCKET, "reveal": peers.REVEAL_SOCKET}
    assert {process: name for name, peer in tables.items() for process in peer} == spoken


@pytest.mark.parametrize(
    ("name", "hello"),
    [
        ("sign", {"version": 2, "process": "api"}),
        ("sign", {"version": 1, "process": "proxy"}),
        ("sign", {"version": 1, "process": "api", "extra": 1}),
        ("sign", {}),
        *(("reveal", {"version": 1, "process": process}) for process in ("api", "scheduler", "operator", "signer")),
        ("reveal", {"version": 2, "process": "proxy"}),
    ],
)
def test_a_hello_that_is_not_known_is_not_answered(service: Service, name: str, hello: dict[str, Any]) -> None:
    with connected(service, name) as wire:
        wire.say(hello)
        assert wire.hear() is None


def test_a_request_before_the_hello_is_not_answered(service: Service) -> None:
    with connected(service) as wire:
        wire.say({"v": 1, "n": 7, "deadline_ms": 5000, "origin": {"request_id": "test"}, "body": {"type": "Status"}})
        assert wire.hear() is None


@pytest.mark.parametrize(
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
    request = {"v": 1, "n": 7, "deadline_ms": 5000, "origin": {"request_id": "test"}, "body": {"type": "Status"}}
    with greeted(service) as wire:
        wire.say(request | change)
        assert wire.hear() is None


@pytest.mark.parametrize("length", [0, messages.MAX_FRAME + 1, 2**32 - 1])
def test_a_frame_outside_the_limits_ends_the_connection(service: Service, length: int) -> None:
    with greeted(service) as wire:
        wire.say_bytes(b"", length=length)
        assert wire.hear() is None


@pytest.mark.parametrize("process", SOCKETS)
@pytest.mark.parametrize("name", MESSAGES)
def test_a_process_may_send_what_the_page_lists_for_it_and_nothing_else(
    service: Service, process: str, name: str
) -> None:
    with greeted(service, process) as wire:
        answer = wire.ask(name, SAMPLES[name])
    listed = process in MESSAGES[name][2].split(", ")
    assert (answer.get("code") != "message_not_allowed") == listed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name, row in MESSAGES.items() if row[1] != "none"])
def test_a_message_takes_the_proofs_that_the_page_lists_and_only_good_ones(
    service: Service, name: str, kind: str
) -> None:
    with greeted(service, MESSAGES[name][2].split(", ")[0]) as wire:
        without = wire.ask(name, SAMPLES[name])
        answer = wire.ask(name, SAMPLES[name], {"kind": kind, "value": "not a credential of anybody"})

    assert (without["type"], without["kind"]) == ("Failed", "BadProof")
    assert answer["kind"] == ("BadProof" if kind in MESSAGES[name][1].split(", ") else "Forbidden")

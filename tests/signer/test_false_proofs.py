"""Every message that acts for a caller, with every proof that is not its caller's. Promises P4, P7.

Generated from the protocol: what the api's uid can say, a taken api can say, so the signer must answer for itself.
"""

import base64
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest

from tests.fixtures.app_clients import app_client_of
from tests.fixtures.callers import Agent, Tenant, new_tenant, rule
from tests.fixtures.commands import COMMANDS
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import Wire, greet
from tests.fixtures.tenant_rows import Rows

PROVEN = {
    name: (command, declared)
    for name, (command, declared) in COMMANDS.items()
    if declared.proofs and "proxy" not in declared.senders
}
KINDS = ("agent", "tenant_key", "platform_key", "session", "app_client")


class Cast:
    """A victim with something to lose, and a stranger who has honest credentials of another tenant."""

    def __init__(self, service: Service, stack: ExitStack) -> None:
        self.service = service
        self.victim: Tenant = stack.enter_context(new_tenant(service))
        self.agent: Agent = self.victim.agent(rule("auto-approve-threshold", threshold="0"))
        self.owner: Person = member(service, self.victim, "owner", mfa=True)
        waiting = self.agent.sign().json()["data"]
        self.tx, self.approval = waiting["txId"], waiting["approvalId"]
        self.secret = self.victim.ok("POST", "/secrets", {"name": "s", "value": "v"})["id"]
        self.stranger: Tenant = stack.enter_context(new_tenant(service))
        self.other_agent: Agent = self.stranger.agent(agent_id=self.agent.id)
        self.other_owner: Person = member(service, self.stranger, "owner", mfa=True)
        self.integration = app_client_of(self.other_owner)
        for client in (self.owner, self.other_owner, self.integration):
            stack.callback(client.close)

    def honest(self) -> dict[str, str]:
        """The stranger's own, by kind; good in another tenant."""
        basic = self.integration.headers["Authorization"].split()[1]
        return {
            "agent": _bearer(self.other_agent),
            "tenant_key": self.stranger.key,
            "session": _bearer(self.other_owner),
            "app_client": base64.b64decode(basic).decode(),
        }

    def false(self) -> Iterator[tuple[str, dict[str, str] | None]]:
        """Proofs that are nobody's: none, invented ones, the victim's with a letter changed, or under another kind."""
        yield "none", None
        theirs = {"agent": _bearer(self.agent), "tenant_key": self.victim.key, "session": _bearer(self.owner)}
        for kind in KINDS:
            yield f"empty {kind}", {"kind": kind, "value": ""}
            yield f"invented {kind}", {"kind": kind, "value": f"{self.victim.id}:{uuid.uuid4().hex}"}
        for kind, value in theirs.items():
            swapped = value[:-9] + ("A" if value[-9] != "A" else "B") + value[-8:]
            yield f"changed {kind}", {"kind": kind, "value": swapped}
            for other in KINDS:
                if other != kind:
                    yield f"{kind} as {other}", {"kind": other, "value": value}


@pytest.fixture(scope="module")
def cast(service: Service) -> Iterator[Cast]:
    """One for all messages."""
    with ExitStack() as stack:
        yield Cast(service, stack)


@pytest.fixture
def wire(cast: Cast) -> Iterator[Wire]:
    """The api's connection to the signer."""
    with greet(cast.service) as connection:
        yield connection


@pytest.fixture
def console_wire(cast: Cast) -> Iterator[Wire]:
    """The operator's."""
    with greet(cast.service, "operator") as connection:
        yield connection


def _bearer(client: Any) -> str:
    return str(client.headers["Authorization"]).split()[1]


def least_body(cast: Cast, message: Any) -> dict[str, Any]:
    """The least that a message takes, with the victim's ids wherever one fits."""
    ids = {
        "agent": cast.agent.id,
        "tenant": cast.victim.id,
        "tx_id": cast.tx,
        "approval_id": cast.approval,
        "secret_id": cast.secret,
        "id": cast.victim.id,
        "user_id": cast.owner.id,
        "role": "owner",
        "seconds": 300,
        "wallets": [{"user": cast.owner.id, "account": cast.owner.id}],
    }
    found = {}
    for field in msgspec.structs.fields(message):
        if field.required:
            found[field.encode_name] = _fitting(cast, field.type, ids.get(field.name))
    msgspec.convert({"type": message.__name__} | found, message)
    return found


def _fitting(cast: Cast, wanted: Any, first: Any) -> Any:
    candidates = (
        first,
        cast.agent.id,
        cast.approval,
        "0" * 64,
        "a@example.com",
        "+41790000000",
        "https://example.com/",
        "viewer",
        "So11111111111111111111111111111111111111112",
        "GET",
        "x" * 20,
        "A" * 124,
        "external",
        "service",
        "1",
        1,
        True,
        [],
        {},
        b"x" * 32,
        ["tx.signed"],
        "ether",
        "123456",
        {"to": "0x" + "11" * 20, "value": "1"},
        {"calls": [{"to": "0x" + "11" * 20, "value": "1"}]},
        {"bitcoin": "1"},
    )
    options = get_args(wanted) if get_origin(wanted) in {Union, UnionType} else (wanted,)
    literals = get_args(wanted) if get_origin(wanted) is Literal else ()
    for candidate in (*candidates, *literals):
        try:
            msgspec.convert(candidate, wanted)
        except (msgspec.ValidationError, TypeError):
            continue
        return candidate
    struct = next(option for option in options if isinstance(option, type) and issubclass(option, msgspec.Struct))
    config = struct.__struct_config__
    tag = {config.tag_field: config.tag} if config.tag else {}
    return tag | {f.encode_name: _fitting(cast, f.type, None) for f in msgspec.structs.fields(struct) if f.required}


@pytest.mark.parametrize("name", PROVEN)
async def test_no_false_proof_moves_anything(cast: Cast, wire: Wire, console_wire: Wire, rows: Rows, name: str) -> None:
    message, declared = PROVEN[name]
    connection = wire if "api" in declared.senders else console_wire
    body = least_body(cast, message)
    before = await rows.of(cast.victim.id)

    refused = {what: connection.ask(name, body, proof) for what, proof in cast.false()}
    for kind, value in cast.honest().items():
        # Good in the stranger's own tenant, so it may act there; of the victim it gets and changes nothing.
        answer = str(connection.ask(name, body, {"kind": kind, "value": value}))
        assert cast.agent.evm_address not in answer
        assert cast.victim.key not in answer

    assert {what: answer["type"] for what, answer in refused.items()} == dict.fromkeys(refused, "Failed")
    kinds = {what: answer["kind"] for what, answer in refused.items()}
    assert set(kinds.values()) <= {"BadProof", "Forbidden"}, refused
    assert await rows.of(cast.victim.id) == before


async def test_a_true_proof_of_the_same_form_does_move_something(cast: Cast, wire: Wire, rows: Rows) -> None:
    before = await rows.of(cast.victim.id)

    answer = wire.ask(
        "MintAgentToken",
        {"agent": cast.agent.id, "ttl_seconds": 60, "expires_in": "1m"},
        {"kind": "tenant_key", "value": cast.victim.key},
    )
    frozen = wire.ask(
        "FreezeAgent", {"agent": cast.agent.id, "reason": "x"}, {"kind": "tenant_key", "value": cast.victim.key}
    )

    assert (answer["type"], frozen["type"]) == ("Done", "Done")
    assert await rows.of(cast.victim.id) != before

"""A kind of order and a chain family from outside take the path of every order: no file of the service knows them."""

import asyncio
import socket
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from custody.protocol.frames import VERSION
from ops import places
from tests.fixtures.callers import Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import Wire

pytestmark = pytest.mark.long
TO = "0x" + "11" * 20
SHORE, ELSEWHERE = "peb1" + "22" * 32, "peb1" + "33" * 32


class Toy(NamedTuple):
    """A service with a signer beside its own that was handed what is tried here."""

    service: Service
    tenant: Tenant
    path: str

    def ask(self, agent: Agent, name: str, proof: dict[str, str] | None = None, **body: Any) -> Any:
        """Send a command, with the agent's own token where no proof is given."""
        with Wire(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
            wire.settimeout(60)
            wire.connect(self.path)
            wire.say({"version": VERSION, "process": "api"})
            assert wire.hear() == {"version": VERSION, "process": "signer"}
            token = {"kind": "agent", "value": str(agent.headers["Authorization"]).split()[1]}
            return wire.ask(name, {"agent": agent.id} | body, proof or token)


@pytest.fixture(scope="module")
def toy(postgres_home: places.Home, worker_id: str) -> Iterator[Toy]:
    """Both signers."""
    with (
        deploy(database_apart(postgres_home, f"{worker_id}_toy"), really=True) as service,
        tempfile.TemporaryDirectory(prefix="ct-") as folder,
        service.beside("tests.signer.toy_signer", SERVICE_SIGN_SOCKET=f"{folder}/s"),
        new_tenant(service) as tenant,
    ):
        yield Toy(service, tenant, f"{folder}/s")


def test_a_kind_from_outside_is_judged_limited_signed_and_told_once(toy: Toy) -> None:
    agent = toy.tenant.agent()
    toy.tenant.ok("PUT", f"/agents/{agent.id}/policies", [rule("spending-limit", maxPerDay="10")])

    def promise(amount: int, tx_id: str) -> Any:
        return toy.ask(agent, "SignPromise", tx_id=tx_id, order={"to": TO, "amount": amount})

    first, again, beyond = str(uuid.uuid4()), str(uuid.uuid4()), str(uuid.uuid4())
    signed = promise(7, first)
    assert (signed["type"], signed["kind"]) == ("Signed", "promise"), signed
    assert promise(7, first) == signed
    # The control: the limit counts what was promised, and what is left goes.
    assert promise(4, beyond)["type"] == "Refused"
    assert promise(3, again)["type"] == "Signed"
    rows = asyncio.run(rows_of(toy.service, agent.id))
    found = {row["id"]: (row["kind"], row["status"], int(row["value"])) for row in rows}
    assert found == {
        first: ("promise", "signed", 7),
        beyond: ("promise", "rejected", 4),
        again: ("promise", "signed", 3),
    }


def test_a_family_from_outside_has_addresses_an_asset_and_a_chain_in_rules_and_signs_with_its_own_key(toy: Toy) -> None:
    agent = toy.tenant.agent()
    rules = [
        rule("spending-limit", asset="pebble:native", maxPerDay="10"),
        rule("approved-addresses", addresses=[SHORE]),
        rule("allowed-chains", chains=["pebble:shore"]),
    ]
    # The control: the service, which was not handed the family, knows none of these.
    for one in rules:
        assert toy.tenant.put(f"/agents/{agent.id}/policies", json=[one]).status_code == 400, one
    replaced = toy.ask(agent, "ReplacePolicies", {"kind": "tenant_key", "value": toy.tenant.key}, policies=rules)
    assert replaced["type"] == "Done", replaced

    def carry(grains: int, to: str = SHORE) -> Any:
        tx_id = str(uuid.uuid4())
        return tx_id, toy.ask(agent, "CarryPebbles", tx_id=tx_id, order={"to": to, "grains": grains})

    first, signed = carry(7)
    assert (signed["type"], signed["kind"], signed["caip2"]) == ("Signed", "pebble", "pebble:shore"), signed
    beyond, refused = carry(4)
    assert (refused["type"], "7 grains" in str(refused["results"])) == ("Refused", True), refused
    astray, refused = carry(1, ELSEWHERE)
    assert [one["type"] for one in refused["results"] if not one["passed"]] == ["approved-addresses"], refused
    rest, signed = carry(3)
    assert signed["type"] == "Signed", signed
    rows = asyncio.run(rows_of(toy.service, agent.id))
    found = {row["id"]: (row["kind"], row["status"], int(row["value"])) for row in rows}
    assert found == {
        first: ("pebble", "signed", 7),
        beyond: ("pebble", "rejected", 4),
        astray: ("pebble", "rejected", 1),
        rest: ("pebble", "signed", 3),
    }


async def rows_of(service: Service, agent: str) -> list[Any]:
    """The rows of its orders."""
    async with owner_of(service.database) as owner:
        asked = "SELECT id::text, kind, status, value FROM transactions WHERE agent_id = $1"
        return list(await owner.fetch(asked, agent))

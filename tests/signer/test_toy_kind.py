"""A kind of order that is handed in from outside takes the path of every order: no file of the signer knows it."""

import asyncio
import socket
import tempfile
import uuid
from typing import Any

import pytest

from custody.protocol.frames import VERSION
from ops import places
from tests.fixtures.callers import new_tenant, rule
from tests.fixtures.deployments import database_apart, deployed, owner_of
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import Wire

pytestmark = pytest.mark.long
TO = "0x" + "11" * 20


def test_a_kind_from_outside_is_judged_limited_signed_and_told_once(postgres_home: places.Home, worker_id: str) -> None:
    with (
        deployed(database_apart(postgres_home, f"{worker_id}_toy"), really=True) as service,
        tempfile.TemporaryDirectory(prefix="ct-") as folder,
        service.beside("tests.signer.toy_signer", SERVICE_SIGN_SOCKET=f"{folder}/s"),
        new_tenant(service) as tenant,
    ):
        agent = tenant.agent()
        tenant.ok("PUT", f"/agents/{agent.id}/policies", [rule("spending-limit", maxPerDay="10")])
        token = str(agent.headers["Authorization"]).split()[1]

        def promise(amount: int, tx_id: str) -> Any:
            with Wire(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
                wire.settimeout(10)
                wire.connect(f"{folder}/s")
                wire.say({"version": VERSION, "process": "api"})
                assert wire.hear() == {"version": VERSION, "process": "signer"}
                body = {"agent": agent.id, "tx_id": tx_id, "order": {"to": TO, "amount": amount}}
                return wire.ask("SignPromise", body, {"kind": "agent", "value": token})

        first, again, beyond = str(uuid.uuid4()), str(uuid.uuid4()), str(uuid.uuid4())
        signed = promise(7, first)
        assert (signed["type"], signed["kind"]) == ("Signed", "promise"), signed
        assert promise(7, first) == signed
        # The control: the limit counts what was promised, and what is left goes.
        assert promise(4, beyond)["type"] == "Refused"
        assert promise(3, again)["type"] == "Signed"
        rows = asyncio.run(rows_of(service, agent.id))
    found = {row["id"]: (row["kind"], row["status"], int(row["value"])) for row in rows}
    assert found == {
        first: ("promise", "signed", 7),
        beyond: ("promise", "rejected", 4),
        again: ("promise", "signed", 3),
    }


async def rows_of(service: Service, agent: str) -> list[Any]:
    """The rows of its orders."""
    async with owner_of(service.database) as owner:
        asked = "SELECT id::text, kind, status, value FROM transactions WHERE agent_id = $1"
        return list(await owner.fetch(asked, agent))

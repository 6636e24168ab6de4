"""Ways in that a review found once: each is closed, and nobody is called a forger for being slow."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import asyncpg
import msgspec
import pytest

from custody.kit import db
from custody.protocol.identity.tenants import CreateTenant
from custody.protocol.signer.agents import MintAgentToken
from custody.protocol.signer.orders import Approve, SignOrder
from custody.protocol.signer.policies import CreateAgents, ReplacePolicies
from tests.fixtures.callers import Tenant, rule
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import connect


async def test_a_queued_order_names_its_chain_so_that_a_later_default_cannot_move_it(
    tenant: Tenant, owner: asyncpg.Connection
) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))

    queued = agent.sign(value=1)

    stored = await owner.fetchval("SELECT order_text FROM transactions WHERE id = $1", queued.json()["data"]["txId"])
    assert msgspec.json.decode(stored)["chainId"] == 31337


async def test_a_revoked_key_leaves_nothing_behind(tenant: Tenant, owner: asyncpg.Connection) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="100"))
    versions = "SELECT policy_version, ledger_version FROM agents WHERE tenant_id = $1 AND id = $2"
    before = await owner.fetchrow(versions, tenant.id, agent.id)

    await owner.execute("UPDATE tenant_keys SET revoked_at = now() WHERE tenant_id = $1", tenant.id)
    answer = tenant.put(f"/agents/{agent.id}/policies", json=[])

    assert answer.status_code == 401
    assert await owner.fetchrow(versions, tenant.id, agent.id) == before
    assert agent.sign(value=1).status_code == 200


def test_policies_that_change_while_an_agent_signs_are_no_tampering(tenant: Tenant) -> None:
    rules = [rule("spending-limit", maxPerDay=str(10**9))]
    agent = tenant.agent(*rules)

    with ThreadPoolExecutor(4) as pool:
        puts = [pool.submit(tenant.put, f"/agents/{agent.id}/policies", json=rules) for _ in range(30)]
        signs = [pool.submit(agent.sign) for _ in range(60)]
        statuses = {done.result().status_code for done in signs}

    assert {done.result().status_code for done in puts} <= {200, 409}
    assert statuses == {200}


@pytest.fixture
async def elsewhere(database: Database) -> AsyncIterator[Database]:
    """A database whose sessions live in a zone with half an hour, unless they say otherwise."""
    name = urlsplit(database.owner_url).path[1:]
    owner = await asyncpg.connect(database.owner_url)
    await owner.execute(f"ALTER DATABASE {name} SET timezone = 'Asia/Kolkata'")
    yield database
    await owner.execute(f"ALTER DATABASE {name} RESET timezone")
    await owner.close()


async def test_hours_are_cut_in_utc_whatever_zone_the_database_has(elsewhere: Database) -> None:
    pool = await db.open_pool(elsewhere.urls["signer"], size=1)

    zone = await pool.fetchval("SHOW timezone")

    await pool.close()
    assert zone == "UTC"


def test_a_connection_that_does_not_identify_itself_is_closed(service: Service) -> None:
    with connect(service) as mute, connect(service, "reveal") as other, connect(service) as slow:
        slow.sendall((40).to_bytes(4, "big") + b"half")

        assert [wire.recv(1) for wire in (mute, other, slow)] == [b""] * 3


GOOD = {"agent": "a", "tx_id": "00000000-0000-4000-8000-000000000000"}
QUESTION = {"kind": "evm", "request": {"to": "0x" + "11" * 20, "value": "1"}}
BAD = [
    (CreateAgents, {"agents": [{"id": "x y\nvictim a i 9 .\nz", "name": "n"}]}),
    (CreateAgents, {"agents": [{"id": f"a{n}", "name": "n"} for n in range(101)]}),
    (CreateTenant, {"id": "t\n", "name": "n"}),
    (ReplacePolicies, {"agent": "a\n", "policies": []}),
    (MintAgentToken, {"agent": "a", "ttl_seconds": 2_592_001, "expires_in": "9000d"}),
    (SignOrder, {**GOOD, "tx_id": "not-a-uuid", "question": QUESTION}),
    (Approve, {"approval_id": "x"}),
]


@pytest.mark.parametrize(("kind", "fields"), BAD)
def test_the_signer_itself_refuses_ids_and_lifetimes_that_no_api_would_send(
    kind: type, fields: dict[str, object]
) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"type": kind.__name__, **fields}, kind)


async def test_many_decisions_over_one_item_have_one_winner_and_a_plain_answer_for_the_rest(tenant: Tenant) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    agent.sign(value=1)
    item = tenant.ok("GET", "/approvals")[0]["id"]

    answers = await asyncio.gather(
        *(asyncio.to_thread(tenant.post, f"/approvals/{item}/{verb}") for verb in ("approve", "deny") * 6)
    )

    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200] + [409] * 11

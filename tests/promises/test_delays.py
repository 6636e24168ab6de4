"""`delay`: whatever is asked at once, each item has one outcome, none is signed early, and none after a freeze."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from custody.database.texts import read
from custody.kit.callers import Origin
from custody.kit.errors import CustodyError
from custody.protocol.client import SignerClient
from custody.protocol.signer.orders import Release
from ops import places
from tests.fixtures.callers import ADDRESS, Agent, AsyncClient, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of, partner_of
from tests.fixtures.eventually import soon
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet

DELAY = rule("delay", minutes=1)
ITEMS, DENIALS = 60, 20
# Two minutes later: the time is the database's.
DUE = (
    "UPDATE approvals SET release_look_at = service_now() WHERE status = 'pending' AND release_look_at > service_now()"
)
LATER = """
CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT clock_timestamp() + interval '{} minutes' $$
"""
NOW = """
CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() $$
"""
# Of each item: its status, the order's, signatures, and what tells of it.
OUTCOMES = """
SELECT p.id::text, p.status, t.status AS tx_status, (t.signature IS NOT NULL)::int AS signed,
       t.signed_at < p.release_at AS early, p.resolved_by,
       ARRAY(SELECT u.action FROM audit u WHERE u.tenant_id = $1 AND u.resource_id = t.id::text
                AND u.action IN ('tx.approved', 'tx.released', 'tx.denied', 'tx.expired', 'tx.withdrawn')) AS actions
  FROM approvals p JOIN transactions t ON t.tenant_id = p.tenant_id AND t.id = p.tx_id WHERE p.tenant_id = $1
"""
MUST_BE = {
    ("pending", None): ("pending_approval", 0, []),
    ("approved", "system"): ("signed", 1, ["tx.released"]),
    ("approved", "manual"): ("signed", 1, ["tx.approved"]),
    ("rejected", "manual"): ("rejected", 0, ["tx.denied"]),
}


@pytest.fixture(scope="module")
def one(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment of this file's own, without a scheduler: the tests ask in its place."""
    with deploy(database_apart(postgres_home, f"{worker_id}_delays")) as service:
        yield service


@pytest.fixture(scope="module")
def pair(one: Service) -> Iterator[list[Service]]:
    """Two signers on one database."""
    with partner_of(one, SERVICE_PUBLIC_URL=f"http://localhost:{one.port}") as other:
        yield [one, other]


@pytest.fixture
def unclaiming(pair: list[Service]) -> Iterator[list[Service]]:
    """An approval is claimed in whatever state it is."""
    whole = next(text.sql for text in read() if text.name == "sign_write").replace("CREATE ", "CREATE OR REPLACE ", 1)
    careless = whole.replace("AND tx_id = r.tx AND status = 'pending' AND", "AND tx_id = r.tx AND")
    careless = careless.replace("AND id = r.tx AND status = 'pending_approval'", "AND id = r.tx")
    assert careless.count("status = 'pending") < whole.count("status = 'pending")
    asyncio.run(_execute(pair[0], careless))
    try:
        yield pair
    finally:
        asyncio.run(_execute(pair[0], whole))


@pytest.fixture
def holder(one: Service) -> Iterator[Tenant]:
    """A tenant of this test's own."""
    with new_tenant(one) as tenant:
        yield tenant


async def test_of_releases_denials_approvals_and_a_freeze_at_once_each_item_has_one_outcome(
    pair: list[Service], holder: Tenant
) -> None:
    agent = holder.agent(DELAY)
    items = queue(agent, ITEMS)
    denied = items[:DENIALS]
    acts = [("release", item) for item in items for _ in range(2)] + [("deny", item) for item in denied]
    acts += [("approve", item) for item in items[DENIALS : DENIALS + 5]]
    random.Random(7).shuffle(acts)
    # In the midst of it the time comes, and later the freeze.
    acts.insert(30, ("later", ""))
    acts.insert(100, ("freeze", ""))
    async with right_again(pair[0]):
        at_freeze = await do(pair, holder, agent, acts)
        # Whatever is asked afterwards, nothing more is signed.
        assert set(await ask_release(pair[0], holder, items)) == {"unchanged"}
    rows = await outcomes(pair[0], holder)

    counted = judge(rows)
    print(counted)
    assert sum(row["signed"] for row in rows) == at_freeze
    assert counted["approved", "system"] > 0
    assert counted["rejected", "manual"] > 0


async def test_without_the_claim_an_item_that_was_denied_is_released(unclaiming: list[Service], holder: Tenant) -> None:
    agent = holder.agent(DELAY)
    items = queue(agent, ITEMS)
    # One signer denies, the other one, which knows nothing of that, releases.
    acts = [(way, item) for item in items for way in ("deny", "release")]
    async with time_later(unclaiming[0]):
        await do(unclaiming, holder, agent, acts)

    with pytest.raises(AssertionError):
        judge(await outcomes(unclaiming[0], holder))


async def test_none_is_released_early(one: Service, holder: Tenant) -> None:
    items = queue(holder.agent(DELAY), 4)

    assert await ask_release(one, holder, items) == {"unchanged": 4}
    assert judge(await outcomes(one, holder)) == {("pending", None): 4}
    async with time_later(one):
        assert await ask_release(one, holder, items) == {"released": 4}
        assert await ask_release(one, holder, items) == {"unchanged": 4}
    assert judge(await outcomes(one, holder)) == {("approved", "system"): 4}


async def test_a_time_that_was_moved_is_refused(one: Service, holder: Tenant) -> None:
    items = queue(holder.agent(DELAY), 2)
    async with owner_of(one.database) as owner:
        await owner.execute(
            "UPDATE approvals SET release_at = now() - interval '1 second', release_look_at = now() WHERE id = $1",
            items[0],
        )
        await owner.execute(
            "UPDATE approvals SET release_at = NULL, waits_since = NULL, release_look_at = NULL WHERE id = $1", items[1]
        )

    assert await ask_release(one, holder, items[:1]) == {"sealed_value_tampered": 1}
    # Nor does a person approve what is not as it was queued.
    assert {holder.post(f"/approvals/{item}/approve", json={}).status_code for item in items} == {503}
    assert {row["signed"] for row in await outcomes(one, holder)} == {0}


BACK = (
    "UPDATE approvals SET status = 'pending', resolved_at = NULL, resolved_by = NULL, release_look_at = release_at "
    "WHERE tenant_id = $1",
    "UPDATE transactions SET status = 'pending_approval', signature = NULL, signed_bytes = NULL, tx_hash = NULL, "
    "signed_at = NULL, nonce = NULL, look_at = NULL, resend_at = NULL WHERE tenant_id = $1",
)


@pytest.mark.parametrize("way", ["release", "approve", "deny", "withdraw"])
async def test_an_item_that_was_decided_and_put_back_is_not_signed_again(
    one: Service, holder: Tenant, way: str
) -> None:
    agent = holder.agent(DELAY)
    [item] = queue(agent, 1)
    async with time_later(one):
        if way == "release":
            assert await ask_release(one, holder, [item]) == {"released": 1}
        elif way == "withdraw":
            tx = holder.ok("GET", f"/approvals/{item}")["txId"]
            agent.ok("POST", f"/vault/{agent.id}/transactions/{tx}/withdraw", {})
        else:
            holder.ok("POST", f"/approvals/{item}/{way}", {})
        async with owner_of(one.database) as owner:
            for statement in BACK:
                await owner.execute(statement, holder.id)
        told = await ask_release(one, holder, [item])
        approved = holder.post(f"/approvals/{item}/approve", json={})
        one.kill("signer")
        one.start("signer")
        again = await ask_release(one, holder, [item])

        assert (told, again) == ({"unchanged": 1}, {"unchanged": 1})
        assert (approved.status_code, approved.json()["data"]["code"]) == (409, "approval_resolved")
        assert {row["signed"] for row in await outcomes(one, holder)} == {0}
        # It is not lost for ever: a person can still deny it.
        holder.ok("POST", f"/approvals/{item}/deny", {})


async def test_an_order_that_waits_in_a_freeze_waits_for_a_person_after_it(one: Service, holder: Tenant) -> None:
    agent, beside = holder.agent(DELAY), holder.agent(DELAY)
    [item], [other] = queue(agent, 1), queue(beside, 1)
    holder.ok("POST", f"/agents/{agent.id}/freeze", {})
    async with owner_of(one.database) as owner:
        await owner.execute("UPDATE agents SET frozen_at = NULL WHERE id = $1", agent.id)

    async with time_later(one):
        assert await ask_release(one, holder, [item]) == {"unchanged": 1}
        shown = holder.ok("GET", f"/approvals/{item}")
        assert (shown["status"], shown["releaseAt"]) == ("pending", None)
        assert await ask_release(one, holder, [other]) == {"released": 1}
        holder.ok("POST", f"/approvals/{item}/approve", {})


async def test_an_order_that_more_than_time_holds_back_has_no_time(one: Service, holder: Tenant) -> None:
    unlimited = {"to": ADDRESS, "value": "0", "data": "0x095ea7b3" + f"{1:064x}" + "f" * 64, "broadcast": False}
    cases = {
        "unlimited": (holder.agent(DELAY), unlimited),
        "another rule": (holder.agent(DELAY, rule("auto-approve-threshold", threshold="0")), payment()),
        "uncovered": (
            holder.agent(DELAY, rule("spending-limit", maxPerDay="9", asset="bitcoin")),
            {"to": ADDRESS, "value": "5", "data": "0xa9059cbb" + f"{1:064x}" * 2, "broadcast": False},
        ),
        "a person alone": (holder.agent(rule("auto-approve-threshold", threshold="0")), payment()),
    }
    for name, (agent, order) in cases.items():
        answer = agent.post(f"/vault/{agent.id}/sign", json=order)
        assert (answer.status_code, answer.json()["data"]["releaseAt"]) == (202, None), name

    delayed = holder.agent(DELAY).sign()
    assert delayed.status_code == 202
    assert delayed.json()["data"]["releaseAt"] is not None


async def test_a_rule_of_today_holds_back_what_time_would_release(one: Service, holder: Tenant) -> None:
    agent = holder.agent(DELAY)
    [item] = queue(agent, 1)
    longer = rule("delay", minutes=60)
    cases = (
        [longer],
        [DELAY, rule("auto-approve-threshold", threshold="0")],
        [DELAY, rule("spending-limit", maxPerDay="0")],
    )
    async with time_later(one):
        for rules in cases:
            holder.ok("PUT", f"/agents/{agent.id}/policies", rules)
            assert await ask_release(one, holder, [item]) == {"unchanged": 1}
        holder.ok("PUT", f"/agents/{agent.id}/policies", [longer])
    # A longer one counts from the request.
    async with time_later(one, minutes=61):
        assert await ask_release(one, holder, [item]) == {"released": 1}


async def test_the_scheduler_releases_and_the_answer_is_found_under_the_key(one: Service, holder: Tenant) -> None:
    agent = holder.agent(DELAY)
    waiting = agent.sign(key="the same").json()["data"]
    one.launch("scheduler")
    try:
        assert agent.sign(key="the same").status_code == 202
        async with time_later(one):
            await soon(lambda: agent.sign(key="the same").status_code, lambda status: status == 200)
    finally:
        one.kill("scheduler")
    [row] = await outcomes(one, holder)
    assert (row["id"], row["resolved_by"]) == (waiting["approvalId"], "system")
    receipt = agent.ok("GET", f"/vault/{agent.id}/transactions/{waiting['txId']}/receipt")["receipt"]
    assert (receipt["approval"]["id"], receipt["approval"]["approvedBy"]) == (waiting["approvalId"], "delay")


@pytest.mark.long
async def test_signers_and_schedulers_that_are_killed_leave_each_item_one_outcome(one: Service, holder: Tenant) -> None:
    agents = [holder.agent(DELAY) for _ in range(4)]
    for agent in agents:
        queue(agent, 15)
    async with time_later(one):
        for round_ in range(4):
            # What the killed one had claimed is looked at a minute or more later: that time is over.
            await _execute(one, DUE)
            one.launch("scheduler")
            await soon(lambda: count_signed(one, holder), lambda signed, least=round_ * 10: signed >= least)
            await asyncio.to_thread(one.kill, "signer")
            await asyncio.to_thread(one.kill, "scheduler")
            await asyncio.to_thread(one.start, "signer")
        judge(await outcomes(one, holder))
    assert await count_signed(one, holder) >= 30


def test_the_api_cannot_release(one: Service, holder: Tenant) -> None:
    [item] = queue(holder.agent(DELAY), 1)
    with greet(one) as wire:
        refused = wire.ask("Release", {"tenant": holder.id, "approval": item})

    assert refused["code"] == "message_not_allowed"


def test_an_agent_makes_no_delay_shorter(one: Service, holder: Tenant) -> None:
    agent = holder.agent(rule("delay", minutes=10))
    looser = agent.put(f"/agents/{agent.id}/policies", json=[rule("delay", minutes=9)])

    assert (looser.status_code, looser.json()["data"]["code"]) == (403, "policy_loosened")
    assert agent.put(f"/agents/{agent.id}/policies", json=[rule("delay", minutes=11)]).status_code == 200


def payment() -> dict[str, Any]:
    """An order over a little."""
    return {"to": ADDRESS, "value": "1", "broadcast": False}


def queue(agent: Agent, count: int) -> list[str]:
    """Have so many orders wait; their approvals."""
    answers = [agent.sign(value=number + 1) for number in range(count)]
    assert {answer.status_code for answer in answers} == {202}
    return [answer.json()["data"]["approvalId"] for answer in answers]


@asynccontextmanager
async def right_again(service: Service) -> AsyncIterator[None]:
    """Afterwards the database's clock is right again."""
    try:
        yield
    finally:
        await _execute(service, NOW)


@asynccontextmanager
async def time_later(service: Service, minutes: int = 2) -> AsyncIterator[None]:
    """The database's clock is ahead."""
    async with right_again(service):
        await _execute(service, LATER.format(minutes))
        yield


async def do(services: Sequence[Service], tenant: Tenant, agent: Agent, acts: Sequence[tuple[str, str]]) -> int:
    """Do all of it, sixteen at once; gives back how many were signed when the freeze was answered."""
    signers = [SignerClient(str(service.socket), "scheduler") for service in services]
    gate, signed = asyncio.Semaphore(16), -1

    async def act(number: int, way: str, item: str) -> None:
        nonlocal signed
        async with gate:
            if way == "release":
                await _release(signers[number % len(signers)], tenant, item)
            elif way == "later":
                await _execute(services[0], LATER.format(2))
            elif way == "freeze":
                assert (await http.post(f"/agents/{agent.id}/freeze", json={})).status_code == 200
                signed = await count_signed(services[0], tenant)
            else:
                answer = await http.post(f"/approvals/{item}/{way}", json={})
                assert answer.status_code in (200, 409, 423), answer.text

    async with (
        AsyncClient(base_url=services[0].url, headers=tenant.headers) as http,
        asyncio.TaskGroup() as group,
    ):
        for number, (way, item) in enumerate(acts):
            group.create_task(act(number, way, item))
    for signer in signers:
        await signer.close()
    return signed


async def ask_release(service: Service, tenant: Tenant, items: Sequence[str]) -> Counter[str]:
    """Ask the signer for each, as a scheduler does."""
    signer = SignerClient(str(service.socket), "scheduler")
    try:
        return Counter([await _release(signer, tenant, item) for item in items])
    finally:
        await signer.close()


async def _release(signer: SignerClient, tenant: Tenant, item: str) -> str:
    try:
        return (await signer.tell(Release(tenant.id, item), Origin("test"))).result
    except CustodyError as problem:
        return problem.code


async def outcomes(service: Service, tenant: Tenant) -> list[asyncpg.Record]:
    """Everything that tells of the items of a tenant."""
    async with owner_of(service.database) as owner:
        return list(await owner.fetch(OUTCOMES, tenant.id))


def judge(rows: Sequence[asyncpg.Record]) -> Counter[tuple[str, str | None]]:
    """Each item has one outcome, everything that tells of it tells the same, and none was signed early."""
    for row in rows:
        told = row["tx_status"], row["signed"], sorted(row["actions"])
        assert told == MUST_BE[row["status"], row["resolved_by"]], dict(row)
        assert row["resolved_by"] != "system" or not row["early"], f"early: {dict(row)}"
    return Counter((row["status"], row["resolved_by"]) for row in rows)


async def count_signed(service: Service, tenant: Tenant) -> int:
    """The signatures of a tenant."""
    return sum(row["signed"] for row in await outcomes(service, tenant))


async def _execute(service: Service, statement: str) -> None:
    async with owner_of(service.database) as owner:
        await owner.execute(statement)

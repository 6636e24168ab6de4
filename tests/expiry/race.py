"""Approve, deny and the end of time over the same items at once, judged by the tables alone. Promise P2."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

import asyncpg
import msgspec

from custody.kit.callers import Origin
from custody.protocol.client import SignerClient
from custody.protocol.signer.orders import Expire
from tests.fixtures.callers import AsyncClient, Tenant, rule
from tests.fixtures.server import Service

AGENTS = 4
AT_ONCE = 24
# Time passes by an act among the others, so that as many items come due early and late however fast the machine is.
ACTS = ("approve", "deny", "due", "expire", "expire")
DUE = "UPDATE approvals SET expires_at = service_now() WHERE id = $1"


class Raced(msgspec.Struct, frozen=True):
    """The result of a race: the fate of the items, the decisions answered with success, and what should not be."""

    outcomes: Counter[str]
    successes: int
    problems: list[str]


async def race(service: Service, tenant: Tenant, owner: asyncpg.Connection, items: int, *, seed: int) -> Raced:
    """So many items, each approved, denied and expired at once."""
    approvals = _queue(tenant, items)
    acts = [(way, approval) for approval in approvals for way in ACTS]
    random.Random(seed).shuffle(acts)
    # An item that is not due yet when it is asked for is asked for again at the end, as a scheduler would.
    last = [("expire", approval) for approval in approvals]
    successes = await _do(service, tenant, acts, last)
    return Raced(*await judge(owner, tenant, approvals, successes))


async def _do(service: Service, tenant: Tenant, *rounds: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Do everything of a round at once; how many decisions over each item were answered with success."""
    signer, gate, successes = SignerClient(str(service.socket), "scheduler"), asyncio.Semaphore(AT_ONCE), Counter()

    async def act(way: str, approval: str) -> None:
        async with gate:
            if way == "expire":
                await signer.tell(Expire(tenant.id, approval), Origin("race"))
            elif way == "due":
                await owners.execute(DUE, approval)
            else:
                answer = await http.post(f"/approvals/{approval}/{way}", json={})
                assert answer.status_code in (200, 409), answer.text
                successes[approval] += answer.status_code == 200

    async with (
        AsyncClient(base_url=tenant.base_url, headers=tenant.headers, timeout=60) as http,
        asyncpg.create_pool(service.database.owner_url, min_size=1, max_size=4) as owners,
    ):
        for acts in rounds:
            async with asyncio.TaskGroup() as group:
                for way, approval in acts:
                    group.create_task(act(way, approval))
    await signer.close()
    return successes


async def judge(
    owner: asyncpg.Connection, tenant: Tenant, approvals: Sequence[str], successes: dict[str, int]
) -> tuple[Counter[str], int, list[str]]:
    """Each item must have one outcome, and everything that tells of it must tell the same."""
    problems, outcomes = [], Counter()
    for row in await owner.fetch(_OUTCOMES, tenant.id, approvals):
        status, told = row["status"], (row["tx_status"], row["signatures"], sorted(row["actions"]), row["events"])
        outcomes[status] += 1
        if told != _MUST_BE.get(status):
            problems.append(f"{row['id']} is {status}, but of its order is told {told}")
        if status != "pending" and successes.get(str(row["id"]), 0) != (status != "expired"):
            problems.append(f"{row['id']} is {status}, but {successes.get(str(row['id']), 0)} decisions succeeded")
    return outcomes, sum(successes.values()), problems


def _queue(tenant: Tenant, items: int) -> list[str]:
    agents = [tenant.agent(rule("auto-approve-threshold", threshold="0")) for _ in range(AGENTS)]
    answers = [agents[number % AGENTS].sign(value=number + 1) for number in range(items)]
    assert {answer.status_code for answer in answers} == {202}
    return [answer.json()["data"]["approvalId"] for answer in answers]


# Status of the order, signatures, decisions in the audit log, events.
_MUST_BE = {
    "pending": ("pending_approval", 0, [], []),
    "approved": ("signed", 1, ["tx.approved"], ["tx.approved"]),
    "rejected": ("rejected", 0, ["tx.denied"], ["tx.denied"]),
    "expired": ("rejected", 0, ["tx.expired"], ["tx.denied"]),
}
_OUTCOMES = """
SELECT p.id, p.status, t.status AS tx_status, (t.signature IS NOT NULL)::int AS signatures,
       ARRAY(SELECT u.action FROM audit u WHERE u.tenant_id = $1 AND u.resource_id = t.id::text
                AND u.action IN ('tx.approved', 'tx.denied', 'tx.expired')) AS actions,
       ARRAY(SELECT e.event FROM (SELECT tenant_id, event, data FROM outbox UNION ALL
                                  SELECT tenant_id, event, data FROM events) e
              WHERE e.tenant_id = $1 AND e.event IN ('tx.approved', 'tx.denied')
                AND e.data::json->>'approvalId' = p.id::text) AS events
  FROM approvals p JOIN transactions t ON t.tenant_id = p.tenant_id AND t.id = p.tx_id
 WHERE p.tenant_id = $1 AND p.id = ANY ($2::uuid[])"""

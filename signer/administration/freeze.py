"""Freezing an agent or a whole tenant: when the answer leaves, nothing is signed any more. Decisions 4, 10.

Every signature locks its agent's row, looks at agent and tenant, and commits. So an agent's freeze, which writes that
row, waits for the signature under way. A tenant's freeze is committed first, and then waits for the rows of all its
agents: who looked at the tenant before has written by then, who looks afterwards finds it frozen.

Whoever waits holds a connection, so of several that would freeze the same only one goes to the database at a time. The
queue is not that of the agent's orders: an agent that floods its own must be the easiest one to freeze.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from custody.kit import clock
from custody.protocol.messages import Done, Freeze, Outcome, Unfreeze
from signer.administration.acts import AdministrationMoving, remember, tell
from signer.case import AgentAbsent
from signer.context import Ask, Signer
from signer.proofs import BadProof, ProvenSession, ProvenTenant
from signer.turns import TooManyWaiting

# The queues of freezing a tenant and, below it, each of its agents; no agent can have such an id.
_FREEZING = "/freezing"
# No order is under way for longer: server and pool both end it sooner.
_LONGEST_ORDER = timedelta(minutes=2)
_AGENT = "SELECT changed, frozen_at, frozen_reason FROM freeze_agent($1, $2, $3, $4, $5)"
_TENANT = "SELECT changed, frozen_at, frozen_reason FROM freeze_tenant($1, $2, $3, $4)"
_AWAIT_SIGNATURES = "SELECT await_signatures($1)"


async def freeze(signer: Signer, message: Freeze, ask: Ask[ProvenTenant]) -> Outcome:
    """Freeze an agent, or the tenant; what is frozen already keeps its first time and reason."""
    return await _set(signer, message.agent, ask, clock.now(), message.reason)


async def unfreeze(signer: Signer, message: Unfreeze, ask: Ask[ProvenSession]) -> Outcome:
    """Let it sign again."""
    return await _set(signer, message.agent, ask, None, None)


async def _set(
    signer: Signer, agent: str | None, ask: Ask[ProvenTenant], at: datetime | None, reason: str | None
) -> Outcome:
    if agent is None:
        return await _set_tenant(signer, ask, at, reason)
    tenant = ask.caller.tenant
    async with (
        _turn(signer, tenant, f"{_FREEZING}/{agent}"),
        signer.pool.acquire() as connection,
        connection.transaction(),
    ):
        row = await connection.fetchrow(_AGENT, tenant, agent, ask.caller.standing, at, reason)
        if row is None:
            raise AgentAbsent
        await _tell(connection, ask, "agent", agent, row)
        outcome = _outcome({"agentId": agent}, row)
        await remember(connection, ask, outcome)
    return outcome


async def _set_tenant(signer: Signer, ask: Ask[ProvenTenant], at: datetime | None, reason: str | None) -> Outcome:
    tenant = ask.caller.tenant
    async with _turn(signer, tenant, _FREEZING), signer.pool.acquire() as connection:
        async with connection.transaction():
            row = await connection.fetchrow(_TENANT, tenant, ask.caller.standing, at, reason)
            if row is None:
                raise BadProof
            await _tell(connection, ask, "tenant", tenant, row)
        outcome = _outcome({"tenantId": tenant}, row)
        async with connection.transaction():
            if _may_be_signed(row):
                await connection.execute(_AWAIT_SIGNATURES, tenant)
            # Only now is the answer true, so only now may a repeated request be given it.
            await remember(connection, ask, outcome)
    return outcome


@asynccontextmanager
async def _turn(signer: Signer, tenant: str, queue: str) -> AsyncIterator[None]:
    try:
        async with signer.turns.turn_of(tenant, queue):
            yield
    except TooManyWaiting:
        raise AdministrationMoving from None


def _may_be_signed(row: Any) -> bool:
    """Whether an order that looked at the tenant before it was frozen can still be under way.

    That somebody else froze it says nothing: he may have gone before he had waited to the end.
    """
    return row["frozen_at"] is not None and clock.now() - row["frozen_at"] < _LONGEST_ORDER


async def _tell(connection: Any, ask: Ask[ProvenTenant], kind: str, resource: str, row: Any) -> None:
    if not row["changed"]:
        return
    if row["frozen_at"] is None:
        await tell(connection, ask, f"{kind}.unfrozen", kind, resource)
    else:
        await tell(connection, ask, f"{kind}.frozen", kind, resource, reason=row["frozen_reason"])


def _outcome(what: dict[str, Any], row: Any) -> Done:
    at = row["frozen_at"]
    since = clock.iso(at) if at else None
    return Done(what | {"frozen": at is not None, "frozenAt": since, "reason": row["frozen_reason"]})

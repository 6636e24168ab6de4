"""Freezing an agent or a whole tenant: when the answer leaves, nothing is signed any more.

Every signature locks its agent's row, looks at agent and tenant, and commits. So an agent's freeze, which writes that
row, waits for the signature under way. A tenant's freeze is committed first, and then waits for the rows of all its
agents: who looked at the tenant before has written by then, who looks afterwards finds it frozen.

The operator freezes a tenant beside its people, and each ends only their own freeze; while the operator's holds, the
tenant cannot unfreeze. Either sets `frozen_at`, and signing looks at nothing else.

A waiting request holds a connection, so of several freezes of one target only one goes to the database at a time. The
queue is not that of the agent's orders: an agent that floods its own must be the easiest one to freeze.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from custody.kit import clock
from custody.protocol.refusals import AdministrationMoving, BadProof, TenantAbsent
from custody.protocol.signer.agents import (
    FreezeAgent,
    FreezeTenant,
    FreezeTenantIn,
    FrozenAgent,
    FrozenTenant,
    UnfreezeAgent,
    UnfreezeTenant,
    UnfreezeTenantIn,
)
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.refusals import FrozenByOperator
from custody.webhooks.control_events import AgentFrozen, AgentUnfrozen, TenantFrozen, TenantUnfrozen
from custody.webhooks.payload import Payload, encode_events
from custody.worker.acts import demand_platform_key, enter, remember, tell
from custody.worker.agent_queues import TooManyWaiting
from custody.worker.call import Call
from custody.worker.proven import PLATFORM, ProvenPlatform, ProvenSession, ProvenTenant
from signer.context import Signer

# The queues of freezing a tenant and, below it, each of its agents; no agent can have such an id. The operator has one
# that no tenant can fill.
_FREEZING = "/freezing"
_BY_OPERATOR = "/freezing-by-operator"
# No order is under way for longer: server and pool both end it sooner.
_LONGEST_ORDER = timedelta(minutes=2)
_AGENT = "SELECT changed, frozen_at, frozen_reason FROM freeze_agent($1, $2, $3, $4, $5)"
_TENANT = "SELECT changed, frozen_at, frozen_reason, frozen_by FROM freeze_tenant($1, $2, $3, $4, $5)"
_EMIT = "SELECT emit($1, $2)"
_AWAIT_SIGNATURES = "SELECT await_signatures($1)"


async def freeze_agent(signer: Signer, message: FreezeAgent, call: Call[ProvenTenant]) -> FrozenAgent:
    """Freeze an agent; what is frozen already keeps its first time and reason."""
    return await _set_agent(signer, message.agent, call, clock.now(), message.reason)


async def unfreeze_agent(signer: Signer, message: UnfreezeAgent, call: Call[ProvenSession]) -> FrozenAgent:
    """Unfreeze an agent."""
    return await _set_agent(signer, message.agent, call, None, None)


async def freeze_tenant(signer: Signer, message: FreezeTenant, call: Call[ProvenTenant]) -> FrozenTenant:
    """Freeze the tenant; what is frozen already keeps its first time and reason."""
    return await _set_tenant(signer, call, clock.now(), message.reason)


async def unfreeze_tenant(signer: Signer, message: UnfreezeTenant, call: Call[ProvenSession]) -> FrozenTenant:
    """Let the tenant's agents sign again; FrozenByOperator while the operator's freeze holds."""
    return await _set_tenant(signer, call, None, None)


async def freeze_tenant_in(signer: Signer, message: FreezeTenantIn, call: Call[ProvenPlatform]) -> FrozenTenant:
    """Freeze any tenant, by the operator, beside a freeze of its own."""
    return await _set_tenant_in(signer, message.tenant, call, clock.now(), message.reason)


async def unfreeze_tenant_in(signer: Signer, message: UnfreezeTenantIn, call: Call[ProvenPlatform]) -> FrozenTenant:
    """End the operator's freeze; the tenant's own stays."""
    return await _set_tenant_in(signer, message.tenant, call, None, None)


async def _set_agent(
    signer: Signer, agent: str, call: Call[ProvenTenant], at: datetime | None, reason: str | None
) -> FrozenAgent:
    tenant = call.caller.tenant
    async with (
        _turn(signer, tenant, f"{_FREEZING}/{agent}"),
        signer.pool.acquire() as connection,
        connection.transaction(),
    ):
        row = await connection.fetchrow(_AGENT, tenant, agent, call.caller.standing, at, reason)
        if row is None:
            raise AgentAbsent
        if row["changed"]:
            await _tell(connection, call, "agent", agent, frozen=at is not None, reason=reason)
            await connection.execute(_EMIT, agent, _event(call, (AgentFrozen, AgentUnfrozen), at, reason))
        outcome = FrozenAgent(agent, *_state(row))
        await remember(connection, call, outcome)
    return outcome


async def _set_tenant(
    signer: Signer, call: Call[ProvenTenant], at: datetime | None, reason: str | None
) -> FrozenTenant:
    tenant = call.caller.tenant
    async with _turn(signer, tenant, _FREEZING), signer.pool.acquire() as connection:
        async with connection.transaction():
            row = await connection.fetchrow(_TENANT, tenant, call.caller.standing, "tenant", at, reason)
            if row is None:
                raise BadProof
            if at is None and "operator" in row["frozen_by"]:
                raise FrozenByOperator
            if row["changed"]:
                await _tell(connection, call, "tenant", tenant, frozen=at is not None, reason=reason)
                await connection.execute(_EMIT, None, _event(call, (TenantFrozen, TenantUnfrozen), at, reason))
        return await _answer(connection, call, tenant, row)


async def _set_tenant_in(
    signer: Signer, tenant: str, call: Call[ProvenPlatform], at: datetime | None, reason: str | None
) -> FrozenTenant:
    async with _turn(signer, tenant, _BY_OPERATOR), signer.pool.acquire() as connection:
        async with connection.transaction():
            await demand_platform_key(connection, call)
            row = await connection.fetchrow(_TENANT, tenant, None, "operator", at, reason)
            if row is None:
                raise TenantAbsent
            if row["changed"]:
                await enter(connection, tenant)
                await connection.execute(_EMIT, None, _event(call, (TenantFrozen, TenantUnfrozen), at, reason))
            for log in (tenant, PLATFORM) if row["changed"] else ():
                await enter(connection, log)
                await _tell(connection, call, "tenant", tenant, frozen=at is not None, reason=reason)
        return await _answer(connection, call, tenant, row)


async def _answer(connection: Any, call: Call[Any], tenant: str, row: Any) -> FrozenTenant:
    """The answer, as soon as it is true."""
    outcome = FrozenTenant(tenant, *_state(row), row["frozen_by"])
    async with connection.transaction():
        if _may_be_signed(row):
            await connection.execute(_AWAIT_SIGNATURES, tenant)
        # Only now is the answer true, so only now may a repeated request be given it.
        await remember(connection, call, outcome)
    return outcome


@asynccontextmanager
async def _turn(signer: Signer, tenant: str, queue: str) -> AsyncIterator[None]:
    try:
        async with signer.queues.turn_of(tenant, queue):
            yield
    except TooManyWaiting:
        raise AdministrationMoving from None


def _may_be_signed(row: Any) -> bool:
    """Say whether an order that looked at the tenant before it was frozen can still be under way.

    That another caller froze it proves nothing: that caller may have left before the wait was over.
    """
    return row["frozen_at"] is not None and clock.now() - row["frozen_at"] < _LONGEST_ORDER


async def _tell(
    connection: Any, call: Call[Any], kind: str, resource: str, *, frozen: bool, reason: str | None
) -> None:
    if frozen:
        await tell(connection, call, f"{kind}.frozen", kind, resource, reason=reason)
    else:
        await tell(connection, call, f"{kind}.unfrozen", kind, resource)


def _event(
    call: Call[Any],
    kinds: tuple[type[AgentFrozen | TenantFrozen], type[AgentUnfrozen | TenantUnfrozen]],
    at: datetime | None,
    reason: str | None,
) -> str:
    frozen, thawed = kinds
    by = call.caller.principal
    said: Payload = thawed(by=by) if at is None else frozen(by=by, reason=reason)
    return encode_events(said)


def _state(row: Any) -> tuple[bool, str | None, str | None]:
    """Read whether it is frozen, since when and why."""
    at = row["frozen_at"]
    return at is not None, clock.iso(at) if at else None, row["frozen_reason"]

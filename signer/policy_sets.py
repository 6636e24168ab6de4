"""Make, replace and delete policy sets, each sealed under its next version. Promise P7."""

from typing import Any, Final, NamedTuple, NoReturn

import asyncpg
import msgspec

from custody.kit import clock, ids
from custody.kit.errors import QuotaExceeded
from custody.policies.fleet import EVERY_AGENT
from custody.policies.rules import ParsedRule, parse_set, wire
from custody.policies.tighten import widening
from custody.protocol.signer.order_refusals import PolicyTampered
from custody.protocol.signer.policy_sets import (
    CreatePolicySet,
    DeletedPolicySet,
    DeletePolicySet,
    PolicySet,
    ReplacePolicySet,
)
from custody.protocol.signer.refusals import (
    PoliciesMoving,
    PolicyLoosened,
    PolicySetAbsent,
    PolicySetNamed,
    PolicySetStays,
    UnknownPolicySet,
)
from custody.worker.act import act
from custody.worker.agent_queues import POLICY_SETS, TooManyWaiting
from custody.worker.call import Call
from custody.worker.idempotency import pack
from custody.worker.proven import ProvenAppClient, ProvenTenant
from custody.worker.sealing import Tampered
from signer.context import Signer
from signer.policies import row_of
from signer.policy_events import NOTHING, change_event
from signer.quotas import rules_bytes
from signer.rollback_journal import RolledBack
from signer.set_seals import NO_INCARNATION

MAX_SETS: Final = 100
TRIES: Final = 4
_READ = "SELECT * FROM policy_set_read($1, $2)"
_PUT = "SELECT put_policy_set($1, $2, $3, $4, $5, $6, $7)"
_DELETE = "SELECT delete_policy_set($1, $2, $3, $4)"


class SetRow(NamedTuple):
    """A policy set as it is stored: the SQL type `policy_set`."""

    id: str
    name: str
    version: int
    rules: str
    mac: bytes


class _Change(msgspec.Struct, frozen=True):
    """The wanted name and rules of a set."""

    id: str
    name: str
    rules: tuple[ParsedRule, ...]


async def create(signer: Signer, message: CreatePolicySet, call: Call[ProvenTenant]) -> PolicySet:
    """Make a set, which no agent names yet."""
    return await _put(signer, ids.new_uuid(), message, call)


async def replace(signer: Signer, message: ReplacePolicySet, call: Call[ProvenTenant]) -> PolicySet:
    """Replace name and rules. With an app client the rules may only be tightened."""
    return await _put(signer, message.policy_set, message, call)


async def delete(signer: Signer, message: DeletePolicySet, call: Call[ProvenTenant]) -> DeletedPolicySet:
    """Delete a set that nobody names; one that was tampered with too."""
    tenant, set_id = call.caller.tenant, message.policy_set
    if set_id == EVERY_AGENT:
        raise PolicySetStays
    outcome = DeletedPolicySet(set_id)
    async with signer.pool.acquire() as connection:
        told = tenant, call.caller.standing, act(call, pack(outcome))
        result = await connection.fetchval(_DELETE, *told, set_id)
    if result == "done":
        signer.sets.heads.forget_sets(tenant, set_id)
        return outcome
    raise PolicySetNamed if result == "named" else PolicySetAbsent


def raise_unknown_set(problem: asyncpg.ForeignKeyViolationError) -> NoReturn:
    """Raise UnknownPolicySet where this says that the set is not there, and the error itself otherwise."""
    if problem.constraint_name == "agents_policy_set":
        raise UnknownPolicySet from None
    raise problem


async def _put(
    signer: Signer, set_id: str, message: CreatePolicySet | ReplacePolicySet, call: Call[ProvenTenant]
) -> PolicySet:
    tenant = call.caller.tenant

    def read() -> _Change:
        return _Change(set_id, message.name, parse_set(message.policies, ids.new_uuid))

    await signer.quotas.know(tenant)
    try:
        # In turn, before a connection is taken: reading rules is work, and one tenant may not do it all at once.
        async with signer.queues.turn_of(tenant, POLICY_SETS):
            change = await signer.throttle.run(tenant, POLICY_SETS, read)
            for _ in range(TRIES):
                async with signer.pool.acquire() as connection:
                    is_new = isinstance(message, CreatePolicySet)
                    outcome = await _try(connection, signer, change, call, is_new=is_new)
                    if outcome is not None:
                        return outcome
    except TooManyWaiting:
        raise PoliciesMoving from None
    raise PoliciesMoving


async def _try(
    connection: Any, signer: Signer, change: _Change, call: Call[ProvenTenant], *, is_new: bool
) -> PolicySet | None:
    """One try at the version that was read; None when somebody else was faster."""
    tenant = call.caller.tenant
    row = None if is_new else await connection.fetchrow(_READ, tenant, change.id)
    if row is None and not is_new and change.id != EVERY_AGENT:
        raise PolicySetAbsent
    old = _before(signer, change, call, row, is_new=is_new)
    if isinstance(call.caller, ProvenAppClient) and not is_new and (what := widening(old, change.rules)) is not None:
        raise PolicyLoosened(f"An app client may only tighten a policy set. {what}")
    version = 1 if row is None else row["version"] + 1
    text = msgspec.json.encode([row_of(rule) for rule in change.rules]).decode()
    now = clock.now()
    outcome = PolicySet(
        id=change.id,
        name=change.name,
        version=version,
        policies=[wire(rule) for rule in change.rules],
        agents=0 if row is None else row["named"],
        created_at=clock.iso(now if row is None else row["created_at"]),
        updated_at=clock.iso(now),
    )
    added = rules_bytes(change.rules) - (len(row["rules"]) if row is not None else 0)
    with signer.quotas.hold(tenant, spare=not isinstance(call.caller, ProvenAppClient), policy_bytes=added) as held:
        result = await connection.fetchval(
            _PUT,
            tenant,
            call.caller.standing,
            act(call, pack(outcome), version=version, rules=len(change.rules)),
            SetRow(change.id, change.name, version, text, signer.sets.seal(tenant, change.id, version, text)),
            now,
            MAX_SETS,
            _event(call, change, row, old, version),
        )
        if result == "done":
            held.keep()
    if result == "full":
        raise QuotaExceeded(
            f"This tenant has {MAX_SETS} policy sets, and may have no more; delete one that no agent names.",
            quota="policySets",
            used=MAX_SETS,
            limit=MAX_SETS,
        )
    if result != "done":
        return None
    # Remembered before the answer leaves: what was acknowledged can be noticed when it is rolled back.
    signer.sets.heads.remember(tenant, change.id, NO_INCARNATION, version, of="sets")
    return outcome


def _event(call: Call[ProvenTenant], change: _Change, row: Any, old: tuple[ParsedRule, ...], version: int) -> str:
    # A new set is named by nobody yet; that of every agent applies at once.
    if row is None and change.id != EVERY_AGENT:
        return NOTHING
    known = None if not old and row is not None and row["rules"] != "[]" else old
    return change_event(call.caller, known, change.rules, version, policy_set=change.id)


def _before(
    signer: Signer, change: _Change, call: Call[ProvenTenant], row: Any, *, is_new: bool
) -> tuple[ParsedRule, ...]:
    """The rules as they are; none where the tenant may replace what somebody changed."""
    if is_new:
        return ()
    tenant = call.caller.tenant
    try:
        if row is None:
            signer.sets.heads.check(tenant, change.id, NO_INCARNATION, 0, of="sets")
            return ()
        return signer.sets.open(tenant, change.id, row["version"], row["mac"], row["rules"])
    except RolledBack:
        # Sealing it again would make an older set good.
        raise PolicyTampered from None
    except Tampered:
        if isinstance(call.caller, ProvenAppClient):
            raise PolicyTampered from None
        return ()

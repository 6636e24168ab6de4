"""People's decisions on an intent, and the end of one that nobody decided.

Each step takes the intent's row by the MAC of the state that was read, behind the agent's row where there is an agent:
of two steps at once the second finds another state.
"""

from datetime import datetime
from typing import Any, Final

import msgspec

from custody.intents.payloads import POLICY, SIGNING
from custody.intents.types import MAX_RESULT_BYTES
from custody.kit.errors import Frozen
from custody.protocol.signer.intent_words import IntentStatus
from custody.protocol.signer.intents import AuthorizeIntent, CloseIntent, ExpireIntent, IntentMoved
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.orders import Moved
from custody.protocol.signer.refusals import (
    IntentAbsent,
    IntentChanged,
    IntentClosed,
    IntentNotPending,
    OwnIntent,
    ResultTooLarge,
)
from custody.worker.acts import acting, enter, remember, tell
from custody.worker.audited import vet
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from custody.worker.sealing import fields, sha256
from signer.context import Signer
from signer.intents import seals
from signer.intents.sealed import Sealed

_LOCK: Final = "SELECT lock_agent($1, $2)"
_ANCHOR: Final = "SELECT * FROM agent_anchor($1, $2)"
_AGENT: Final = (
    "SELECT a.name, a.display_name, a.platform_id, a.erc8004_token_id, a.authority_version, "
    "(SELECT string_agg(w.family || ':' || w.address, ' ' ORDER BY w.family) FROM wallets w "
    "WHERE w.tenant_id = $1 AND w.agent_id = $2 AND w.scope = '') AS wallets "
    "FROM agents a WHERE a.tenant_id = $1 AND a.id = $2"
)
_STEP: Final = "SELECT take_step($1, $2)"
_EMIT: Final = "SELECT emit($1, $2)"
_AUDIT: Final = "SELECT audit_append('system', 'expiry', $1, 'intent', $2, $3, $4)"
_ENDS: Final[dict[str, IntentStatus]] = {
    "reject": "rejected",
    "fail": "failed",
    "cancel": "canceled",
    "expire": "expired",
}
_OPEN: Final = ("pending", "authorized")
# How long a node may be asked before the intent counts as interrupted.
INTERRUPTED_SECONDS: Final = 60
# What never stands in a row: whoever reads intents could send it.
_ARTIFACTS: Final = frozenset(
    {
        "signature",
        "signatures",
        "signedtransaction",
        "signed_transaction",
        "signedpsbtbase64",
        "finalizedtxhex",
        "rawtransaction",
        "raw_transaction",
        "raw",
    }
)
_REDACTED: Final = "[redacted]"


class Agent(msgspec.Struct, frozen=True):
    """The agent of an intent, behind its lock: its standing, and what a baseline is made of."""

    incarnation: str
    frozen: bool
    policy_version: int
    authority_version: int
    wallets: str
    named: bytes

    def baseline(self, kind: str) -> str:
        """Name what an intent of this type must find unchanged when it is carried out."""
        if kind in POLICY:
            return f"policies:{self.policy_version}"
        if kind == "quorum_update":
            return f"authority:{self.authority_version}"
        if kind == "wallet_update":
            return f"names:{self.named.hex()}"
        return f"wallets:{self.incarnation}:{self.wallets}" if kind in SIGNING else ""


async def agent_of(connection: Any, intent: Sealed) -> Agent | None:
    """The agent of an intent, behind its lock; None for an intent without one."""
    if intent.agent is None:
        return None
    await connection.execute(_LOCK, intent.tenant, intent.agent)
    return await seen_agent(connection, intent)


async def seen_agent(connection: Any, intent: Sealed) -> Agent:
    """The same without the lock."""
    row = await connection.fetchrow(_ANCHOR, intent.tenant, intent.agent)
    more = await connection.fetchrow(_AGENT, intent.tenant, intent.agent)
    if row is None or more is None or str(row["incarnation"]) != intent.incarnation:
        raise AgentAbsent
    called = () if more["display_name"] is None else (more["display_name"],)
    return Agent(
        intent.incarnation or "",
        row["frozen"],
        row["policy_version"],
        more["authority_version"],
        more["wallets"] or "",
        # A name that most agents have none of stands in no baseline, so that those of before keep theirs.
        sha256(fields(more["name"], more["platform_id"] or "", more["erc8004_token_id"] or "", *called)),
    )


async def authorize(signer: Signer, message: AuthorizeIntent, call: Call[ProvenSession]) -> IntentMoved:
    """Authorise a pending intent of somebody else's, against what is so now."""
    tenant, moved = call.caller.tenant, IntentMoved(message.id)
    async with acting(signer, call) as connection:
        # First by itself, to know which agent's row to take before the intent's.
        _, intent = await seals.read(signer, connection, tenant, message.id)
        agent = await agent_of(connection, intent)
        row, intent = await seals.read(signer, connection, tenant, message.id, lock=True)
        _demand(intent, ("pending",), row["now"], message.digest)
        if intent.created_by == call.caller.principal:
            raise OwnIntent
        if agent is not None and agent.frozen:
            raise Frozen
        step = seals.step(
            signer,
            intent,
            row["mac"],
            "authorized",
            reason=message.reason,
            baseline=agent.baseline(intent.type) if agent is not None else "",
            authorized_by=call.caller.user,
            authorized_at=row["now"],
        )
        await take(connection, call, intent, step, reason=message.reason)
        await remember(connection, call, moved)
    return moved


async def close(signer: Signer, message: CloseIntent, call: Call[ProvenSession]) -> IntentMoved:
    """End an intent that was not carried out; it never will be."""
    tenant, moved, status = call.caller.tenant, IntentMoved(message.id), _ENDS[message.act]
    result = None if message.result is None else redact(message.result)
    if result is not None and len(msgspec.json.encode(result)) > MAX_RESULT_BYTES:
        raise ResultTooLarge(fields=["executionResult"])
    async with acting(signer, call) as connection:
        _, intent = await seals.read(signer, connection, tenant, message.id)
        if intent.agent is not None:
            await connection.execute(_LOCK, tenant, intent.agent)
        row, intent = await seals.read(signer, connection, tenant, message.id, lock=True)
        _demand(intent, ("pending",) if message.act == "reject" else _OPEN, row["now"], message.digest)
        step = seals.step(signer, intent, row["mac"], status, result=result, reason=message.reason)
        await take(connection, call, intent, step, reason=message.reason)
        await remember(connection, call, moved)
    return moved


async def expire(signer: Signer, message: ExpireIntent, call: Call[None]) -> Moved:
    """End an intent whose time is up, or whose node was never heard of; `unchanged` if neither is so."""
    async with signer.pool.acquire() as connection, connection.transaction():
        await enter(connection, message.tenant)
        try:
            row, intent = await seals.read(signer, connection, message.tenant, message.intent, lock=True)
        except IntentAbsent:
            return Moved("unchanged")
        if intent.status == "executing":
            waited = (row["now"] - row["updated_at"]).total_seconds()
            status: IntentStatus = "failed"
            result = {"code": "interrupted", "message": "Nobody heard what the node answered; propose it again."}
            due = waited >= INTERRUPTED_SECONDS
        else:
            status, result = "expired", None
            due = intent.status in _OPEN and intent.expires_at <= row["now"]
        if not due:
            return Moved("unchanged")
        step = seals.step(signer, intent, row["mac"], status, result=result)
        if not await connection.fetchval(_STEP, message.tenant, step):
            return Moved("unchanged")
        await connection.execute(_AUDIT, vet(f"intent.{status}"), intent.id, step.told, call.origin_row)
        await connection.execute(_EMIT, intent.agent, step.events)
    return Moved(status)


async def take(connection: Any, call: Call[Any], intent: Sealed, step: Any, *, reason: str | None = None) -> None:
    """Take a step in the caller's transaction, and tell of it."""
    if not await connection.fetchval(_STEP, intent.tenant, step):
        # Behind the row's lock nobody else moved it: its time was up in between.
        raise IntentClosed("This intent has expired.")
    said = seals.log_fields(intent) if reason is None else {**seals.log_fields(intent), "reason": reason}
    await tell(connection, call, f"intent.{step.status}", "intent", intent.id, **said)
    await connection.execute(_EMIT, intent.agent, step.events)


def _demand(intent: Sealed, states: tuple[str, ...], now: datetime, digest: str | None) -> None:
    """Raise unless the intent is in one of these states, in time, and what the person read."""
    if intent.status not in (*_OPEN, "executing") or (intent.status in _OPEN and intent.expires_at <= now):
        shown = intent.status if intent.status not in _OPEN else "expired"
        raise IntentClosed(f"This intent is over already: it is {shown}.", status=shown)
    if intent.status == "executing" and states == _OPEN:
        raise IntentClosed("A node is being asked for this intent; that ends within a minute.", status=intent.status)
    if intent.status not in states:
        raise IntentNotPending(f"This intent is not pending any more: it is {intent.status}.", status=intent.status)
    if digest is not None and digest != intent.digest.hex():
        raise IntentChanged


def redact(value: Any) -> Any:
    """A result without anything that was signed."""
    if isinstance(value, dict):
        return {name: _REDACTED if str(name).lower() in _ARTIFACTS else redact(one) for name, one in value.items()}
    return [redact(one) for one in value] if isinstance(value, list) else value

"""An authorised intent is carried out: the path that a direct request takes, with the intent claimed in the same write.

What signs is judged by today's rules and spend, and needs today's wallet. What changes rules, names or quorums needs
them as they were when it was authorised; anything else is `stale_state`, and it must be proposed again.
"""

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET

from custody.chains.evm.action_orders import CallsOrder, TransferOrder
from custody.chains.evm.orders import EvmOrder
from custody.identity.roles import ADMINS
from custody.intents import payloads
from custody.intents.payloads import POLICY, Payload, RpcCall, WalletUpdate
from custody.kit.answers import Answered
from custody.kit.errors import Frozen, Invalid, NotFound
from custody.kit.logs import logger
from custody.kit.refs import AgentRef
from custody.protocol.signer.intent_words import IntentStatus
from custody.protocol.signer.intents import (
    AskNode,
    ExecuteIntent,
    FinishIntent,
    IntentExecuted,
    IntentMoved,
    IntentStays,
)
from custody.protocol.signer.order_refusals import Busy
from custody.protocol.signer.outcomes import BatchSigned, NeedsPreparation, Refused, Signed
from custody.protocol.signer.refusals import AuthorizationStale, IntentNotAuthorized, IntentTampered, QuorumRevoked
from custody.worker.acts import acting, remember
from custody.worker.call import Call
from custody.worker.idempotency import earlier
from custody.worker.proven import ProvenSession
from signer import agents
from signer.context import Signer
from signer.guarded_write import Unclaimed
from signer.intents import policy_changes, quorum_changes, seals
from signer.intents.claims import Claimed, StaleState
from signer.intents.decisions import agent_of, redact, seen_agent, take
from signer.intents.runs import IntentRun
from signer.intents.sealed import Sealed
from signer.orders.kind import Inputs
from signer.signing_attempt import SigningAttempt
from signer.together import settle

log = logger(__name__)
type Executed = IntentExecuted | IntentStays | AskNode | NeedsPreparation
_MEMBER: Final = (
    "SELECT m.role, m.created_at, m.mac FROM memberships m JOIN users u ON u.id = m.user_id "
    "AND u.deactivated_at IS NULL WHERE m.tenant_id = $1 AND m.user_id = $2"
)
# What no other try would change: such an intent fails. Anything else leaves it authorised.
_FINAL: Final = (Invalid, NotFound, QuorumRevoked)
_SCOPE: Final = "SELECT set_config('custody.tenant', $1, true)"
_STALE: Final = {
    "code": "stale_state",
    "message": "What it was authorised against has changed since; propose it again.",
}
_MADE: Final = "SELECT EXISTS (SELECT FROM transactions WHERE tenant_id = $1 AND id = ANY ($2::uuid[]))"
_decode = msgspec.msgpack.Decoder(IntentExecuted | AskNode | Signed | Refused | BatchSigned).decode


async def execute(signer: Signer, message: ExecuteIntent, call: Call[ProvenSession]) -> Answered[Executed]:
    """Carry out an authorised intent; what fails fails for good, and what only has to wait stays authorised."""
    if (answer := await earlier(signer, call)) is not None:
        return Answered(_replay(message.id, answer), replayed=True)
    tenant = call.caller.tenant
    async with signer.pool.acquire() as connection, connection.transaction():
        await connection.execute(_SCOPE, tenant)
        row, intent = await seals.read(signer, connection, tenant, message.id)
        await _demand(signer, connection, intent, row["now"])
        agent = await seen_agent(connection, intent) if intent.agent is not None else None
        if await connection.fetchval(_MADE, tenant, list(intent.tx_ids)):
            # Carried out between the two looks; or its row was put back as it was, but what it signed is there.
            row, intent = await seals.read(signer, connection, tenant, message.id)
            await _demand(signer, connection, intent, row["now"])
            log.error("intent refused: it was carried out before", extra={"tenant": tenant, "intent_id": intent.id})
            raise IntentTampered
    if agent is not None and agent.frozen:
        raise Frozen
    payload = _payload(intent)
    if isinstance(payload, EvmOrder | TransferOrder | CallsOrder):
        if agent is not None and agent.baseline(intent.type) == intent.baseline:
            return await _sign(signer, message, call, payload, intent, row["mac"])
        return Answered(await _fail(signer, call, message.id, _STALE))
    if isinstance(payload, RpcCall):
        return Answered(await _ask(signer, call, message.id, payload))
    return Answered(await _change(signer, call, message.id, payload))


async def _demand(signer: Signer, connection: Any, intent: Sealed, now: datetime) -> None:
    """Raise unless the intent is authorised, in time, and by a person who still may."""
    if intent.status != "authorized" or intent.expires_at <= now:
        shown = "expired" if intent.status in ("pending", "authorized") and intent.expires_at <= now else intent.status
        raise IntentNotAuthorized(f"Only an authorised intent is executed; this one is {shown}.", status=shown)
    row = await connection.fetchrow(_MEMBER, intent.tenant, intent.authorized_by)
    if (
        row is None
        or row["role"] not in ADMINS
        or not signer.proofs.is_member(
            intent.tenant, intent.authorized_by or "", row["role"], row["created_at"], row["mac"]
        )
    ):
        raise AuthorizationStale("Who authorised this intent is no owner or admin any more; cancel it.")


def _payload(intent: Sealed) -> Payload:
    if payloads.digest_of(intent.type, intent.payload) != intent.digest:
        raise IntentTampered
    return payloads.read(intent.type, msgspec.json.decode(intent.payload))


async def _sign(
    signer: Signer, message: ExecuteIntent, call: Call[ProvenSession], order: Any, intent: Sealed, mac: bytes
) -> Answered[Executed]:
    """The path of every order, with fixed ids, so that none is ever signed twice."""
    ref = AgentRef(intent.tenant, intent.agent or "")

    def attempt() -> SigningAttempt:
        kind = signer.kinds.of(order)
        # Whether unlisted calls may be let pass is asked where they are proposed; a person let these pass.
        inputs = Inputs(signer.chains, message.prepared, approving=True, unsafe_calls=signer.allow_unsafe_calls)
        draft = kind.check(order, inputs)
        way = IntentRun(signer, intent, mac)
        return SigningAttempt(ref=ref, tx_id=intent.tx_ids[0], kind=kind, draft=draft, call=call, way=way)

    try:
        answered = await settle(signer, ref, attempt)
    except Unclaimed:
        # Somebody else was faster: say what became of it.
        async with signer.pool.acquire() as connection, connection.transaction():
            await connection.execute(_SCOPE, intent.tenant)
            row, now = await seals.read(signer, connection, intent.tenant, intent.id)
            await _demand(signer, connection, now, row["now"])
        raise Busy from None
    outcome = answered.answer
    if isinstance(outcome, NeedsPreparation):
        return Answered(outcome)
    if isinstance(outcome, Refused) and (outcome.room is not None or outcome.lacks_votes):
        return Answered(IntentStays(intent.id, outcome.results, outcome.reason, outcome.room))
    return Answered(_execution_of(intent.id, outcome), answered.replayed)


def _execution_of(intent_id: str, outcome: object) -> IntentExecuted:
    if isinstance(outcome, Signed):
        return IntentExecuted(intent_id, [outcome])
    if isinstance(outcome, BatchSigned):
        return IntentExecuted(intent_id, outcome.signed)
    if isinstance(outcome, Refused):
        return IntentExecuted(intent_id)
    raise TypeError(f"an intent came to {type(outcome).__name__}")


def _replay(intent_id: str, answer: bytes) -> Executed:
    """Read what the same request was answered; an order's own answer is kept with the order."""
    found = _decode(answer)
    return found if isinstance(found, IntentExecuted | AskNode) else _execution_of(intent_id, found)


async def _change(signer: Signer, call: Call[ProvenSession], intent_id: str, payload: Payload) -> IntentExecuted:
    """A change of rules, names or quorums, with the intent's last step in the same transaction."""
    done = IntentExecuted(intent_id)
    tenant = call.caller.tenant

    async def claim(connection: Any, result: dict[str, Any]) -> None:
        """Claim the intent, in the transaction that changes what it changes; raises where it is not as it was."""
        await agent_of(connection, intent)
        row, found = await seals.read(signer, connection, tenant, intent_id, lock=True)
        await _demand(signer, connection, found, row["now"])
        await take(connection, call, found, seals.step(signer, found, row["mac"], "executed", result=result))
        await remember(connection, call, done)

    async with signer.pool.acquire() as connection, connection.transaction():
        await connection.execute(_SCOPE, tenant)
        _, intent = await seals.read(signer, connection, tenant, intent_id)
    try:
        if intent.type in POLICY:
            await policy_changes.carry_out(signer, call, intent, payload, claim)
        elif isinstance(payload, WalletUpdate):
            await _rename(signer, call, intent, payload, claim)
        else:
            await quorum_changes.carry_out(signer, call, intent, payload, claim)
    except StaleState:
        return await _fail(signer, call, intent_id, _STALE)
    except _FINAL as problem:
        return await _fail(signer, call, intent_id, {"code": problem.code, "message": problem.message})
    return done


async def _rename(
    signer: Signer, call: Call[ProvenSession], intent: Sealed, payload: WalletUpdate, claimed: Claimed
) -> None:
    """Change what people and platforms call the agent, unless somebody changed any of it meanwhile."""
    async with acting(signer, call) as connection:
        agent = await agent_of(connection, intent)
        if agent is None or agent.baseline(intent.type) != intent.baseline:
            raise StaleState
        name = None if payload.name is UNSET else payload.name
        others = payload.display_name, payload.platform_id, payload.erc8004_token_id
        await agents.rename(connection, call, intent.agent or "", name, *others)
        changed = [one for one, value in msgspec.structs.asdict(payload).items() if value is not UNSET]
        await claimed(connection, {"status": "changed", "fields": changed})


async def _fail(signer: Signer, call: Call[ProvenSession], intent_id: str, result: dict[str, Any]) -> IntentExecuted:
    """Write down that it failed; where it was moved meanwhile, raise what became of it."""
    done = IntentExecuted(intent_id)
    async with acting(signer, call) as connection:
        _, intent = await seals.read(signer, connection, call.caller.tenant, intent_id)
        await agent_of(connection, intent)
        row, intent = await seals.read(signer, connection, call.caller.tenant, intent_id, lock=True)
        await _demand(signer, connection, intent, row["now"])
        await take(connection, call, intent, seals.step(signer, intent, row["mac"], "failed", result=result))
        await remember(connection, call, done)
    return done


async def _ask(signer: Signer, call: Call[ProvenSession], intent_id: str, payload: RpcCall) -> AskNode:
    """The api asks the node between two writes: only then is an intent seen executing."""
    asked = AskNode(intent_id, payload.method, payload.params, payload.chain_id)
    async with acting(signer, call) as connection:
        row, intent = await seals.read(signer, connection, call.caller.tenant, intent_id, lock=True)
        await _demand(signer, connection, intent, row["now"])
        await take(connection, call, intent, seals.step(signer, intent, row["mac"], "executing"))
        # A repetition is answered with what became of it, and asks no node again.
        await remember(connection, call, IntentExecuted(intent_id))
    return asked


async def finish(signer: Signer, message: FinishIntent, call: Call[ProvenSession]) -> IntentMoved:
    """Record what a node answered."""
    moved, tenant = IntentMoved(message.id), call.caller.tenant
    result: dict[str, Any] = (
        {"code": "node_failed", "message": message.problem or "The node did not answer."}
        if message.result is None
        else {"result": redact(msgspec.json.decode(message.result))}
    )
    async with acting(signer, msgspec.structs.replace(call, key=None)) as connection:
        row, intent = await seals.read(signer, connection, tenant, message.id, lock=True)
        if intent.status != "executing":
            raise IntentNotAuthorized(
                f"This intent is not being executed; it is {intent.status}.", status=intent.status
            )
        status: IntentStatus = "failed" if message.result is None else "executed"
        await take(connection, call, intent, seals.step(signer, intent, row["mac"], status, result=result))
    return moved

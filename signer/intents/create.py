"""New intents. What is proposed is read strictly, and written down in the one spelling that will be carried out."""

from datetime import UTC, datetime, timedelta

import msgspec

from custody.chains.evm.action_orders import CallsOrder, TransferOrder
from custody.chains.evm.orders import EvmOrder
from custody.identity.roles import ADMINS
from custody.intents import payloads
from custody.intents.payloads import BadPayload, Payload
from custody.intents.types import MAX_TTL_SECONDS, BadIntentExpiry, TtlTooLong
from custody.kit import ids
from custody.policies.rules import parse
from custody.protocol.signer.intents import CreateIntent, IntentMoved
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.refusals import PersonRequired, TooManyIntents, WalletOfPerson
from custody.protocol.signer.user_wallets import is_anothers
from custody.worker.acts import acting, remember, tell
from custody.worker.call import Call
from custody.worker.proven import ProvenSession, ProvenTenant
from signer.context import Signer
from signer.intents import seals
from signer.intents.sealed import Sealed
from signer.orders.kind import Inputs

# Of a tenant, at once.
MAX_OPEN = 1_000
_OPEN = (
    "SELECT count(*) FROM (SELECT FROM intents WHERE tenant_id = $1 AND status IN ('pending', 'authorized', "
    "'executing') LIMIT $2) o"
)
_LOCK = "SELECT lock_agent($1, $2)"
_ANCHOR = "SELECT * FROM agent_anchor($1, $2)"
_PUT = "SELECT put_intent($1, $2)"
_EMIT = "SELECT emit($1, $2)"
_COUNT = (
    "UPDATE agents SET day_orders = CASE WHEN day = utc_day() THEN day_orders ELSE 0 END, "
    "day_bytes = CASE WHEN day = utc_day() THEN day_bytes ELSE 0 END + $3, day = utc_day() "
    "WHERE tenant_id = $1 AND id = $2"
)


async def create(signer: Signer, message: CreateIntent, call: Call[ProvenTenant]) -> IntentMoved:
    """Propose something. It grants nothing: another person's word, and today's rules, decide when it is carried out."""
    caller = call.caller
    if message.agent is not None and is_anothers(message.agent, caller.tenant, None):
        raise WalletOfPerson
    if message.kind in payloads.CONTROL_PLANE:
        if not isinstance(caller, ProvenSession):
            raise PersonRequired
        caller.need(ADMINS, "intents")
    payload = _read(signer, message)
    text = payloads.text_of(message.kind, payload)
    written = seals.ROW_BYTES + len(text)
    moved = IntentMoved(message.id)
    await signer.quotas.know(caller.tenant)
    with signer.quotas.hold(caller.tenant, bytes_per_day=written) as held:
        async with acting(signer, call) as connection:
            incarnation = None
            if message.agent is not None:
                await connection.execute(_LOCK, caller.tenant, message.agent)
                row = await connection.fetchrow(_ANCHOR, caller.tenant, message.agent)
                if row is None:
                    raise AgentAbsent
                incarnation = str(row["incarnation"])
                await connection.execute(_COUNT, caller.tenant, message.agent, written)
            if await connection.fetchval(_OPEN, caller.tenant, MAX_OPEN) >= MAX_OPEN:
                raise TooManyIntents
            now: datetime = await connection.fetchval("SELECT service_now()")
            intent = Sealed(
                tenant=caller.tenant,
                id=message.id,
                agent=message.agent,
                incarnation=incarnation,
                type=message.kind,
                payload=text,
                digest=payloads.digest_of(message.kind, text),
                status="pending",
                created_by=caller.principal,
                tx_ids=_tx_ids(payload),
                expires_at=_expiry(message, now),
            )
            new = seals.new_row(signer, intent, now, _reference(payload))._replace(
                resource_type=message.resource_type, resource_id=message.resource_id, created_by_name=message.name
            )
            await connection.execute(_PUT, caller.tenant, new)
            await tell(connection, call, "intent.created", "intent", intent.id, **seals.log_fields(intent))
            await connection.execute(_EMIT, message.agent, seals.event(intent))
            await remember(connection, call, moved)
        held.keep()
    return moved


def _read(signer: Signer, message: CreateIntent) -> Payload:
    """The payload as it will be carried out: every rule named, every chain written down."""
    if message.agent is None and message.kind != "rpc":
        raise BadPayload("agentId is required for this type of intent.", fields=["agentId"])
    try:
        payload = payloads.complete(payloads.read(message.kind, message.payload), ids.new_uuid)
    except msgspec.ValidationError as problem:
        raise BadPayload(f"payload: {problem}.", fields=["payload"]) from None
    if isinstance(payload, EvmOrder | TransferOrder | CallsOrder):
        draft = signer.kinds.of(payload).check(payload, Inputs(signer.chains))
        if draft.chain is not None:
            payload = msgspec.structs.replace(payload, chain_id=draft.chain.id)
    # What no rule set could ever have is refused now, and not when somebody has authorised it.
    rules = payload.policies if isinstance(payload, payloads.PolicyUpdate) else []
    if isinstance(payload, payloads.RuleCreate | payloads.RuleUpdate) and payload.rule is not None:
        rules = [payload.rule]
    parse(rules, ids.new_uuid)
    return payload


def _tx_ids(payload: Payload) -> tuple[str, ...]:
    """Fresh ids of the transactions that it becomes: none of them is ever made twice."""
    if isinstance(payload, CallsOrder):
        return tuple(ids.new_uuid() for _ in payload.calls)
    return (ids.new_uuid(),) if isinstance(payload, EvmOrder | TransferOrder) else ()


def _reference(payload: Payload) -> str | None:
    return payload.reference_id if isinstance(payload, EvmOrder | TransferOrder | CallsOrder) else None


def _expiry(message: CreateIntent, now: datetime) -> datetime:
    if message.expires_at is None:
        return now + timedelta(seconds=message.ttl_seconds)
    try:
        found = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=message.expires_at)
    except OverflowError:
        raise TtlTooLong from None
    if found <= now:
        raise BadIntentExpiry
    if found > now + timedelta(seconds=MAX_TTL_SECONDS):
        raise TtlTooLong
    return found

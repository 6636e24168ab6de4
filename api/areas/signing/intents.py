"""Propose, decide and execute intents, for a caller of the api."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from api.areas.agents import shown
from api.areas.signing.prepare import Preparation, RpcUnavailable, prepare
from api.areas.signing.request import send_if_asked
from custody.chains.evm.action_orders import CallsOrder, TransferOrder
from custody.chains.evm.orders import EvmOrder
from custody.intents import payloads, store
from custody.intents.payloads import BadPayload, Payload
from custody.intents.types import (
    DEFAULT_TTL_SECONDS,
    MAX_TTL_SECONDS,
    AuthorizationDetailsUnsupported,
    BadIntentExpiry,
    DecisionBody,
    FailBody,
    Intent,
    NewIntentBody,
    Throttling,
    TtlTooLong,
    TwoExpiries,
    VotesMissing,
)
from custody.kit import clock, ids, stages
from custody.kit.answer_kinds import Declined, Throttled
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller, TenantCaller
from custody.kit.errors import CustodyError, Invalid, UpstreamFailed
from custody.kit.refs import AgentRef
from custody.kit.spellings import either
from custody.kit.tasks import run_to_completion
from custody.kit.validation import explain
from custody.policies.rules import invalid_rule
from custody.ports import Ports
from custody.protocol.signer.intent_words import IntentType
from custody.protocol.signer.intents import (
    AskNode,
    AuthorizeIntent,
    CloseIntent,
    CreateIntent,
    ExecuteIntent,
    FinishIntent,
    IntentExecuted,
    IntentStays,
)
from custody.protocol.signer.order_refusals import AgentAbsent

type Executed = Intent | Throttled[Throttling] | Declined[VotesMissing]
# What a node says is kept with the intent.
MAX_ANSWER_BYTES = 256 * 1024


class IntentTypeRequired(Invalid):
    """intentType is required."""


class PayloadTooLarge(Invalid):
    """The payload of an intent has at most 300,000 bytes."""


async def create(ports: Ports, caller: TenantCaller, body: NewIntentBody) -> Answered[Intent]:
    """Propose something, read strictly now: what cannot be carried out is never authorised."""
    if body.authorization_details or body.authorization_details_:
        raise AuthorizationDetailsUnsupported
    kind: IntentType | None = either("intentType", body.intent_type, body.intent_type_)
    if kind is None:
        raise IntentTypeRequired(fields=["intentType"])
    if len(msgspec.json.encode(body.payload)) > payloads.MAX_PAYLOAD_BYTES:
        raise PayloadTooLarge(fields=["payload"])
    read_payload(kind, body.payload)
    expires_at, ttl_seconds = _expiry(body)
    message = CreateIntent(
        ids.new_uuid(),
        kind,
        either("agentId", body.agent_id, body.wallet_id),
        body.payload,
        either("resourceType", body.resource_type, body.resource_type_),
        either("resourceId", body.resource_id, body.resource_id_),
        either("createdByDisplayName", body.created_by_display_name, body.created_by_display_name_),
        expires_at,
        ttl_seconds,
    )
    answered = await ports.workers.ask(message, caller)
    return Answered(await store.get(ports.pool, caller.tenant, answered.answer.id), answered.replayed)


def read_payload(kind: str, payload: dict[str, Any]) -> Payload:
    """The payload, or a sentence that names the field and the cure."""
    try:
        return payloads.read(kind, payload)
    except msgspec.ValidationError as problem:
        if (rule := invalid_rule(problem)) is not None:
            raise rule from None
        shape, _ = payloads.shape_of(kind, payload)
        wrong = explain(problem, shape)
        place = f"payload.{wrong.place}" if wrong.place else "payload"
        raise BadPayload(f"{place} {wrong.says}.", fields=[place]) from None


async def authorize(ports: Ports, caller: SessionCaller, intent_id: str, body: DecisionBody) -> Answered[Intent]:
    """Authorise a pending intent."""
    answered = await ports.workers.ask(AuthorizeIntent(intent_id, body.digest, body.reason), caller)
    return Answered(await store.get(ports.pool, caller.tenant, intent_id), answered.replayed)


async def reject(ports: Ports, caller: SessionCaller, intent_id: str, body: DecisionBody) -> Answered[Intent]:
    """Reject a pending intent."""
    return await _close(ports, caller, CloseIntent(intent_id, "reject", body.digest, body.reason))


async def fail(ports: Ports, caller: SessionCaller, intent_id: str, body: FailBody) -> Answered[Intent]:
    """Close an intent as failed, with a result of the operator's own."""
    result = either("executionResult", body.execution_result, body.execution_result_)
    return await _close(ports, caller, CloseIntent(intent_id, "fail", result=result))


async def cancel(ports: Ports, caller: SessionCaller, intent_id: str) -> Answered[Intent]:
    """Cancel an intent that was not carried out."""
    return await _close(ports, caller, CloseIntent(intent_id, "cancel"))


async def expire(ports: Ports, caller: SessionCaller, intent_id: str) -> Answered[Intent]:
    """End an intent before its time."""
    return await _close(ports, caller, CloseIntent(intent_id, "expire"))


async def _close(ports: Ports, caller: SessionCaller, message: CloseIntent) -> Answered[Intent]:
    answered = await ports.workers.ask(message, caller)
    return Answered(await store.get(ports.pool, caller.tenant, message.id), answered.replayed)


async def carry_out(ports: Ports, caller: SessionCaller, intent_id: str) -> Answered[Executed]:
    """Carry out an authorised intent; once the signer was asked, the caller hanging up changes nothing."""
    intent = await store.get(ports.pool, caller.tenant, intent_id)
    return await run_to_completion(_carry_out(ports, caller, intent), "intent")


async def _carry_out(ports: Ports, caller: SessionCaller, intent: Intent) -> Answered[Executed]:
    if intent.intent_type == "rpc":
        # Before the signer begins with it: an intent that was begun ends.
        (await ports.node_shares.of(ports.pool, caller.tenant)).spend_look(1)
    preparation = await _prepare(ports, caller.tenant, intent)
    with stages.time_stage("signer"):
        answered = await ports.workers.ask(ExecuteIntent(intent.id, preparation.prepared), caller)
    match answered.answer:
        case IntentExecuted() as executed:
            ref = AgentRef(caller.tenant, intent.agent_id or "")
            for one in executed.signed:
                await send_if_asked(ports, ref, one, replayed=answered.replayed)
        case IntentStays() as stays:
            return Answered(_stays(stays), answered.replayed)
        case AskNode() as asked:
            await _ask_node(ports, caller, asked)
        case _:
            raise preparation.problem or UpstreamFailed
    return Answered(await store.get(ports.pool, caller.tenant, intent.id), answered.replayed)


def _stays(stays: IntentStays) -> Executed:
    if (room := stays.room) is not None:
        data = Throttling(stays.id, stays.results)
        return Throttled(data, stays.reason, retry_after=room.seconds, limit=room.limit)
    return Declined(VotesMissing(stays.id, stays.results), stays.reason)


async def _prepare(ports: Ports, tenant: str, intent: Intent) -> Preparation:
    """Ask a node about what is about to be signed; nothing for what is not."""
    if intent.status != "authorized" or intent.intent_type not in payloads.SIGNING:
        return Preparation()
    order = payloads.read(intent.intent_type, intent.payload)
    if not isinstance(order, EvmOrder | TransferOrder | CallsOrder):
        return Preparation()

    async def sender(family: str) -> str:
        try:
            return (await shown.get(ports, AgentRef(tenant, intent.agent_id or ""))).wallet_addresses.of(family)
        except AgentAbsent:
            return ""

    return await prepare(ports, tenant, order, sender)


async def _ask_node(ports: Ports, caller: SessionCaller, asked: AskNode) -> None:
    """Ask, and have the signer write down what was answered; what is cut off here is ended by the scheduler."""
    result, problem = None, None
    try:
        chain = ports.chains.find(asked.chain_id)
        allowed = payloads.EVM_METHODS if chain is not None and chain.family == "evm" else payloads.SOLANA_METHODS
        if chain is None or not chain.rpc_urls:
            raise RpcUnavailable
        if asked.method not in allowed:
            problem = f"{asked.method} is no method of {chain.name}."
        else:
            params = asked.params if isinstance(asked.params, list) else [asked.params]
            rpc = ports.rpc.looking(await ports.node_shares.of(ports.pool, caller.tenant), paid=True)
            found = msgspec.json.encode(await rpc.call(chain.rpc_urls, asked.method, params))
            if len(found) > MAX_ANSWER_BYTES:
                problem = "The node's answer has more than 256 KiB."
            else:
                result = found.decode()
    except CustodyError as failed:
        problem = failed.message[:1000]
    await ports.workers.ask(FinishIntent(asked.id, result, problem), msgspec.structs.replace(caller, idempotency=None))


def _expiry(body: NewIntentBody) -> tuple[int | None, int]:
    """The moment in Unix microseconds, or the seconds from now on."""
    ttl_seconds = either("ttlSeconds", body.ttl_seconds, body.ttl_seconds_)
    moment = either(
        "expiresAt", _moment(body.expires_at), None if body.expires_at_ is None else body.expires_at_ * 1000
    )
    if moment is not None and ttl_seconds is not None:
        raise TwoExpiries(fields=["expiresAt", "ttlSeconds"])
    if ttl_seconds is not None and ttl_seconds > MAX_TTL_SECONDS:
        raise TtlTooLong(fields=["ttlSeconds"])
    return moment, ttl_seconds or DEFAULT_TTL_SECONDS


def _moment(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadIntentExpiry(fields=["expiresAt"]) from None
    if found.tzinfo is None:
        raise BadIntentExpiry(fields=["expiresAt"])
    return clock.unix_microseconds(found.astimezone(UTC))

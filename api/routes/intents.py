"""Intents: what is proposed, authorised by a person, and then carried out."""

from api.areas.signing import intents
from api.areas.signing.intents import Executed, IntentTypeRequired, PayloadTooLarge
from api.http.bodies import MAX_INTENT_BODY, MAX_METADATA_BODY
from api.http.endpoint import Routes
from api.http.who import asking, tenant_read
from api.routes.vault.refusals import EVM, NODE, TRANSFER
from custody.chains.evm.calls import CallsTooLong, EmptyCall
from custody.intents import store
from custody.intents.listed import IntentList, IntentQuery
from custody.intents.payloads import AllRules, BadPayload, RpcMethodNotAllowed
from custody.intents.types import (
    AuthorizationDetailsUnsupported,
    BadIntentExpiry,
    DecisionBody,
    FailBody,
    Intent,
    NewIntentBody,
    TtlTooLong,
    TwoExpiries,
)
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller, TenantCaller
from custody.kit.spellings import AliasConflict
from custody.ports import Ports
from custody.protocol.signer.intents import AuthorizeIntent, CloseIntent, CreateIntent, ExecuteIntent
from custody.protocol.signer.refusals import (
    IntentAbsent,
    IntentNotPending,
    ResultTooLarge,
)

routes = Routes("/intents", tag="Intents")


@routes.post(
    "",
    who=asking(CreateIntent),
    status=201,
    max_body=MAX_INTENT_BODY,
    fails=(
        *EVM,
        *TRANSFER,
        AllRules,
        AuthorizationDetailsUnsupported,
        BadIntentExpiry,
        BadPayload,
        CallsTooLong,
        EmptyCall,
        IntentTypeRequired,
        PayloadTooLarge,
        RpcMethodNotAllowed,
        TtlTooLong,
        TwoExpiries,
    ),
)
async def create_intent(ports: Ports, caller: TenantCaller, body: NewIntentBody) -> Answered[Intent]:
    """Propose something. Another owner or admin authorises it, and then it can be executed.

    Only an owner or admin who is signed in, never a key, proposes changes of rules, names or quorums.
    """
    return await intents.create(ports, caller, body)


@routes.get("", who=tenant_read)
async def list_intents(ports: Ports, caller: TenantCaller, query: IntentQuery) -> IntentList:
    """List intents, newest first; every filter that is given must match. Long payloads and results come on demand."""
    return await store.all_of(ports.pool, caller.tenant, query)


@routes.get("/<intent_id>", who=tenant_read, fails=(IntentAbsent,))
async def get_intent(ports: Ports, caller: TenantCaller, intent_id: str) -> Intent:
    """Get an intent and what has become of it; after a time-out, read it before you execute it again."""
    return await store.get(ports.pool, caller.tenant, intent_id)


@routes.post("/<intent_id>/authorize", who=asking(AuthorizeIntent))
async def authorize_intent(ports: Ports, caller: SessionCaller, intent_id: str, body: DecisionBody) -> Answered[Intent]:
    """Authorise a pending intent that somebody else proposed, against rules and wallets as they are now."""
    return await intents.authorize(ports, caller, intent_id, body)


@routes.post("/<intent_id>/approve", who=asking(AuthorizeIntent))
async def approve_intent(ports: Ports, caller: SessionCaller, intent_id: str, body: DecisionBody) -> Answered[Intent]:
    """Authorise a pending intent; another name of `/authorize`."""
    return await intents.authorize(ports, caller, intent_id, body)


@routes.post("/<intent_id>/reject", who=asking(CloseIntent), fails=(IntentNotPending,))
async def reject_intent(ports: Ports, caller: SessionCaller, intent_id: str, body: DecisionBody) -> Answered[Intent]:
    """Reject a pending intent; it is never carried out."""
    return await intents.reject(ports, caller, intent_id, body)


@routes.post("/<intent_id>/execute", who=asking(ExecuteIntent), fails=(*NODE, *EVM, *TRANSFER))
async def execute_intent(ports: Ports, caller: SessionCaller, intent_id: str) -> Answered[Executed]:
    """Carry out an authorised intent, judged by today's rules; the answer is the intent with its `executionResult`.

    An intent whose rules, names or quorums changed since it was authorised fails as `stale_state`. A batch of calls
    goes out as one transaction for each call, and is not atomic on the chain.
    """
    return await intents.carry_out(ports, caller, intent_id)


@routes.post(
    "/<intent_id>/fail",
    who=asking(CloseIntent),
    fails=(AliasConflict, ResultTooLarge),
    max_body=MAX_METADATA_BODY,
)
async def fail_intent(ports: Ports, caller: SessionCaller, intent_id: str, body: FailBody) -> Answered[Intent]:
    """Close an intent as failed, without executing it; what was signed elsewhere is not kept in its result."""
    return await intents.fail(ports, caller, intent_id, body)


@routes.post("/<intent_id>/cancel", who=asking(CloseIntent))
async def cancel_intent(ports: Ports, caller: SessionCaller, intent_id: str) -> Answered[Intent]:
    """Cancel a pending or authorised intent."""
    return await intents.cancel(ports, caller, intent_id)


@routes.post("/<intent_id>/expire", who=asking(CloseIntent))
async def expire_intent(ports: Ports, caller: SessionCaller, intent_id: str) -> Answered[Intent]:
    """End a pending or authorised intent before its time."""
    return await intents.expire(ports, caller, intent_id)

"""Intents: proposed, authorised, carried out or closed."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.chains.evm.action_orders import CallsOrder
from custody.chains.orders import Prepared
from custody.identity.roles import ADMINS, BUILDERS
from custody.kit.errors import DailyQuotaExceeded, Frozen
from custody.kit.shapes import AgentId, Digest, DisplayName, Reason, TenantId, Uuid
from custody.kit.spellings import AliasConflict
from custody.policies.types import InvalidPolicy, Result, Room
from custody.protocol.command import AGENT, SESSION, TENANT, Command, command, refuses
from custody.protocol.refusals import AdministrationMoving
from custody.protocol.signer import order_refusals, refusals
from custody.protocol.signer.intent_words import IntentType
from custody.protocol.signer.orders import ORDER, Moved
from custody.protocol.signer.outcomes import NeedsPreparation, Proposed, Refused, Signed

# Words of the caller's own, looked at nowhere.
_Word = Annotated[str, Meta(min_length=1, max_length=128)]


_INTENT = (
    AdministrationMoving,
    order_refusals.AgentAbsent,
    refusals.IntentAbsent,
    refusals.IntentChanged,
    refusals.IntentClosed,
    refusals.IntentTampered,
)


class IntentMoved(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The intent, in the state that it is in now."""

    id: str


@command("signer", proofs=TENANT, roles=BUILDERS, audit=("intent.created",))
@refuses(AdministrationMoving, order_refusals.AgentAbsent, AliasConflict)
@refuses(DailyQuotaExceeded, InvalidPolicy, refusals.PersonRequired)
@refuses(refusals.TooManyIntents, order_refusals.UnknownChain, refusals.WalletOfPerson)
class CreateIntent(Command[IntentMoved], frozen=True):
    """Propose something; what changes who may do what only as an owner or admin with a recent second factor."""

    id: Uuid
    kind: IntentType
    agent: AgentId | None
    payload: dict[str, Any]
    resource_type: _Word | None
    resource_id: _Word | None
    name: DisplayName | None
    # Unix microseconds; None: the seconds from now on.
    expires_at: Annotated[int, Meta(ge=0)] | None
    ttl_seconds: Annotated[int, Meta(ge=1, le=604_800)]


@command(
    "signer",
    proofs=AGENT,
    repeatable=True,
    replays_itself=True,
    authorized=True,
    audit=("intent.created", "tx.refused"),
)
@refuses(*ORDER, order_refusals.ReferenceTaken, refusals.SignerRequired)
class SendCalls(Command[Proposed | Refused], frozen=True):
    """Judge a batch of calls, and keep it as an intent unless a rule refuses it."""

    agent: AgentId
    # The intent, and the transaction that tells of a refusal.
    id: Uuid
    order: CallsOrder


@command("signer", proofs=SESSION, roles=ADMINS, mfa="intents", audit=("intent.authorized",))
@refuses(*_INTENT, Frozen, refusals.IntentNotPending, refusals.OwnIntent)
class AuthorizeIntent(Command[IntentMoved], frozen=True):
    """Authorise a pending intent of somebody else's."""

    id: Uuid
    digest: Digest | None = None
    reason: Reason | None = None


@command(
    "signer",
    proofs=SESSION,
    roles=ADMINS,
    mfa="intents",
    audit=("intent.rejected", "intent.failed", "intent.canceled", "intent.expired"),
)
@refuses(*_INTENT)
class CloseIntent(Command[IntentMoved], frozen=True):
    """End an intent that was not carried out; only a pending one is rejected."""

    id: Uuid
    act: Literal["reject", "fail", "cancel", "expire"]
    digest: Digest | None = None
    reason: Reason | None = None
    result: dict[str, Any] | None = None


class IntentExecuted(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """It was carried out, or failed; `signed` is what a node must be given."""

    id: str
    signed: list[Signed] = []


class IntentStays(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Nothing was written: a rate limit has no room now (`room`), or votes are asked for that an intent cannot take."""

    id: str
    results: list[Result]
    reason: str
    room: Room | None = None


class AskNode(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A node is to be asked; what it says comes back with FinishIntent."""

    id: str
    method: str
    params: list[Any] | dict[str, Any]
    chain_id: int


@command(
    "signer",
    proofs=SESSION,
    roles=ADMINS,
    mfa="intents",
    repeatable=True,
    replays_itself=True,
    audit=(
        "intent.executing",
        "intent.executed",
        "intent.failed",
        "tx.signed",
        "tx.refused",
        "policy.replaced",
        "agent.changed",
        "quorum.created",
        "quorum.changed",
        "quorum.revoked",
    ),
)
@refuses(*_INTENT, *ORDER, order_refusals.AuthorityTampered, refusals.AuthorizationStale, refusals.IntentNotAuthorized)
@refuses(refusals.NonceOpen, refusals.PoliciesMoving, refusals.QuorumByPerson, refusals.QuorumNeeded)
@refuses(order_refusals.ReferenceTaken, refusals.TooManyQuorums, refusals.UnknownApprover, refusals.UnknownPolicySet)
class ExecuteIntent(Command[IntentExecuted | IntentStays | AskNode | NeedsPreparation], frozen=True):
    """Carry out an authorised intent, against what it was authorised against."""

    id: Uuid
    prepared: Prepared | None = None


@command("signer", proofs=SESSION, roles=ADMINS, mfa="intents", audit=("intent.executed", "intent.failed"))
class FinishIntent(Command[IntentMoved], frozen=True):
    """Say what a node answered to an intent that is being executed; `problem` if it did not."""

    id: Uuid
    # As JSON.
    result: Annotated[str, Meta(max_length=262_144)] | None = None
    problem: Annotated[str, Meta(max_length=1000)] | None = None


@command("signer", senders=("scheduler",), audit=("intent.expired", "intent.failed"))
class ExpireIntent(Command[Moved], frozen=True):
    """End an intent that nobody decided, or whose node was never heard of; it must be due on the database's clock."""

    tenant: TenantId
    intent: Uuid

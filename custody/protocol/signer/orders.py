"""Orders, what a person decides about them, and what becomes of them."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.chains.orders import Prepared, Question
from custody.kit.described import Id, Instant, described
from custody.kit.errors import DailyQuotaExceeded, Frozen, QuotaExceeded
from custody.kit.shapes import AgentId, DecimalAmount, HashOrAddress, Reason, TenantId, Uuid
from custody.policies.types import MOST_CHECKS, CheckAnswer
from custody.protocol.command import AGENT, DECIDER, SESSION, Command, command, refuses
from custody.protocol.signer import order_refusals, refusals
from custody.protocol.signer.outcomes import Decided

_BASE64URL = r"^[A-Za-z0-9_-]+\Z"


class Vote(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An assertion by an approver's key; docs/signers.md says what it signs. All in base64url without padding."""

    key_id: Annotated[Uuid, described("The approver key that signed, by its id.")]
    authenticator_data: Annotated[
        str, Meta(min_length=1, max_length=1366, pattern=_BASE64URL), described("`authenticatorData` of the assertion.")
    ]
    client_data: Annotated[
        str,
        Meta(min_length=1, max_length=2731, pattern=_BASE64URL),
        described("`clientDataJSON` of the assertion, with the challenge in it."),
    ] = msgspec.field(name="clientDataJSON")
    signature: Annotated[
        str, Meta(min_length=1, max_length=96, pattern=_BASE64URL), described("The signature, as DER.")
    ]


# Whatever is asked to be signed; what is wrong with one kind of order, its routes list.
ORDER = (
    order_refusals.AgentAbsent,
    order_refusals.Busy,
    DailyQuotaExceeded,
    Frozen,
    order_refusals.KeyTampered,
    order_refusals.PolicyTampered,
    QuotaExceeded,
    order_refusals.UnknownChain,
)
_DECIDING = (
    refusals.ApprovalAbsent,
    refusals.ApprovalChanged,
    refusals.ApprovalExpired,
    refusals.ApprovalResolved,
)
Answers = Annotated[tuple[CheckAnswer, ...], Meta(max_length=MOST_CHECKS)]
_signing = command(
    "signer",
    proofs=AGENT | SESSION,
    mfa="vaultSigning",
    repeatable=True,
    replays_itself=True,
    authorized=True,
    audit=("tx.signed", "tx.queued", "tx.refused"),
)


@_signing
@refuses(*ORDER, refusals.WalletOfPerson)
class SignOrder(Command[Decided], frozen=True):
    """Judge an order of any kind, then sign, queue or refuse it. The same `tx_id` gets the same answer."""

    agent: AgentId
    tx_id: Uuid
    question: Question
    prepared: Prepared | None = None
    # What services said; None: they were not asked yet.
    answers: Answers | None = None


@_signing
@refuses(*ORDER, refusals.AlreadyReplaced, refusals.NotEvm, refusals.NotSigned, refusals.TransactionAbsent)
@refuses(refusals.TransactionFinal, refusals.WalletOfPerson)
class ReplaceEvm(Command[Decided], frozen=True):
    """Sign the order `replaces` again with its nonce and higher fees (None: as much higher as nodes demand)."""

    agent: AgentId
    tx_id: Uuid
    replaces: Uuid
    max_fee_per_gas: DecimalAmount | None = None
    max_priority_fee_per_gas: DecimalAmount | None = None
    prepared: Prepared | None = None
    answers: Answers | None = None


@command("signer", proofs=DECIDER, mfa="approvals", for_item=True, audit=("tx.approved", "approval.voted"))
@refuses(*ORDER, *_DECIDING, refusals.ApprovalStale, order_refusals.AuthorityTampered, refusals.AuthorizationStale)
@refuses(refusals.VoteRefused)
class Approve(Command[Decided], frozen=True):
    """Approve a queued order, named by its approval or by its agent and `tx_id`; it is judged again and signed."""

    approval_id: Uuid | None = None
    agent: AgentId | None = None
    tx_id: Uuid | None = None
    digest: str | None = None
    comment: Reason | None = None
    vote: Vote | None = None
    prepared: Prepared | None = None


class OrderDenied(msgspec.Struct, frozen=True):
    """A queued order that can never be signed any more."""

    approval_id: str
    tx_id: str
    status: Literal["rejected"]
    resolved_at: str
    resolved_by: Literal["manual"]


@command("signer", proofs=DECIDER, mfa="approvals", audit=("tx.denied",))
@refuses(*_DECIDING, order_refusals.Busy)
class Deny(Command[OrderDenied], frozen=True):
    """Deny a queued order, named by its approval or by its agent and `tx_id`."""

    approval_id: Uuid | None = None
    agent: AgentId | None = None
    tx_id: Uuid | None = None
    digest: str | None = None
    reason: Reason | None = None


class Withdrawn(msgspec.Struct, frozen=True, rename="camel"):
    """An order that its agent took back; it is never signed."""

    tx_id: Annotated[Id, described("The transaction.")]
    approval_id: Annotated[Id, described("The approval that waited for a person.")]
    resolved_at: Annotated[Instant, described("Time when it was withdrawn.")]
    resolved_by: Annotated[Literal["agent"], described("Always `agent`.")] = "agent"
    status: Annotated[Literal["rejected"], described("Always `rejected`.")] = "rejected"
    status_detail: Annotated[Literal["withdrawn"], described("Always `withdrawn`.")] = "withdrawn"


@command("signer", proofs=AGENT, replays_itself=True, audit=("tx.withdrawn",))
@refuses(order_refusals.Busy, refusals.ApprovalExpired, refusals.ApprovalResolved, refusals.TransactionAbsent)
class Withdraw(Command[Withdrawn], frozen=True):
    """Take back a queued order of the agent's own; once more is answered as the first time."""

    agent: AgentId
    tx_id: Uuid


class Moved(msgspec.Struct, frozen=True):
    """The outcome for a state: its new word, or `unchanged`."""

    result: str


@command("signer", senders=("scheduler",), audit=("tx.expired",))
class Expire(Command[Moved], frozen=True):
    """End an approval that nobody decided; it must be due on the database's clock."""

    tenant: TenantId
    approval: Uuid


@command("signer", senders=("scheduler",), audit=("tx.released",))
class Release(Command[Moved], frozen=True):
    """Sign an order whose delay is over on the database's clock, if nothing else holds it back; it is judged again."""

    tenant: TenantId
    approval: Uuid
    prepared: Prepared | None = None


@command("signer", audit=("tx.broadcast",))
class BroadcastOutcome(Command[Moved], frozen=True):
    """Note that a node has the bytes of a signed order."""

    tenant: TenantId
    tx_id: Uuid
    outcome: Literal["sent"]


@command("signer", senders=("scheduler",), audit=("tx.broadcast", "tx.confirmed", "tx.failed"))
class ChainOutcome(Command[Moved], frozen=True):
    """Note what became of a signed order, as a node showed it at final depth.

    `block` and `block_hash` (on Solana: the slot alone) say where; `by` is the hash that took the nonce, if it is ours,
    and of a payment the one by which whom it pays took it. `lapsed`, `canceled`: a payment that nobody can take.
    `fee_paid`: what the network took for it, in the smallest unit; nothing is decided by it.
    """

    tenant: TenantId
    tx_id: Uuid
    outcome: Literal["sent", "confirmed", "reverted", "replaced", "expired", "lapsed", "canceled"]
    block: Annotated[int, Meta(ge=0)] | None = None
    block_hash: HashOrAddress | None = None
    by: HashOrAddress | None = None
    fee_paid: DecimalAmount | None = None

"""The approval queue as people see it."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.chains.kinds import Kind
from custody.kit.cursors import Cursor
from custody.kit.described import Id, Instant, described
from custody.kit.errors import Invalid
from custody.kit.shapes import AgentId, ApproverRpId, DecimalAmount, Digest, DisplayName, Offset, Reason, ReferenceId
from custody.policies.types import Result
from custody.protocol.signer.orders import Vote
from custody.protocol.signer.outcomes import VoteGiven
from custody.transactions.types import Status

ApprovalStatus = Literal["pending", "approved", "rejected", "expired"]


class UnknownAsset(Invalid):
    """An asset is `usd`, `evm:native`, `evm:<chainId>:<token>`, `solana:native`, `solana:<mint>` or `bitcoin`."""


class AmountWithoutAsset(Invalid):
    """`minAmount` and `maxAmount` are in the smallest unit of `asset`: send `asset` too, such as `evm:native`."""


class Votes(msgspec.Struct, frozen=True, rename="camel"):
    """The count of votes by named people, and the people who must still vote."""

    have: Annotated[int, described("Number of votes.")]
    need: Annotated[int, described("Number of votes needed.")]
    by: Annotated[list[VoteGiven], described("Voters, in the order of their votes.")]
    waiting_for: Annotated[list[str], described("The named people who have not voted, by their user ids.")]


class VotesTaken(msgspec.Struct, frozen=True, rename="camel"):
    """The count of votes by named people."""

    have: Annotated[int, described("Number of votes, this one included.")]
    need: Annotated[int, described("Number of votes needed.")]
    by: Annotated[list[VoteGiven], described("Voters, in the order of their votes.")]


class VoteTaken(msgspec.Struct, frozen=True, rename="camel"):
    """The vote was taken; the item waits for more."""

    approval_id: Annotated[Id, described("The approval.")]
    tx_id: Annotated[Id, described("The transaction that waits.")]
    votes: Annotated[VotesTaken, described("The votes so far.")]
    status: Annotated[Literal["pending"], described("Always `pending`.")] = "pending"


class ApprovalRefused(msgspec.Struct, frozen=True, rename="camel"):
    """The order is not signed, and the item stays: a hard rule refuses it, or a named approver has yet to vote."""

    tx_id: Annotated[Id, described("The transaction that waits.")]
    results: Annotated[list[Result], described("Result of each rule for the order.")]
    code: Annotated[
        Literal["policy_refused", "quorum_needed"], Meta(description="The word for programs; it never changes.")
    ] = "policy_refused"


class NewApproverKeyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A key that was made on the approver's own machine."""

    name: Annotated[DisplayName, described("Your name for the key.")]
    rp_id: Annotated[
        ApproverRpId,
        described(
            "The rp id that the key was made for: `approver.custody.localhost`, or `localhost` where a browser does "
            "not know it."
        ),
    ]
    credential_id: Annotated[
        str,
        Meta(min_length=2, max_length=1364, pattern=r"^[A-Za-z0-9_-]+\Z"),
        described("The authenticator's id of the key, in base64url without padding."),
    ]
    public_key: Annotated[
        str,
        Meta(min_length=124, max_length=124, pattern=r"^[A-Za-z0-9+/]+={0,2}\Z"),
        described("The P-256 public key as SPKI in standard base64, as `getPublicKey()` of the response gives it."),
    ]


class Approval(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One item of the queue; `digest` identifies exactly this order."""

    id: Annotated[Id, described("The approval's own id, for the approve and deny routes.")]
    tx_id: Annotated[Id, described("The transaction that waits.")]
    agent_id: Annotated[str, described("The agent that asked.")]
    agent_name: Annotated[str, described("The agent's name.")]
    status: Annotated[ApprovalStatus, described("The decision.")]
    requested_at: Annotated[Instant, described("Time of the agent's request.")]
    resolved_at: Annotated[Instant | None, described("Time of the decision.")]
    resolved_by: Annotated[
        Literal["manual", "agent", "system"] | None,
        described("The decider: a person or key (`manual`), the agent that withdrew it, or the service (`system`)."),
    ]
    resolved_by_user_id: Annotated[Id | None, described("The person who decided; null if a key did.")]
    resolved_by_name: Annotated[
        str | None,
        described(
            "The person's name, else e-mail address, else wallet. Null if a key decided, and for a person who is no "
            "member of the tenant any more."
        ),
    ]
    reason: Annotated[str | None, described("The reason that was given with a denial; its agent reads it too.")]
    comment: Annotated[str | None, described("Comment of the person who approved it.")]
    expires_at: Annotated[Instant | None, described("Time of expiry if undecided; null if never.")]
    release_at: Annotated[
        Instant | None,
        described("Time at which it is signed by itself unless somebody decides before; null if a person must."),
    ]
    kind: Annotated[Kind, described("Kind of order.")]
    reference_id: Annotated[str | None, described("The caller's own reference, as it came with the order.")]
    to_address: Annotated[str | None, described("The address that the order goes to.")]
    value: Annotated[str | None, described("The native amount in the smallest unit.")]
    chain_id: Annotated[int | None, described("The chain: its EIP-155 number, or 101 for Solana.")]
    tx_status: Annotated[Status, described("The status of the transaction.")]
    effects: Annotated[list[dict[str, Any]], described("Effects of the order, decoded from the bytes to be signed.")]
    policy_results: Annotated[list[Result], described("Result of each rule for the order.")]
    digest: Annotated[str, described("Identifies exactly this order; send it with a decision.")]
    votes: Annotated[Votes | None, described("The votes on it; null where no approval-quorum rule asks for some.")] = (
        None
    )


class ApprovalInFull(Approval, frozen=True, kw_only=True):
    """One item with the order itself."""

    order: Annotated[
        str, described("The order as it is stored: JSON, from which the digest is made (docs/signers.md).")
    ]
    paid_before: Annotated[
        int | None,
        described(
            "Of a payment by x402: how many earlier ones of this agent to the same recipient at the same host were "
            "signed, as the database says it; of more than 100 it says 100. Null for every other order."
        ),
    ] = None


_OF_AMOUNT = (
    "Decimal, in the smallest unit of `asset` (wei, lamports, a token's base units). The threshold is compared with "
    "the sum that the order pays or approves in `asset`, without network fees."
)


class ApprovalQuery(msgspec.Struct, frozen=True, rename="camel"):
    """Filter and page of the queue."""

    status: Annotated[ApprovalStatus | Literal["all"], described("Status of the items to list.")] = "pending"
    limit: Annotated[int, Meta(ge=1, le=200), described("Maximum number of items.")] = 50
    offset: Annotated[Offset, described("Number of items to skip.")] = 0
    cursor: Annotated[Cursor | None, described("`nextCursor` of the page before; instead of an offset.")] = None
    agent_id: Annotated[AgentId | None, described("Only items of this agent.")] = None
    kind: Annotated[Kind | None, described("Only orders of this kind.")] = None
    reference_id: Annotated[ReferenceId | None, described("Only orders that came with this reference.")] = None
    asset: Annotated[
        Annotated[str, Meta(max_length=128)] | None,
        described(
            "Only orders that pay or approve some of this asset, written as in `effects`: `evm:native`, "
            "`evm:<chainId>:<token>`, `solana:native`, `solana:<mint>` or `bitcoin`."
        ),
    ] = None
    min_amount: Annotated[DecimalAmount | None, described(f"At least so much. Needs `asset`. {_OF_AMOUNT}")] = None
    max_amount: Annotated[DecimalAmount | None, described(f"At most so much. Needs `asset`. {_OF_AMOUNT}")] = None


class ApprovalStats(msgspec.Struct, frozen=True, rename="camel"):
    """The queue in figures; waiting times are from request to decision."""

    pending: Annotated[int, described("Number of waiting items.")]
    approved: Annotated[int, described("Number of approved items.")]
    rejected: Annotated[int, described("Number of denied items.")]
    expired: Annotated[int, described("Number of items that expired undecided.")]
    total: Annotated[int, described("Number of items in all.")]
    avg_wait_seconds: Annotated[float, described("The average time from request to decision.")]


class ApproveBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Optionally the digest of the order that was reviewed; a different digest is refused."""

    digest: Annotated[
        Digest | None, described("The `digest` of the item that was reviewed; another one is refused.")
    ] = None
    comment: Annotated[
        Reason | None, described("A note to those who read the queue and the audit log; the agent does not read it.")
    ] = None
    vote: Annotated[
        Vote | None, described("Your vote, where an approval-quorum rule names you: an assertion by your approver key.")
    ] = None


class DenyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reason; and optionally the digest of the order that was reviewed."""

    reason: Annotated[
        Reason | None, described("Why, for the queue, the event `tx.denied` and the agent, on its transaction.")
    ] = None
    digest: Annotated[
        Digest | None, described("The `digest` of the item that was reviewed; another one is refused.")
    ] = None


_WHOLE = "Of a PSBT that was to be finished and could be: the whole transaction in hex, for your own broadcaster."
_VSIZE = "The size of that transaction in vbytes."
_FEE = "Fee of that transaction, in satoshis."


class Approved(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An approved and signed item; `tx_hash` is null for typed data."""

    approval_id: Annotated[Id, described("The approval.")]
    status: Annotated[Literal["approved"], described("Always `approved`.")]
    tx_hash: Annotated[str | None, described("The hash of the signed transaction; null for typed data.")]
    resolved_at: Annotated[Instant, described("Time of the approval.")]
    finalized_tx_hex: Annotated[str | None, described(_WHOLE)] = None
    vsize: Annotated[int | None, described(_VSIZE)] = None
    fee_sats: Annotated[str | None, described(_FEE)] = None


class ApprovedTransaction(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The same, in the form of the vault route."""

    tx_id: Annotated[Id, described("The transaction.")]
    tx_hash: Annotated[str | None, described("The hash of the signed transaction; null for typed data.")]
    finalized_tx_hex: Annotated[str | None, described(_WHOLE)] = None
    vsize: Annotated[int | None, described(_VSIZE)] = None
    fee_sats: Annotated[str | None, described(_FEE)] = None


class Denied(msgspec.Struct, frozen=True, rename="camel"):
    """A denied item."""

    approval_id: Annotated[Id, described("The approval.")]
    status: Annotated[Literal["rejected"], described("Always `rejected`.")]
    resolved_at: Annotated[Instant, described("Time of the denial.")]
    resolved_by: Annotated[Literal["manual"], described("Always `manual`.")]


class RejectedTransaction(msgspec.Struct, frozen=True, rename="camel"):
    """The same, in the form of the vault route."""

    tx_id: Annotated[Id, described("The transaction.")]
    approval_id: Annotated[Id, described("The approval.")]
    status: Annotated[Literal["rejected"], described("Always `rejected`.")]
    resolved_at: Annotated[Instant, described("Time of the rejection.")]
    resolved_by: Annotated[Literal["manual"], described("Always `manual`.")]

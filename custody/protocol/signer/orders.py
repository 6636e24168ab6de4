"""Orders, what a person decides about them, and what becomes of them."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.chains.orders import Prepared, Question
from custody.identity.roles import READERS
from custody.kit.described import Id, Instant, described
from custody.kit.shapes import AgentId, DecimalAmount, HashOrAddress, Reason, TenantId, Uuid
from custody.policies.types import Decision, Left, Result, Room, Window
from custody.protocol.command import AGENT, DECIDER, SESSION, TENANT, Command, command


class PsbtReleased(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The facts of a signed PSBT beside its bytes; `final` is the whole transaction, where it could be finished."""

    scope: str
    address: str
    address_type: str
    network: str
    inputs: int
    fee: int
    final: bytes | None = None
    vsize: int | None = None


class Signed(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """Committed and released. `raw` are the bytes for the node, `signature` what the caller asked for."""

    tx_id: str
    kind: str
    tx_hash: str | None
    signature: str
    raw: bytes | None
    chain_id: int | None
    caip2: str | None
    broadcast: bool
    approval_id: str | None = None
    resolved_at: str | None = None
    # Of a wallet action that a rate limit let through.
    left: Left | None = None
    psbt: PsbtReleased | None = None


class Queued(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A person must decide."""

    tx_id: str
    approval_id: str
    results: list[Result]
    reason: str


class Refused(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A hard rule says no; `room` if only rate limits do, and the order may come again as it is."""

    tx_id: str
    results: list[Result]
    reason: str
    room: Room | None = None
    # Only votes are missing: nothing was written, and the item stays.
    lacks_votes: bool = False


class VoteGiven(msgspec.Struct, frozen=True, rename="camel"):
    """One voter, and the time of the vote."""

    user_id: Annotated[Id, described("The person.")]
    voted_at: Annotated[Instant, described("Time of the vote.")]


class Voted(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The vote was kept, and more are needed."""

    approval_id: str
    tx_id: str
    have: int
    need: int
    by: list[VoteGiven]


_BASE64URL = r"^[A-Za-z0-9_-]+\Z"


class Vote(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An assertion by an approver's key; docs/votes.md says what it signs. All in base64url without padding."""

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


class BatchSigned(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A batch of calls, committed and released: one transaction for each call, in their order."""

    signed: list[Signed]


class Proposed(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A batch of calls waits as an intent for a person."""

    intent_id: str
    results: list[Result]
    reason: str


class NeedsPreparation(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The order would be signed and broadcast, but no node was asked for its nonce and fees. Nothing was written."""


Decided = Signed | Queued | Refused | NeedsPreparation | Voted
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
class SignOrder(Command[Decided], frozen=True):
    """Judge an order of any kind, then sign, queue or refuse it. The same `tx_id` gets the same answer."""

    agent: AgentId
    tx_id: Uuid
    question: Question
    prepared: Prepared | None = None


@_signing
class ReplaceEvm(Command[Decided], frozen=True):
    """Sign the order `replaces` again with its nonce and higher fees (None: as much higher as nodes demand)."""

    agent: AgentId
    tx_id: Uuid
    replaces: Uuid
    max_fee_per_gas: DecimalAmount | None = None
    max_priority_fee_per_gas: DecimalAmount | None = None
    prepared: Prepared | None = None


class Fee(msgspec.Struct, frozen=True):
    """The highest possible network fee, in the smallest unit."""

    asset: Annotated[str, described("The asset, such as `evm:native` or `evm:8453:0x...`.")]
    max: Annotated[str, described("The most it can cost, in the smallest unit.")]


class Remaining(msgspec.Struct, frozen=True, rename="camel"):
    """A rolling limit and its current remainder, from the ledger that enforces it."""

    policy_id: Annotated[str, described("The rule that sets the limit.")]
    window: Annotated[Window, described("The span that the limit counts: rolling 24 hours, or rolling 7 days.")]
    asset: Annotated[str, described("The asset, such as `evm:native` or `evm:8453:0x...`.")]
    limit: Annotated[str, described("The limit in the smallest unit.")]
    spent: Annotated[str, described("Amount spent of it.")]
    remaining: Annotated[str, described("Amount left.")]


class Foreseen(msgspec.Struct, frozen=True):
    """The verdict on a simulated order. `needs_node`: it would be signed once a node said its nonce and fees."""

    decision: Decision
    results: list[Result]
    effects: list[dict[str, Any]]
    fee: Fee | None
    budgets: list[Remaining]
    broadcast: bool
    needs_node: bool


@command("signer", proofs=TENANT | AGENT, roles=READERS, repeatable=True)
class Simulate(Command[Foreseen], frozen=True):
    """Judge an order and tell the verdict; nothing is written, no key is opened."""

    agent: AgentId
    question: Question
    prepared: Prepared | None = None


class Receipt(msgspec.Struct, frozen=True):
    """The statement, the Ed25519 signature over its canonical JSON (base64url), and the key's id in the JWK set."""

    receipt: Annotated[dict[str, Any], described("The statement.")]
    signature: Annotated[str, described("The Ed25519 signature over its canonical JSON, in base64url.")]
    kid: Annotated[str, described("The key that signed it, in `/.well-known/jwks.json`.")]


@command("signer", proofs=TENANT | AGENT, roles=READERS, repeatable=True)
class IssueReceipt(Command[Receipt], frozen=True):
    """Sign a statement about one signature, from what was recorded with it."""

    agent: AgentId
    tx_id: Uuid


@command("signer", proofs=DECIDER, mfa="approvals", audit=("tx.approved", "approval.voted"))
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
class Deny(Command[OrderDenied], frozen=True):
    """Deny a queued order, named by its approval or by its agent and `tx_id`."""

    approval_id: Uuid | None = None
    agent: AgentId | None = None
    tx_id: Uuid | None = None
    digest: str | None = None
    reason: Reason | None = None


class Moved(msgspec.Struct, frozen=True):
    """The outcome for a state: its new word, or `unchanged`."""

    result: str


@command("signer", senders=("scheduler",), audit=("tx.expired",))
class Expire(Command[Moved], frozen=True):
    """End an approval that nobody decided; it must be due on the database's clock."""

    tenant: TenantId
    approval: Uuid


@command("signer", audit=("tx.broadcast",))
class BroadcastOutcome(Command[Moved], frozen=True):
    """Note that a node has the bytes of a signed order."""

    tenant: TenantId
    tx_id: Uuid
    outcome: Literal["sent"]


@command("signer", senders=("scheduler",), audit=("tx.broadcast", "tx.confirmed", "tx.failed"))
class ChainOutcome(Command[Moved], frozen=True):
    """Note what became of a signed order, as a node showed it at final depth.

    `block` and `block_hash` (on Solana: the slot alone) say where; `by` is the hash that took the nonce, if it is ours.
    `fee_paid`: what the network took for it, in the smallest unit; nothing is decided by it.
    """

    tenant: TenantId
    tx_id: Uuid
    outcome: Literal["sent", "confirmed", "reverted", "replaced", "expired"]
    block: Annotated[int, Meta(ge=0)] | None = None
    block_hash: HashOrAddress | None = None
    by: HashOrAddress | None = None
    fee_paid: DecimalAmount | None = None

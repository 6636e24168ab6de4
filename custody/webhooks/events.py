"""The payload of each event, one struct a name. Nothing but these, those of `later_events.py` and
`intent_events.py` and what is in `payload.py` puts a payload together, in Python or in SQL.

`docs/webhooks.md` lists the fields; tests/rules/webhooks/test_events.py compares.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from custody.chains.kinds import Kind
from custody.kit.described import Id, Instant, described
from custody.policies.types import Result, Window
from custody.webhooks.payload import Payload

# The payload is built on the path of every order: encoded once, as the bytes that a delivery sends.
_encode = msgspec.json.Encoder().encode
# An event is a notice, and goes to every endpoint: of a long order it has the beginning, and says how much is missing.
MAX_EFFECTS = 16
MAX_EFFECTS_BYTES = 8192


class OrderEvent(Payload, frozen=True, kw_only=True):
    """The fields of every event of an order; `clip(...)` gives the last two fields."""

    tx_id: Annotated[Id, described("The transaction.")]
    kind: Annotated[Kind, described("Kind of order.")]
    to: Annotated[str | None, described("The address that the order goes to.")]
    value: Annotated[str | None, described("The native amount in the smallest unit; tokens are in `effects`.")]
    chain_id: Annotated[int | None, described("The chain: its EIP-155 number, or 101 for Solana.")]
    reference_id: Annotated[str | None, described("The caller's own reference.")]
    effects: Annotated[
        list[dict[str, Any]], described("What the order does, as the transaction shows it; the first 16, and 8 KiB.")
    ]
    more_effects: Annotated[int, described("How many effects were left out.")]


class TxPending(OrderEvent, frozen=True, kw_only=True):
    """An order waits for a person."""

    event: ClassVar[str] = "tx.pending"
    approval_id: Annotated[Id, described("The approval.")]
    policy_results: Annotated[list[Result], described("Result of each rule for the order.")]
    release_at: Annotated[
        Instant | None, described("Time at which it is signed by itself unless somebody decides before.")
    ] = None


class TxApproved(OrderEvent, frozen=True, kw_only=True):
    """A person approved an order, or its delay was over; `tx.signed` follows."""

    event: ClassVar[str] = "tx.approved"
    approval_id: Annotated[Id, described("The approval.")]
    tx_hash: Annotated[str | None, described("The hash of the signed transaction; null for typed data.")]
    broadcast: Annotated[bool, described("True if the service sends it to a node.")]
    comment: Annotated[str | None, described("Comment of the person who approved it.")]
    resolved_by: Annotated[
        Literal["manual", "system"], described("`manual`: a person or key. `system`: nobody; its delay was over.")
    ] = "manual"


class TxSigned(OrderEvent, frozen=True, kw_only=True):
    """An order was signed."""

    event: ClassVar[str] = "tx.signed"
    tx_hash: Annotated[str | None, described("The hash; null for a Solana order that is not broadcast.")]
    broadcast: Annotated[bool, described("True if the service sends it to a node.")]


class SpendThreshold(Payload, frozen=True, kw_only=True):
    """A share of a limit was reached."""

    event: ClassVar[str] = "spend.threshold"
    window: Annotated[Window, described("The span that the limit counts: rolling 24 hours, or rolling 7 days.")]
    asset: Annotated[str, described("The asset, such as `evm:native` or `evm:8453:0x...`.")]
    spent: Annotated[str, described("What was spent, this order included, in the smallest unit.")]
    limit: Annotated[str, described("The limit in the smallest unit.")]
    percent: Annotated[int, described("The percentage that was reached.")]
    tx_id: Annotated[Id, described("The transaction that reached it.")]


class PolicyViolation(Payload, frozen=True, kw_only=True):
    """A hard rule refused an order."""

    event: ClassVar[str] = "policy.violation"
    tx_id: Annotated[Id, described("The transaction, kept as rejected.")]
    to: Annotated[str | None, described("The address that the order goes to.")]
    value: Annotated[str | None, described("The native amount in the smallest unit.")]
    failed_policies: Annotated[list[Result], described("The rules that refused it.")]


def clip(effects: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """The effects that an event carries, from the first on, and the number of those that it leaves out."""
    kept = list(effects[:MAX_EFFECTS])
    # What is decoded takes a few hundred bytes. A name made to be long is the only way past that.
    while kept and len(_encode(kept)) > MAX_EFFECTS_BYTES:
        kept.pop()
    return kept, len(effects) - len(kept)

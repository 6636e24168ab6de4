"""What signing routes answer. Spec 1/4.3; the bodies of 202 and 403 are alike on all of them."""

from typing import Any

import msgspec

from custody.kit.answers import Outcome
from custody.policies.types import Result
from custody.protocol.client import Answered, Replayed
from custody.protocol.messages import Queued, Refused, Signed
from custody.transactions.store import encoded

SigningResult = Any


class EvmSigned(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A signed EVM transaction; the bytes are there when it was not broadcast."""

    tx_id: str
    tx_hash: str
    signed_transaction: str | None = None


class TypedDataSigned(msgspec.Struct, frozen=True, rename="camel"):
    """An EIP-712 signature: 65 bytes, r s v."""

    signature: str
    tx_id: str


class SolanaSigned(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A signed Solana transaction."""

    tx_id: str
    signature: str
    broadcast: bool
    chain_id: int
    caip2: str
    signed_transaction: str | None = None


class Pending(msgspec.Struct, frozen=True, rename="camel"):
    """202: a person must decide."""

    tx_id: str
    approval_id: str
    results: list[Result]
    status: str = "pending_approval"


class PolicyRefused(msgspec.Struct, frozen=True, rename="camel"):
    """403 (or 429 when only the rate was too high): a hard rule says no."""

    tx_id: str
    results: list[Result]


def signed_evm(answered: Answered, outcome: Signed) -> SigningResult:
    """The answer for an EVM signature."""
    return _marked(answered, EvmSigned(outcome.tx_id, outcome.tx_hash or "", _bytes(outcome)))


def signed_typed_data(answered: Answered, outcome: Signed) -> SigningResult:
    """The answer for typed data."""
    return _marked(answered, TypedDataSigned(outcome.signature, outcome.tx_id))


def signed_solana(answered: Answered, outcome: Signed) -> SigningResult:
    """The answer for a Solana signature."""
    return _marked(
        answered,
        SolanaSigned(
            outcome.tx_id,
            outcome.signature,
            outcome.broadcast,
            outcome.chain_id or 0,
            outcome.caip2 or "",
            _bytes(outcome),
        ),
    )


def queued(answered: Answered, outcome: Queued) -> SigningResult:
    """The answer for an order that waits for a person."""
    return _marked(answered, Outcome(202, Pending(outcome.tx_id, outcome.approval_id, outcome.results), outcome.reason))


def refused(answered: Answered, outcome: Refused) -> SigningResult:
    """The answer for an order that a hard rule refused."""
    status = 429 if outcome.rate_limited else 403
    headers = {"Retry-After": str(max(1, outcome.retry_after or 1))} if outcome.rate_limited else {}
    return _marked(answered, Outcome(status, PolicyRefused(outcome.tx_id, outcome.results), outcome.reason, headers))


def _marked(answered: Answered, result: Any) -> Any:
    return Replayed(result) if answered.replayed else result


def _bytes(outcome: Signed) -> str | None:
    return encoded(outcome.kind, outcome.raw) if outcome.raw is not None and not outcome.broadcast else None

"""The reading of an authorisation before the agent's set is known: the request that was signed must be this order's.

The api passes the raw body on, and the order is read from it once more: the api could put another order beside a good
signature, and a hash of the body would not tell. Reading takes its turn like that of any order.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from custody.chains.bitcoin.orders import PsbtOrder
from custody.chains.evm.action_orders import CallsOrder, ReplacementFees, TransferOrder
from custody.chains.evm.orders import EvmOrder
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.message_orders import EvmMessageOrder, SolanaMessageOrder
from custody.chains.orders import Asked
from custody.chains.solana.orders import SolanaOrder
from custody.chains.typed_body import TypedDataBody
from custody.identity.request_signature import Signature, canonical, parse_header
from custody.kit.callers import Authorization, ShownSigner
from custody.kit.errors import CustodyError, Invalid
from custody.kit.json_bodies import decode_as, look_through
from custody.kit.refs import AgentRef
from custody.protocol.refusals import SignatureMismatch
from custody.protocol.signer.intents import SendCalls
from custody.protocol.signer.orders import ReplaceEvm, SignOrder
from custody.worker.call import Call
from custody.worker.proven import ProvenAgent, ProvenSession
from signer.orders.kind import text_of

type _Message = SignOrder | ReplaceEvm | SendCalls


class _Route(NamedTuple):
    """The end of a route's path, and what its body is."""

    end: str
    body: Any


_ROUTES: Final[Mapping[type[msgspec.Struct], _Route]] = {
    EvmOrder: _Route("sign", EvmOrder),
    TypedDataOrder: _Route("sign-typed-data", TypedDataBody),
    SolanaOrder: _Route("sign-solana", SolanaOrder),
    PsbtOrder: _Route("sign-bitcoin-psbt", PsbtOrder),
    EvmMessageOrder: _Route("sign-message", EvmMessageOrder | SolanaMessageOrder),
    SolanaMessageOrder: _Route("sign-message", EvmMessageOrder | SolanaMessageOrder),
    TransferOrder: _Route("actions/transfer", TransferOrder),
    CallsOrder: _Route("actions/send-calls", CallsOrder),
    ReplacementFees: _Route("transactions/{}/replace", ReplacementFees),
}


class Evidence(msgspec.Struct, frozen=True):
    """An authorisation that was read. What is wrong with it is told in its turn, after what matters more."""

    authorization: Authorization
    # The text that was signed.
    content: bytes
    # By the signer who made them; of one who made several, each.
    signatures: tuple[tuple[str, Signature], ...]
    problem: CustodyError | None
    # Signatures that were checked, by signer, key and mark: one is checked once, however often the order is judged.
    checked: dict[tuple[str, bytes, bytes], bool]

    def __repr__(self) -> str:
        return f"Evidence({self.authorization!r})"


def read(call: Call[ProvenAgent] | Call[ProvenSession], ref: AgentRef, message: _Message) -> Evidence | None:
    """Read what came with an order, or None where nothing did; raises Invalid for what no honest api sends."""
    shown = call.authorization
    if shown is None:
        return None
    if not isinstance(call.caller, ProvenAgent) or not _is_one_kind(shown):
        raise Invalid("Send one authorization, beside an agent's token.", code="ambiguous_credentials")
    try:
        content = canonical(
            shown.method,
            shown.path,
            ref.tenant,
            shown.timestamp,
            shown.expires_at,
            shown.idempotency_key,
            shown.body,
        )
        signatures = tuple(
            (one.signer, parse_header(one.signature)) for one in shown.shown if one.signature is not None
        )
    except CustodyError as malformed:
        return Evidence(shown, b"", (), malformed, {})
    return Evidence(shown, content, signatures, None if _is_of(shown, ref, message) else SignatureMismatch(), {})


def _is_one_kind(shown: Authorization) -> bool:
    if shown.quorum is None:
        return len(shown.shown) == 1 and _shows_one(shown.shown[0])
    return all(one.signature is not None and one.secret is None for one in shown.shown)


def _shows_one(one: ShownSigner) -> bool:
    return (one.signature is None) != (one.secret is None)


def _is_of(shown: Authorization, ref: AgentRef, message: _Message) -> bool:
    """Say whether the request that was signed is the one of this message: its route, this agent, and the same order."""
    order, named = _order_of(message)
    if (route := _ROUTES.get(type(order))) is None:
        # A payment: what its route takes is a demand, and not the order that it becomes.
        return False
    try:
        # Once: what is encoded twice names another agent.
        parts = [unquote(part, errors="strict") for part in shown.path.partition("?")[0].split("/")]
        if (shown.method, parts[:3]) != ("POST", ["", "vault", ref.agent]):
            return False
        if parts[3:] != route.end.format(named).split("/"):
            return False
        content = shown.body or b"{}"
        body = decode_as(content, route.body)
        look_through(content)
        asked = body.order() if isinstance(body, TypedDataBody) else body
    except (CustodyError, msgspec.MsgspecError, ValueError, RecursionError):
        return False
    # As texts: to Python 1, 1.0 and true are equal.
    return bool(text_of(asked) == text_of(order))


def _order_of(message: _Message) -> tuple[Asked | ReplacementFees, str]:
    if isinstance(message, ReplaceEvm):
        return ReplacementFees(message.max_fee_per_gas, message.max_priority_fee_per_gas), message.replaces
    return (message.order if isinstance(message, SendCalls) else message.question.request), ""

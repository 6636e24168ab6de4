"""A signer with a kind of order that no file of it knows: a promise to pay, signed by the agent's EVM key.

Its order, its command and its kind are here, and its own `__main__` hands them in; and beside it a whole chain family.
"""

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any

import coincurve
import msgspec
from msgspec import Meta

from custody.chains import built_in
from custody.chains.evm.family import EVM_NATIVE
from custody.chains.types import Effect, Subject
from custody.kit.answers import Answered
from custody.kit.refs import AgentRef
from custody.kit.shapes import AgentId, Uuid
from custody.protocol.command import AGENT, Command, command
from custody.protocol.signer.outcomes import Decided
from custody.worker.call import Call
from custody.worker.handlers import on
from custody.worker.proven import ProvenAgent
from signer import __main__ as signer_main
from signer.context import Signer
from signer.decide import settle
from signer.direct import Direct
from signer.ledger import Facts
from signer.orders.built_in import KINDS
from signer.orders.kind import Decoded, Draft, Final, Inputs, OrderKind, OrderKinds, Produced, digest_of, text_of
from signer.sign_order import decision_of
from signer.signing_attempt import SigningAttempt
from signer.table import HANDLERS
from signer.wallets.evm import EVM_KEYS
from tests.signer.toy_family import PEBBLE, CarryPebbles, PebbleOrder, Pebbles, carry_pebbles


class PromiseOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An amount of wei that is promised to somebody."""

    to: str
    amount: Annotated[int, Meta(ge=0)]


class PromiseDraft(Draft, frozen=True, kw_only=True):
    """A promise, as it was asked for."""

    order: PromiseOrder


class PromiseFinal(Final, frozen=True, kw_only=True):
    """The bytes that are signed."""

    content: bytes


class PromiseKind(OrderKind[PromiseOrder, PromiseDraft, Decoded, PromiseFinal, coincurve.PrivateKey]):
    """It moves what it promises, so that rules count it."""

    name = "promise"
    keys = EVM_KEYS

    def check(self, order: PromiseOrder, inputs: Inputs) -> PromiseDraft:
        """Nothing is wrong with a promise by itself."""
        text = text_of(order)
        return PromiseDraft(
            order_text=text,
            digest=digest_of(self.name, text.encode()),
            chain=inputs.chains.active,
            broadcast=False,
            reference_id=None,
            to_address=order.to,
            value=str(order.amount),
            data=None,
            order=order,
        )

    def effects(self, draft: PromiseDraft, facts: Facts) -> Decoded:
        """The amount leaves the wallet."""
        chain = draft.chain.id if draft.chain else None
        moved = Effect("transfer", EVM_NATIVE, draft.order.amount, facts.address, to=draft.order.to)
        return Decoded(subject=Subject("evm", "transfer", chain, None, draft.order.to, (moved,)), fee=None)

    def finish(self, draft: PromiseDraft, decoded: Decoded, facts: Facts) -> PromiseFinal:
        """Fix the bytes."""
        return PromiseFinal(content=hashlib.sha256(draft.order_text.encode()).digest())

    def sign(self, final: PromiseFinal, key: coincurve.PrivateKey) -> Produced:
        """Sign them."""
        return Produced(None, key.sign_recoverable(final.content, hasher=None).hex(), None)

    def signed_effects(self, row: Mapping[str, Any], address: str) -> tuple[Effect, ...]:
        """No receipt is asked for."""
        raise ValueError("a promise has no receipt")


@command("signer", proofs=AGENT, repeatable=True, replays_itself=True, audit=("tx.signed", "tx.queued", "tx.refused"))
class SignPromise(Command[Decided], frozen=True):
    """Sign a promise."""

    agent: AgentId
    tx_id: Uuid
    order: PromiseOrder


PROMISE = PromiseKind()


async def sign_promise(signer: Signer, message: SignPromise, call: Call[ProvenAgent]) -> Answered[Decided]:
    """Take the path of every order."""
    ref = AgentRef(call.caller.tenant, message.agent)

    def attempt() -> SigningAttempt:
        draft = PROMISE.check(message.order, Inputs(signer.chains))
        way = Direct(signer)
        return SigningAttempt(ref=ref, tx_id=message.tx_id, kind=PROMISE, draft=draft, call=call, way=way)

    return decision_of(await settle(signer, ref, attempt))


if __name__ == "__main__":
    kinds = OrderKinds({**KINDS.by_order, PromiseOrder: PROMISE, PebbleOrder: PEBBLE}, (PromiseOrder, PebbleOrder))
    handlers = (*HANDLERS, on(SignPromise, sign_promise), on(CarryPebbles, carry_pebbles))
    signer_main.main(kinds, handlers, (*built_in.LISTED, Pebbles()))

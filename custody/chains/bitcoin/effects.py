"""The effects of a PSBT, in the words that every chain shares."""

from custody.chains.bitcoin.scripts import kind_of
from custody.chains.bitcoin.types import Payment, Spend
from custody.chains.types import Effect, Subject

ASSET = "bitcoin"
OTHERS_PAY = "others pay in this transaction"
DATA = "data"


def subject_of(spend: Spend, own_address: str) -> Subject:
    """Build the subject that policies judge: every payment, the whole fee, and whether others pay beside this wallet.

    The fee is spend too, since a PSBT's outflow is known only with it. Where others pay, nobody can say whose money a
    payment is: all of it counts, and with a limit or threshold a person decides.
    """
    effects = [
        Effect(
            "transfer",
            ASSET,
            payment.amount,
            from_=own_address,
            to=payment.address,
            label=_label(payment),
        )
        for payment in spend.payments
    ]
    effects.append(Effect("fee", ASSET, spend.fee, from_=own_address))
    if spend.foreign:
        effects.append(Effect("unread", None, 0, from_=own_address, label=OTHERS_PAY))
    return subject(tuple(effects), spend.scope.network.caip2)


def _label(payment: Payment) -> str | None:
    """Name what an output without an address is: data, or the kind of bare keys that it pays."""
    kind = kind_of(payment.script)
    return None if payment.address is not None else DATA if kind == "op_return" else kind


def subject(effects: tuple[Effect, ...], caip2: str) -> Subject:
    """The same from its effects; where the order goes is where its first payment does."""
    paid = next((effect.to for effect in effects if effect.kind == "transfer" and effect.to is not None), None)
    own = next((effect.from_ for effect in effects if effect.from_ is not None), None)
    return Subject("bitcoin", "bitcoin", None, caip2, paid if paid is not None else own, effects, listed=True)

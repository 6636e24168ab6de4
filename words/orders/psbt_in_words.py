"""Parts of a PSBT that its effects do not name, in words: coins, change, fee rate, and the bytes it writes. Pure.

All of it is from the PSBT itself. Where that and the effects differ, the difference comes first, in red: the service
did not tell what it was asked to sign.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from words.orders.order import Known, Order
from words.orders.psbt import Paid, Psbt, taken_apart
from words.shapes import Effect
from words.texts.amounts import coins, quote, whole
from words.texts.chains import BTC, BitcoinNetwork, bitcoin_network
from words.texts.fields import pluralize
from words.texts.lines import Line
from words.texts.plain import plain

_MOST: Final = 40
_WRITTEN: Final = 200
_UNREAD: Final = "The PSBT cannot be decoded here: what is said of it is the service's word alone."


def network_of(order: Order, known: Known) -> BitcoinNetwork | None:
    """The network that an order is for, as far as it is known."""
    return bitcoin_network(order.caip2 or (known.transaction.caip2 if known.transaction else None))


def psbt_in_words(order: Order, known: Known) -> list[Line]:
    """Describe what must be read before deciding; nothing while the PSBT is not known."""
    if order.kind != "bitcoin" or known.data is None:
        return []
    network = network_of(order, known)
    psbt = taken_apart(known.data, network.name) if network else None
    if psbt is None:
        return [Line(_UNREAD, "warn")]
    said = [Line(f"The PSBT is not what the service says: {one}.", "bad") for one in differences(psbt, order.effects)]
    return [*said, *_spends(psbt, order), *_change(psbt, order), *_writes(psbt), _rate(psbt)]


def agrees(fields: Mapping[str, Any], effects: Sequence[Effect]) -> bool:
    """Tell whether an order, by its stored fields, does what effects say."""
    network = bitcoin_network(str(fields.get("walletScope")))
    psbt = taken_apart(fields.get("psbtBase64"), network.name) if network else None
    return psbt is not None and not differences(psbt, effects)


def differences(psbt: Psbt, effects: Sequence[Effect]) -> list[str]:
    """List claims of effects that the bytes do not keep; outputs that no effect names are change, or claimed to be."""
    said = [
        f"it has no output of {coins(amount, BTC)} to {quote(to or 'data', 100)}"
        for (to, amount), _ in (_payments(effects) - _outputs(psbt)).items()
    ]
    fees = [whole(effect.amount) for effect in effects if effect.kind == "fee"]
    if psbt.fee is not None and fees != [psbt.fee]:
        said.append(f"its fee is {psbt.fee:,} sat")
    own = {effect.from_ for effect in effects}
    others = any(one.coin is None or one.coin.address not in own for one in psbt.inputs)
    if not others and any(effect.unread for effect in effects):
        said.append("nobody else pays in it")
    return said


def psbt_details(data: str, network: BitcoinNetwork | None) -> list[Line]:
    """Inputs and outputs one by one, in the order of the transaction."""
    psbt = taken_apart(data, network.name if network else "")
    if psbt is None:
        return [Line("inputs and outputs: the PSBT cannot be decoded here", "warn")]
    lines = [Line(f"inputs: {len(psbt.inputs):,}")]
    for number, spent in enumerate(psbt.inputs[:_MOST], 1):
        brings = f"{spent.coin.amount:,} sat" if spent.coin else "an amount that the PSBT does not show"
        lines += [Line(f"  {number}. {brings}"), Line(f"     coin {spent.outpoint}")]
        lines += [Line(f"     of {_whom(spent.coin)}")] if spent.coin else []
    lines += [*_more(len(psbt.inputs)), Line(f"outputs: {len(psbt.outputs):,}")]
    for number, paid in enumerate(psbt.outputs[:_MOST], 1):
        lines += [Line(f"  {number}. {paid.amount:,} sat"), Line(f"     to {_whom(paid)}")]
    return [*lines, *_more(len(psbt.outputs)), Line(f"version {psbt.version}, lock time {psbt.lock_time}")]


def _payments(effects: Sequence[Effect]) -> Counter[tuple[str | None, str]]:
    return Counter((effect.to, effect.amount) for effect in effects if effect.kind == "transfer")


def _outputs(psbt: Psbt) -> Counter[tuple[str | None, str]]:
    return Counter((one.address, str(one.amount)) for one in psbt.outputs)


def _spends(psbt: Psbt, order: Order) -> list[Line]:
    own = {effect.from_ for effect in order.effects if effect.from_}
    brought = [one.coin for one in psbt.inputs if one.coin]
    ours = [coin for coin in brought if coin.address in own]
    said = [Line(f"Spends {_coins(ours)} of the address that signs.")]
    if rest := [coin for coin in brought if coin.address not in own]:
        said.append(Line(f"Spends also {_coins(rest)} of other addresses.", "warn"))
    if unseen := len(psbt.inputs) - len(brought):
        said.append(Line(f"Spends also {pluralize(unseen, 'coin', 'coins')} that the PSBT does not show.", "warn"))
    return said


def _coins(found: list[Paid]) -> str:
    return f"{pluralize(len(found), 'coin', 'coins')}, {coins(str(sum(one.amount for one in found)), BTC)},"


def _change(psbt: Psbt, order: Order) -> list[Line]:
    """Outputs that no effect names: the service re-derived their addresses from the wallet's own key."""
    back = list((_outputs(psbt) - _payments(order.effects)).elements())
    own = {effect.from_ for effect in order.effects if effect.from_}
    said = []
    for address, amount in back[:_MOST]:
        # Of another address than the one that signs only the service knows whose it is.
        word = "" if address in own else ", by the service's word,"
        said += [
            Line(f"Change: {coins(amount, BTC)} comes back{word} to"),
            Line(f"  {address or 'a script without an address'}", None if address else "bad", address=bool(address)),
        ]
        said += [Line("  this is the address that signs")] if address in own else []
    return said + _more(len(back))


def _writes(psbt: Psbt) -> list[Line]:
    return [
        Line(f"Writes {pluralize(len(data), 'byte', 'bytes')} into the chain, for ever: {_readable(data)}")
        for one in psbt.outputs
        if (data := one.data) is not None
    ]


def _readable(data: bytes) -> str:
    return quote(plain(data.decode("utf-8", "backslashreplace")), _WRITTEN)


def _rate(psbt: Psbt) -> Line:
    if psbt.fee is None:
        return Line("Fee rate: unknown, for the PSBT does not show what every input brings.", "warn")
    tenths = -(-10 * psbt.fee // psbt.vbytes)
    size = f"{psbt.vbytes:,} vbytes or more"
    return Line(f"Fee rate: at most {tenths // 10:,}.{tenths % 10} sat/vB ({psbt.fee:,} sat, {size}).", "quiet")


def _whom(paid: Paid) -> str:
    if paid.data is not None:
        return f"nobody, data: {_readable(paid.data)}"
    return paid.address or f"a script without an address: {paid.script[:_WRITTEN].hex()}"


def _more(number: int) -> list[Line]:
    return [Line(f"  …and {number - _MOST:,} more, not shown here.", "warn")] if number > _MOST else []

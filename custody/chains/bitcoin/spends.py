"""The effects of a PSBT, proven before a signature: coins, their owners, payments, what comes back, the fee.

A coin's amount and script are believed only as the transaction that made it has them: told one lie in each of two
sessions, a signer that takes a PSBT's word signs both halves of a transaction that gives the difference to a miner.
"""

from collections.abc import Iterable
from typing import Final

from custody.chains.bitcoin.addresses import address_of
from custody.chains.bitcoin.bounds import MAX_MONEY, Bounds
from custody.chains.bitcoin.keys import public_below
from custody.chains.bitcoin.refusals import (
    PsbtFee,
    PsbtNoOwnInput,
    PsbtSighash,
    PsbtUnprovenInput,
)
from custody.chains.bitcoin.relay import check_fee, check_outputs
from custody.chains.bitcoin.scripts import kind_of, redeem_script_of, script_of
from custody.chains.bitcoin.types import (
    Account,
    AddressType,
    Derivation,
    OwnInput,
    OwnKey,
    Payment,
    Psbt,
    PsbtInput,
    Spend,
    TxOut,
    WalletScope,
)

SIGHASH_DEFAULT, SIGHASH_ALL = 0, 1
# Of own addresses that hints may name: beyond it an output is a payment, and an input a stranger's.
MAX_INDEX: Final = 10_000
_HARDENED: Final = 2**31
# The smallest weight of an input beside its 41 bytes, which count four times: signature scripts and witnesses.
_SIGNED_WEIGHT: Final[dict[AddressType, int]] = {
    "p2wpkh": 1 + 1 + 71 + 1 + 33,
    "p2tr": 1 + 1 + 64,
    "p2sh-p2wpkh": 4 * 23 + 1 + 1 + 71 + 1 + 33,
    "p2pkh": 4 * (1 + 71 + 1 + 33),
}


def prove(psbt: Psbt, scope: WalletScope, account: Account, bounds: Bounds | None) -> Spend:
    """Prove what a PSBT does to the wallet of a scope; without bounds, for one that was signed already.

    Raises PsbtUnprovenInput, PsbtSighash, PsbtNoOwnInput, PsbtNonstandardOutput, PsbtFee or FeeAboveCap.
    """
    keys = _Keys(scope, account)
    coins = _coins(psbt, keys)
    own = _own_inputs(psbt, coins, keys)
    if not any(one.signed for one in own):
        raise _none_to_sign(own, keys)
    payments, change = _outputs(psbt, keys)
    fee = sum(coin.amount for coin in coins) - sum(output.amount for output in psbt.transaction.outputs)
    ours = {one.position for one in own}
    spend = Spend(
        psbt=psbt,
        scope=scope,
        coins=coins,
        own=own,
        foreign=tuple(place for place in range(len(coins)) if place not in ours),
        payments=payments,
        change=change,
        fee=fee,
        weight=_weight(psbt, own, scope.address_type),
    )
    if sum(coin.amount for coin in coins) > MAX_MONEY:
        raise PsbtFee("psbtBase64: the inputs bring more than there can ever be.")
    if fee < 0:
        raise PsbtFee(f"psbtBase64: the outputs pay {-fee} sat more than the inputs bring; pay less, or add a coin.")
    if bounds is not None:
        check_outputs(spend, bounds)
        check_fee(spend, bounds)
    return spend


class _Keys:
    """The keys of one account, derived when they are first asked for: each costs some 40 microseconds."""

    def __init__(self, scope: WalletScope, account: Account) -> None:
        self.scope = scope
        self._branches = tuple(public_below(account, branch) for branch in (0, 1))
        self._scripts: dict[tuple[int, int], tuple[OwnKey, bytes]] = {}
        self.own, self.script = self.at(scope.change, scope.index)

    def at(self, branch: int, index: int) -> tuple[OwnKey, bytes]:
        """A key of the account, and the script that pays it."""
        if (found := self._scripts.get((branch, index))) is None:
            public_key = public_below(self._branches[branch], index).public_key
            found = OwnKey(branch, index, public_key), script_of(self.scope.address_type, public_key)
            self._scripts[branch, index] = found
        return found

    def of(self, script: bytes, hints: Iterable[Derivation]) -> OwnKey | None:
        """The key that a script pays, if the first hint at this account leads to one whose script it is."""
        if script == self.script:
            return self.own
        for hint in hints:
            if (place := self._place(hint.path)) is not None:
                key, made = self.at(*place)
                return key if made == script else None
        return None

    def _place(self, path: tuple[int, ...]) -> tuple[int, int] | None:
        """Branch and index that a path names below this account."""
        if path[:-2] != tuple(number + _HARDENED for number in self.scope.account_path):
            return None
        branch, index = path[-2:]
        return (branch, index) if branch in (0, 1) and index < MAX_INDEX else None


def _coins(psbt: Psbt, keys: _Keys) -> tuple[TxOut, ...]:
    alone = len(psbt.inputs) == 1
    found = []
    for place, one in enumerate(psbt.inputs):
        coin = _coin(psbt, place, one)
        if one.previous is None:
            # A taproot signature is over the amounts and scripts of all inputs, so a lie makes it worthless. Any other
            # is over its own at most: beside it, a coin of ours shown as a stranger's of taproot would be believed.
            signs_all = keys.scope.address_type == "p2tr" and kind_of(coin.script) == "p2tr"
            lone_own = alone and coin.script == keys.script and keys.scope.address_type in ("p2wpkh", "p2sh-p2wpkh")
            if not signs_all and not lone_own:
                raise PsbtUnprovenInput(
                    f"psbtBase64: input {place} has no non-witness UTXO; add the whole transaction that made its coin."
                )
        _check_sighash(place, one, coin)
        found.append(coin)
    return tuple(found)


def _coin(psbt: Psbt, place: int, one: PsbtInput) -> TxOut:
    """Find the coin that an input spends, as far as the PSBT shows it."""
    outpoint = psbt.transaction.inputs[place].outpoint
    if one.previous is None:
        if one.witness_utxo is None:
            raise PsbtUnprovenInput(
                f"psbtBase64: input {place} has no UTXO; add the whole transaction that made its coin."
            )
        return one.witness_utxo
    txid, coin = one.previous
    if txid != outpoint.txid:
        raise PsbtUnprovenInput(f"psbtBase64: the non-witness UTXO of input {place} is another transaction.")
    if coin is None:
        raise PsbtUnprovenInput(f"psbtBase64: the non-witness UTXO of input {place} has no output {outpoint.index}.")
    if one.witness_utxo not in (None, coin):
        raise PsbtUnprovenInput(f"psbtBase64: the witness UTXO of input {place} is not what its transaction has.")
    return coin


def _check_sighash(place: int, one: PsbtInput, coin: TxOut) -> None:
    allowed = (None, SIGHASH_DEFAULT, SIGHASH_ALL) if kind_of(coin.script) == "p2tr" else (None, SIGHASH_ALL)
    if one.sighash not in allowed:
        raise PsbtSighash(
            f"psbtBase64: input {place} asks for the sighash type {one.sighash:#x}; only ALL (1) is signed, and of "
            "taproot DEFAULT (0). Leave the field out."
        )


def _own_inputs(psbt: Psbt, coins: tuple[TxOut, ...], keys: _Keys) -> tuple[OwnInput, ...]:
    own = []
    for place, (one, coin) in enumerate(zip(psbt.inputs, coins, strict=True)):
        key = keys.of(coin.script, (*one.derivations, *one.tap_derivations))
        if key is None:
            continue
        is_final = one.final_script is not None or one.final_witness is not None
        signed = key == keys.own and not is_final and _is_spendable(one, key, keys.scope.address_type, place)
        own.append(OwnInput(place, key, signed))
    return tuple(own)


def _none_to_sign(own: tuple[OwnInput, ...], keys: _Keys) -> PsbtNoOwnInput:
    """Why no input is signed: all are final, or of other addresses of the account, or of somebody else."""
    scope = keys.scope
    if any(one.key == keys.own for one in own):
        return PsbtNoOwnInput(f"psbtBase64: every input of {scope.text} is final already, so nothing is left to sign.")
    hint = "check the scope"
    if own:
        key = own[0].key
        hint = f"input {own[0].position} is of {scope.account_name}:{key.branch}:{key.index}, so ask with that"
    return PsbtNoOwnInput(
        f"psbtBase64: no input spends a coin of {scope.text}, whose address is "
        f"{address_of(keys.script, scope.network)}; {hint}, or take another PSBT."
    )


def _is_spendable(one: PsbtInput, key: OwnKey, address_type: AddressType, place: int) -> bool:
    """Say whether an own input asks for nothing but its key's signature; PsbtNoOwnInput where it asks for more."""
    redeem = redeem_script_of(key.public_key) if address_type == "p2sh-p2wpkh" else None
    if one.redeem_script not in (None, redeem) or one.witness_script is not None:
        raise PsbtNoOwnInput(
            f"psbtBase64: input {place} has a redeem or witness script that is not this wallet's; leave it out."
        )
    if one.tap_merkle_root is not None or one.tap_leaves:
        raise PsbtNoOwnInput(
            f"psbtBase64: input {place} has taproot scripts, and this wallet signs by its key alone; leave them out."
        )
    if one.tap_internal_key not in (None, key.public_key[1:]):
        raise PsbtNoOwnInput(f"psbtBase64: input {place} has the internal key of another wallet; leave it out.")
    return True


def _outputs(psbt: Psbt, keys: _Keys) -> tuple[tuple[Payment, ...], tuple[int, ...]]:
    payments, change = [], []
    for place, (said, output) in enumerate(zip(psbt.outputs, psbt.transaction.outputs, strict=True)):
        if keys.of(output.script, said.derivations) is not None:
            change.append(place)
        else:
            address = address_of(output.script, keys.scope.network)
            payments.append(Payment(place, output.amount, output.script, address))
    return tuple(payments), tuple(change)


def _weight(psbt: Psbt, own: tuple[OwnInput, ...], address_type: AddressType) -> int:
    """The smallest weight of the whole transaction; of others' inputs nothing is known, so nothing is counted."""
    witnesses = 2 if address_type != "p2pkh" else 0
    return 4 * len(psbt.unsigned) + witnesses + len(own) * _SIGNED_WEIGHT[address_type]

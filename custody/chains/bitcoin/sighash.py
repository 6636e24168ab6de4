"""The digest that each signature is made over: legacy, BIP-143 and BIP-341, always of the whole transaction."""

import struct
from typing import Final

from custody.chains.bitcoin.hashes import digest, hash256, sha256
from custody.chains.bitcoin.psbt import frame, size_of
from custody.chains.bitcoin.scripts import kind_of, redeem_script_of
from custody.chains.bitcoin.types import OwnKey, Spend, Transaction, TxOut

_ALL: Final = 1


class Digests:
    """Of one spend, by input; what all inputs share is hashed once."""

    def __init__(self, spend: Spend) -> None:
        transaction: Transaction = spend.psbt.transaction
        self._spend, self._transaction = spend, transaction
        self._outpoints = b"".join(one.outpoint.txid + _word(one.outpoint.index) for one in transaction.inputs)
        self._sequences = b"".join(_word(one.sequence) for one in transaction.inputs)
        self._outputs = b"".join(_output(one) for one in transaction.outputs)
        # BIP-143 hashes twice what BIP-341 hashes once.
        self._hashed = sha256(self._outpoints), sha256(self._sequences), sha256(self._outputs)
        amounts = b"".join(coin.amount.to_bytes(8, "little") for coin in spend.coins)
        scripts = b"".join(frame(coin.script) for coin in spend.coins)
        self._coins = sha256(amounts) + sha256(scripts)
        self._version, self._lock_time = struct.pack("<i", transaction.version), _word(transaction.lock_time)

    def of(self, position: int, key: OwnKey, sighash: int) -> bytes:
        """Compute what an own input signs, by the kind of the coin that it spends."""
        coin = self._spend.coins[position]
        kind = kind_of(coin.script)
        if kind == "p2tr":
            return self._taproot(position, sighash)
        if kind == "p2pkh":
            return self._legacy(position, coin.script)
        return self._segwit(position, coin, redeem_script_of(key.public_key))

    def _legacy(self, position: int, script: bytes) -> bytes:
        inputs = self._transaction.inputs
        signed = b"".join(
            one.outpoint.txid
            + _word(one.outpoint.index)
            + frame(script if place == position else b"")
            + _word(one.sequence)
            for place, one in enumerate(inputs)
        )
        outputs = size_of(len(self._transaction.outputs)) + self._outputs
        return hash256(self._version + size_of(len(inputs)) + signed + outputs + self._lock_time + _word(_ALL))

    def _segwit(self, position: int, coin: TxOut, program: bytes) -> bytes:
        one = self._transaction.inputs[position]
        outpoints, sequences, outputs = (sha256(hashed) for hashed in self._hashed)
        code = b"\x19\x76\xa9\x14" + program[2:] + b"\x88\xac"
        return hash256(
            self._version
            + outpoints
            + sequences
            + one.outpoint.txid
            + _word(one.outpoint.index)
            + code
            + coin.amount.to_bytes(8, "little")
            + _word(one.sequence)
            + outputs
            + self._lock_time
            + _word(_ALL)
        )

    def _taproot(self, position: int, sighash: int) -> bytes:
        outpoints, sequences, outputs = self._hashed
        return digest(
            "TapSighash",
            bytes((0, sighash))
            + self._version
            + self._lock_time
            + outpoints
            + self._coins
            + sequences
            + outputs
            # Neither an annex nor a script is spent.
            + b"\x00"
            + _word(position),
        )


def _word(number: int) -> bytes:
    return number.to_bytes(4, "little")


def _output(one: TxOut) -> bytes:
    return one.amount.to_bytes(8, "little") + frame(one.script)

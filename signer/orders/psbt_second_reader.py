"""The second reader of PSBTs: embit, which shares no code with ours. It reads, and never signs."""

from base64 import b64decode
from typing import Any

from custody.chains.bitcoin.types import Psbt, PsbtInput, Transaction
from custody.protocol.signer.refusals import PsbtAmbiguous
from signer.orders.drafts import PsbtDraft
from signer.orders.kind import SecondReader


class EmbitReader(SecondReader[PsbtDraft]):
    """Parses the caller's bytes by itself, and compares the transaction and the coins that it finds."""

    def import_library(self) -> None:
        """Import embit."""
        import embit.psbt  # noqa: F401, PLC0415 - kept for `_read`

    def confirm(self, draft: PsbtDraft) -> None:
        """Raise PsbtAmbiguous unless it reads the same."""
        compare(b64decode(draft.order.psbt_base64), draft.parsed)


def compare(raw: bytes, psbt: Psbt) -> None:
    """Raise PsbtAmbiguous unless embit finds the same transaction in these bytes, and the same coins."""
    try:
        theirs = _read(raw)
    except Exception as problem:
        # Whatever it stumbles over, it does not read what we read.
        raise PsbtAmbiguous from problem
    if theirs != (_of(psbt.transaction), [_coin(psbt, place, one) for place, one in enumerate(psbt.inputs)]):
        raise PsbtAmbiguous


type _Coin = tuple[int, bytes] | None


def _of(transaction: Transaction) -> tuple[Any, ...]:
    return (
        transaction.version,
        transaction.lock_time,
        [(one.outpoint.txid, one.outpoint.index, one.sequence) for one in transaction.inputs],
        [(one.amount, one.script) for one in transaction.outputs],
    )


def _coin(psbt: Psbt, place: int, one: PsbtInput) -> tuple[_Coin, bytes | None, _Coin]:
    """Read what the previous transaction says of an input's coin, that transaction's id, and what is said beside it."""
    txid, made = one.previous if one.previous is not None else (None, None)
    beside = one.witness_utxo
    return (
        (made.amount, made.script) if made is not None else None,
        txid,
        (beside.amount, beside.script) if beside is not None else None,
    )


def _read(raw: bytes) -> tuple[tuple[Any, ...], list[tuple[_Coin, bytes | None, _Coin]]]:
    """The same in embit's words; its transaction ids are spelled backwards."""
    from embit.psbt import PSBT  # noqa: PLC0415 - see above

    class Read(PSBT):  # type: ignore[misc]
        def parse_tx(self, tx: Any) -> None:
            # Its own `tx` is made again of its parts, where a sequence of 0 becomes 0xffffffff, and version 0 is 2.
            self.given = tx
            super().parse_tx(tx)

    read = Read.parse(raw)
    transaction = read.given
    # It keeps the version as it is in the bytes, without a sign.
    version = transaction.version if transaction.version < 2**31 else transaction.version - 2**32
    found = (
        version,
        transaction.locktime,
        [(one.txid[::-1], one.vout, one.sequence) for one in transaction.vin],
        [(one.value, one.script_pubkey.data) for one in transaction.vout],
    )
    coins = []
    for place, one in zip(transaction.vin, read.inputs, strict=True):
        made, beside, coin = one.non_witness_utxo, one.witness_utxo, None
        if made is not None and place.vout < len(made.vout):
            coin = (made.vout[place.vout].value, made.vout[place.vout].script_pubkey.data)
        coins.append(
            (
                coin,
                made.txid()[::-1] if made is not None else None,
                (beside.value, beside.script_pubkey.data) if beside is not None else None,
            )
        )
    return found, coins

"""The cost of a PSBT in the signer: reading it, the second reader, proving it, signing and finishing it.

`python -m bench.bitcoin`. One processor, no database and no HTTP; each figure is the median of many.
"""

import hashlib
import statistics
import time
from base64 import b64encode
from collections.abc import Callable
from io import BytesIO
from typing import Any

from embit.psbt import PSBT
from embit.script import Script
from embit.transaction import Transaction, TransactionInput, TransactionOutput

from custody.chains.bitcoin import psbt as psbts
from custody.chains.bitcoin.bounds import Bounds
from custody.chains.bitcoin.finalise import finalise
from custody.chains.bitcoin.keys import account_of, child, root_of
from custody.chains.bitcoin.scope import parse_scope
from custody.chains.bitcoin.scripts import script_of
from custody.chains.bitcoin.sign import sign
from custody.chains.bitcoin.spends import prove
from signer.orders.psbt_second_reader import compare

SIZES = (2, 100)
TYPES = ("p2wpkh", "p2tr")
ROUNDS = 25


def measure() -> None:
    """Each step, for each size and type."""
    root = root_of(hashlib.sha256(b"bench").digest())
    for kind in TYPES:
        scope = parse_scope(f"bitcoin:regtest:{kind}:0:0:0")
        account = account_of(root, scope.account_path)
        own = Script(script_of(scope.address_type, child(account, 0, 0)))
        for size in SIZES:
            raw = _psbt(own, size)
            text = b64encode(raw).decode()
            read = psbts.read(text)
            spend = prove(read, scope, account, Bounds())
            signed = sign(spend, root)
            steps: dict[str, Callable[[], Any]] = {
                "read": lambda text=text: psbts.read(text),
                "second reader": lambda raw=raw, read=read: compare(raw, read),
                "prove": lambda read=read, scope=scope, account=account: prove(read, scope, account, Bounds()),
                "sign": lambda spend=spend: sign(spend, root),
                "finish": lambda spend=spend, signed=signed: finalise(signed, spend),
            }
            figures = {name: _median(step) for name, step in steps.items()}
            said = ", ".join(f"{name} {milliseconds:.2f}" for name, milliseconds in figures.items())
            print(f"{kind}, {size} inputs, {size} outputs: {sum(figures.values()):.2f} ms ({said})", flush=True)


def _median(step: Callable[[], Any]) -> float:
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        step()
        taken.append(1_000 * (time.perf_counter() - began))
    return statistics.median(taken)


def _psbt(own: Script, size: int) -> bytes:
    """As many inputs as outputs, each input with the whole transaction that made its coin."""
    coins = [
        Transaction(
            vin=[TransactionInput(hashlib.sha256(bytes((number,))).digest(), 0, script_sig=Script(b"\x51"))],
            vout=[TransactionOutput(10_000, own), TransactionOutput(10_000, own)],
        )
        for number in range(size)
    ]
    paid = Script(b"\x00\x14" + bytes(20))
    transaction = Transaction(
        vin=[TransactionInput(coin.txid(), 0) for coin in coins],
        vout=[TransactionOutput(9_750, paid) for _ in range(size)],
    )
    psbt = PSBT(transaction)
    for one, coin in zip(psbt.inputs, coins, strict=True):
        one.non_witness_utxo = coin
    made = BytesIO()
    psbt.write_to(made)
    return made.getvalue()


if __name__ == "__main__":
    measure()

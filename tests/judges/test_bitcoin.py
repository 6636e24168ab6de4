"""Signatures on Bitcoin, held against other wallets' libraries and the consensus code of Bitcoin Core."""

import json
import shutil
import subprocess
from base64 import b64encode
from typing import Any

import bdkpython
import coincurve
import pytest
from embit import script as scripts
from embit.ec import PublicKey
from embit.script import Script

from custody.chains.bitcoin.bounds import Bounds
from custody.chains.bitcoin.finalise import finalise
from custody.chains.bitcoin.psbt import read_bytes, write
from custody.chains.bitcoin.sign import sign
from custody.chains.bitcoin.types import FinalTransaction, SignedPsbt, Spend
from tests.chains.bitcoin.wallet import ROOT, TYPES, Fields, address_fields, own_script, prove_psbt
from tests.fixtures.bitcoin import SOMEBODY, coin, hint, spend
from tests.judges import npm

kernel = pytest.importorskip("pbk", reason="py-bitcoinkernel has no wheel for this interpreter or machine")
pytestmark = pytest.mark.skipif(npm.missing() is not None, reason=npm.missing() or "")
# Versions, sequences and lock times that a wallet may choose.
NUMBERS = [(1, 0, 0), (2, 0xFFFFFFFD, 840_000), (2, 0xFFFFFFFE, 0), (1, 0xFFFFFFFF, 0)]
CAPS = Bounds(absolute=10**7)


@pytest.fixture(scope="session", autouse=True)
def _judges() -> None:
    npm.install()


def ask_judges(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the judges' findings on each case."""
    node = shutil.which("node")
    assert node
    given = "".join(json.dumps(case) + "\n" for case in cases)
    ran = subprocess.run(
        [node, "bitcoin.mjs"], input=given, capture_output=True, text=True, cwd=npm.JUDGES, timeout=120, check=True
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def make(kind: str, numbers: tuple[int, int, int], inputs: int) -> tuple[Spend, SignedPsbt, FinalTransaction]:
    """A spend with change, signed and finished."""
    version, sequence, lock_time = numbers
    own = own_script(kind)
    coins = [
        (coin(own, 40_000 + number, f"{kind} {number}", outputs=3, at=number % 3), number % 3)
        for number in range(inputs)
    ]
    total = sum(40_000 + number for number in range(inputs))
    psbt = spend(
        coins,
        [(SOMEBODY, 20_000), (own_script(kind, 1, 5), total - 20_000 - 2_000 * inputs)],
        version=version,
        sequence=sequence,
        lock_time=lock_time,
    )
    hint(psbt, 1, address_fields(kind, 1, 5))
    found = prove_psbt(psbt, kind, CAPS)
    signed = sign(found, ROOT)
    done = finalise(signed, found)
    assert done is not None
    return found, signed, done


ALL = [
    pytest.param(kind, numbers, inputs, id=f"{kind}-{place}-{inputs}")
    for kind in TYPES
    for place, numbers in enumerate(NUMBERS)
    for inputs in (1, 4)
]


@pytest.fixture(scope="module")
def all_cases() -> dict[tuple[Any, ...], tuple[Any, dict[str, Any]]]:
    """Every case as it was made here, with the findings of one run of the foreign libraries."""
    ours = {case.values: make(*case.values) for case in ALL}
    asked = [
        {"kind": "finished", "signed": b64encode(signed.raw).decode(), "final": b64encode(done.psbt).decode()}
        for _, signed, done in ours.values()
    ]
    return dict(zip(ours, zip(ours.values(), ask_judges(asked), strict=True), strict=True))


@pytest.mark.parametrize(("kind", "numbers", "inputs"), ALL)
def test_every_library_finishes_the_same_bytes(
    all_cases: dict[tuple[Any, ...], tuple[Any, dict[str, Any]]], kind: str, numbers: tuple[int, int, int], inputs: int
) -> None:
    (found, signed, done), verdict = all_cases[kind, numbers, inputs]

    ours = {"raw": done.raw.hex(), "txid": done.txid, "vsize": done.vsize, "fee": found.fee}
    assert verdict.get("problem") is None, verdict
    assert verdict["bitcoinjs"] == ours
    assert verdict["scure"] == ours
    assert (verdict["extracted"], verdict["read"]) == (done.raw.hex(), done.txid)
    theirs = bdkpython.Psbt(b64encode(signed.raw).decode())
    assert theirs.fee() == found.fee
    ended = theirs.finalize()
    assert ended.errors is None
    extracted = ended.psbt.extract_tx_unchecked_fee_rate()
    assert (extracted.serialize().hex(), str(extracted.compute_txid()), extracted.vsize()) == (
        done.raw.hex(),
        done.txid,
        done.vsize,
    )


def accepts(raw: bytes, coins: tuple[Any, ...], place: int) -> bool:
    """Tell whether Bitcoin Core's consensus code takes an input of a transaction."""
    transaction = kernel.Transaction(raw)
    outputs = [kernel.TransactionOutput(kernel.ScriptPubkey(one.script), one.amount) for one in coins]
    computed = kernel.script.PrecomputedTransactionData(transaction, outputs)
    try:
        return bool(
            kernel.ScriptPubkey(coins[place].script).verify(
                coins[place].amount, transaction, computed, place, kernel.ScriptVerificationFlags.ALL
            )
        )
    except kernel.ScriptVerifyException:
        return False


@pytest.mark.parametrize(("kind", "numbers", "inputs"), ALL)
def test_the_consensus_code_accepts_every_input(kind: str, numbers: tuple[int, int, int], inputs: int) -> None:
    found, _, done = make(kind, numbers, inputs)

    assert [accepts(done.raw, found.coins, place) for place in range(inputs)] == [True] * inputs
    # A control: with one bit of the last output's amount changed it takes none.
    place = done.raw.index(SOMEBODY.data) - 9
    changed = done.raw[:place] + bytes((done.raw[place] ^ 1,)) + done.raw[place + 1 :]
    assert not any(accepts(changed, found.coins, place) for place in range(inputs))


def test_other_libraries_sign_both_halves_of_a_lie() -> None:
    """The attack that tests/chains/bitcoin/test_spends.py refuses: 15 of 35 coins would go to a miner."""
    key = coincurve.PrivateKey(b"\x11" * 32)

    own: Script = scripts.p2wpkh(PublicKey.parse(key.public_key.format()))
    unit = 10**8
    honest = spend(
        [(coin(own, 15 * unit, "a"), 0), (coin(own, 20 * unit, "b"), 0)], [(SOMEBODY, 20 * unit)]
    ).serialize()
    halves = []
    for amounts in ((15 * unit, 5 * unit + 1), (1, 20 * unit)):
        lie = Fields(honest)
        for place, amount in enumerate(amounts, 1):
            told = amount.to_bytes(8, "little") + bytes((len(own.data),)) + own.data
            lie.drop(place, 0).put(place, b"\1", told)
        halves.append(b64encode(lie.raw()).decode())

    (verdict,) = ask_judges([{"kind": "believed", "halves": halves, "key": key.secret.hex()}])

    assert verdict == [1, 1]


def test_a_finished_psbt_is_read_back_as_it_was_written() -> None:
    for kind in TYPES:
        _, signed, done = make(kind, NUMBERS[0], 2)
        assert write(read_bytes(signed.raw)) == signed.raw
        assert write(read_bytes(done.psbt)) == done.psbt

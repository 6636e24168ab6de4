"""Bounds of relay, by Bitcoin Core's figures: dust as the Bitcoin Dev Kit has it, the fee's floor, data, sizes."""

import random
from typing import Any

import bdkpython as bdk
import pytest
from embit.script import Script

from custody.chains.bitcoin.bounds import Bounds
from custody.chains.bitcoin.refusals import FeeAboveCap, PsbtFee, PsbtNonstandardOutput
from custody.chains.bitcoin.relay import dust
from custody.chains.bitcoin.scripts import kind_of
from custody.chains.bitcoin.types import TxOut
from tests.chains.bitcoin.test_spends import NO_CAPS, OUTPUTS, data, multisig
from tests.chains.bitcoin.wallet import TYPES, finish, own_script, prove_psbt
from tests.fixtures.bitcoin import SOMEBODY, coin, spend
from tests.fixtures.thorough import THOROUGH

PAID = {name: script for name, (script, amount, passes) in OUTPUTS.items() if passes and amount}
DATA = Script(b"\x6a\x04name")


@pytest.fixture(scope="module")
def wallet() -> bdk.Wallet:
    """A wallet of another library, with a coin."""
    key = bdk.Descriptor(
        "wpkh(02" + "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)", bdk.NetworkKind.TEST
    )
    made = bdk.Wallet.create_single(key, bdk.Network.REGTEST, bdk.Persister.new_in_memory())
    paid = bdk.Transaction(coin(SOMEBODY, 10**8, "of another library").serialize())
    made.apply_unconfirmed_txs([bdk.UnconfirmedTx(tx=paid, last_seen=1)])
    return made


def is_dust(wallet: bdk.Wallet, script: Script, amount: int) -> bool:
    """Tell whether the other library refuses to pay so little."""
    builder = bdk.TxBuilder().add_recipient(bdk.Script(script.data), bdk.Amount.from_sat(amount))
    try:
        builder.fee_absolute(bdk.Amount.from_sat(10_000)).finish(wallet)
    except bdk.CreateTxError.OutputBelowDustLimit:
        return True
    return False


@pytest.mark.parametrize("name", PAID)
def test_dust_is_what_another_library_calls_dust(name: str, wallet: bdk.Wallet) -> None:
    least = dust(TxOut(0, PAID[name].data), Bounds())

    assert [is_dust(wallet, PAID[name], amount) for amount in (least - 1, least)] == [True, False]


def paying(kind: str, fee: int, inputs: int = 1, *outputs: tuple[Script, int]) -> Any:
    """A PSBT that pays somebody a round sum from coins of a type, for a fee."""
    pays = [(SOMEBODY, 10**6), *outputs]
    each, rest = divmod(sum(amount for _, amount in pays) + fee, inputs)
    coins = [
        (coin(own_script(kind), each + (rest if not place else 0), f"{kind} {place}"), 0) for place in range(inputs)
    ]
    return spend(coins, pays)


@pytest.mark.parametrize("rate", [0, 1, 99, 100, 101, 999, 1_000, 1_001, 12_345])
@pytest.mark.parametrize("inputs", [1, 2, 7])
@pytest.mark.parametrize("kind", TYPES)
def test_the_floor_is_exact_for_every_type_of_input(kind: str, inputs: int, rate: int) -> None:
    bounds = Bounds(relay_per_kvbyte=rate)
    vsize = -(-prove_psbt(paying(kind, 10_000, inputs), kind, NO_CAPS).weight // 4)
    least = (vsize * rate + 999) // 1_000

    found = prove_psbt(paying(kind, least, inputs), kind, bounds)

    assert found.fee == least
    assert finish(found).vsize - vsize in range(2 * inputs + 1)
    if least:
        with pytest.raises(PsbtFee, match=f"of {least - 1} sat is below the {least} sat"):
            prove_psbt(paying(kind, least - 1, inputs), kind, bounds)


@pytest.mark.parametrize(
    ("rate", "said"), [(100, "0.1"), (1_000, "1"), (1_050, "1.05"), (12_345, "12.345"), (1, "0.001")]
)
def test_the_floor_is_told_as_people_write_it(rate: int, said: str) -> None:
    with pytest.raises(PsbtFee, match=rf"at {said} sat/vB"):
        prove_psbt(paying("p2wpkh", 0), bounds=Bounds(relay_per_kvbyte=rate))


def test_today_a_tenth_of_a_satoshi_a_vbyte_is_relayed() -> None:
    assert prove_psbt(paying("p2wpkh", 70, 1, (own_script(), 40_000))).fee == 70


def test_a_bare_multisig_counts_as_the_signatures_that_it_may_have_checked() -> None:
    """Nodes take 20 checks of 80 units of weight each for it: 1,600, and one of 20 for the input."""
    bounds, least = Bounds(relay_per_kvbyte=1_000), 405

    assert prove_psbt(paying("p2wpkh", least, 1, (multisig(), 10_000)), bounds=bounds).fee == least
    with pytest.raises(PsbtFee, match=r"405 sat that nodes relay 405 vbytes"):
        prove_psbt(paying("p2wpkh", least - 1, 1, (multisig(), 10_000)), bounds=bounds)


@pytest.mark.parametrize(
    ("outputs", "bounds", "passes"),
    [
        ([DATA, DATA], Bounds(), True),
        ([DATA] * 99, Bounds(), True),
        ([DATA, DATA], Bounds(op_return_outputs=1), False),
        ([DATA], Bounds(op_return_outputs=0), False),
        ([data(70)], Bounds(op_return_bytes=83), True),
        ([data(78)], Bounds(op_return_bytes=83), False),
        ([data(70), DATA], Bounds(op_return_bytes=81), False),
        ([data(70), DATA], Bounds(op_return_bytes=82), True),
        ([data(99_700)], Bounds(absolute=10**6), True),
        ([data(50_000), data(49_700)], Bounds(absolute=10**6), True),
        ([data(50_000), data(50_000)], Bounds(absolute=10**6), False),
    ],
)  # fmt: skip
def test_data_is_bounded_by_the_operators_figures(outputs: list[Script], bounds: Bounds, passes: bool) -> None:
    psbt = paying("p2wpkh", 50_000, 1, *((script, 0) for script in outputs))
    if not passes:
        with pytest.raises(PsbtNonstandardOutput, match=r"OP_RETURN outputs with \d+ bytes|a weight of"):
            prove_psbt(psbt, bounds=bounds)
        return

    found = prove_psbt(psbt, bounds=bounds)
    assert [(one.amount, one.address) for one in found.payments[1:]] == [(0, None)] * len(outputs)
    assert len(finish(found).raw) < 100_000


@pytest.mark.parametrize(("script", "passes"), [(b"\x6a", False), (b"\x6a\x02ab", False), (b"\x6a\x03abc", True)])
def test_a_transaction_shorter_than_65_bytes_is_not_relayed(script: bytes, passes: bool) -> None:
    """One input and one output: 4 + 1 + 41 + 1 + 8 + 1 + 4 bytes, and the script."""
    for kind in TYPES:
        psbt = spend([(coin(own_script(kind), 5_000, kind), 0)], [(Script(script), 0)])
        if passes or kind in ("p2pkh", "p2sh-p2wpkh"):
            assert prove_psbt(psbt, kind).fee == 5_000
        else:
            with pytest.raises(PsbtNonstandardOutput, match="from 65 bytes"):
                prove_psbt(psbt, kind)


def test_dust_is_by_the_operators_rate() -> None:
    bounds = Bounds(dust_per_kvbyte=1_000)

    assert prove_psbt(paying("p2wpkh", 500, 1, (SOMEBODY, 98)), bounds=bounds)
    with pytest.raises(PsbtNonstandardOutput, match="of 97 sat is dust; nodes relay its kind from 98 sat"):
        prove_psbt(paying("p2wpkh", 500, 1, (SOMEBODY, 97)), bounds=bounds)
    assert prove_psbt(paying("p2wpkh", 500, 1, (SOMEBODY, 0)), bounds=Bounds(dust_per_kvbyte=0))


def test_a_psbt_that_was_signed_is_read_whatever_is_relayed_by_now() -> None:
    psbt = paying("p2wpkh", 0, 1, (Script(b"\x6a\x61"), 0), (SOMEBODY, 1), (Script(b"\x51"), 5))

    found = prove_psbt(psbt, bounds="none")

    assert [one.amount for one in found.payments] == [10**6, 0, 1, 5]
    with pytest.raises(PsbtNonstandardOutput):
        prove_psbt(psbt)


def test_any_script_is_of_a_kind_or_of_none_and_nothing_is_raised() -> None:
    drawn = random.Random(30)
    seeds = [script.data for script, _, _ in OUTPUTS.values() if len(script.data) < 300]
    for _ in range(400 * THOROUGH):
        raw = bytearray(drawn.choice(seeds) or b"\x51")
        raw[drawn.randrange(len(raw))] = drawn.randrange(256)
        if drawn.randrange(2):
            del raw[drawn.randrange(len(raw)) :]
        psbt = paying("p2wpkh", 5_000, 1, (Script(bytes(raw)), 0 if raw[:1] == b"\x6a" else 50_000))
        try:
            prove_psbt(psbt)
        except (PsbtNonstandardOutput, FeeAboveCap):
            continue
        assert kind_of(bytes(raw)) is not None

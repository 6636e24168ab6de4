"""Proofs of each input and output, and what a signer believes of an input's own fields."""

import pytest
from embit.script import Script

from custody.chains.bitcoin.bounds import MAX_MONEY, Bounds
from custody.chains.bitcoin.hashes import hash160
from custody.chains.bitcoin.refusals import PsbtFee, PsbtNoOwnInput, PsbtUnprovenInput
from custody.chains.bitcoin.types import OwnKey, Payment
from tests.chains.bitcoin.wallet import (
    STRANGER,
    TYPES,
    Fields,
    address_fields,
    own_script,
    payment,
    prove_psbt,
    sign_spend,
)
from tests.fixtures.bitcoin import SOMEBODY, address_of, coin, hint, spend

WITNESS_UTXO, REDEEM, FINAL_SCRIPT, FINAL_WITNESS, TAP_KEY = b"\1", b"\4", b"\7", b"\x08", b"\x17"
FREE = Bounds(absolute=MAX_MONEY, per_vbyte=MAX_MONEY, share_percent=100, relay_per_kvbyte=0)


def key(kind: str = "p2wpkh", branch: int = 0, index: int = 0) -> bytes:
    return bytes.fromhex(address_fields(kind, branch, index)["publicKey"])


def with_hint(fields: Fields, place: int, index: int, purpose: int = 84, account: int = 0) -> Fields:
    """With a hint at one of our keys beside an input."""
    path = (purpose + 2**31, 1 + 2**31, account + 2**31, 0, index)
    said = bytes.fromhex(address_fields("p2wpkh", 0, index)["fingerprint"])
    return fields.put(place, b"\6" + key(index=index), said + b"".join(number.to_bytes(4, "little") for number in path))


def three(kind: str = "p2wpkh") -> Fields:
    """A stranger's coin, then two that are ours, of which the second is of another address."""
    coins = [own_script(kind, root=STRANGER), own_script(kind), own_script(kind, index=4)]
    spent = [(coin(script, 30_000, f"{place}"), 0) for place, script in enumerate(coins)]
    return with_hint(Fields(spend(spent, [(SOMEBODY, 50_000), (own_script(kind), 39_000)]).serialize()), 3, 4)


def test_a_proof_names_each_input_and_each_output_by_its_place() -> None:
    found = prove_psbt(three().raw())

    assert [(one.position, one.key, one.signed) for one in found.own] == [
        (1, OwnKey(0, 0, key()), True),
        (2, OwnKey(0, 4, key(index=4)), False),
    ]
    assert (found.foreign, found.change, found.fee) == ((0,), (1,), 1_000)
    assert found.payments == (Payment(0, 50_000, SOMEBODY.data, address_of(SOMEBODY)),)
    # Change before a payment, of the other branch, and data, which has no address.
    psbt = spend(
        [(coin(own_script(), 100_000), 0)], [(own_script("p2wpkh", 1, 3), 9), (Script(b"\x6a"), 0), (SOMEBODY, 99_000)]
    )
    hint(psbt, 0, address_fields("p2wpkh", 1, 3))
    found = prove_psbt(psbt, bounds="none")
    assert (found.change, [one.position for one in found.payments]) == ((0,), [1, 2])
    assert [one.address for one in found.payments] == [None, address_of(SOMEBODY)]


def test_a_hint_at_another_account_leads_nowhere() -> None:
    """Not even to a key of this account, at the same place below it."""
    psbt = spend([(coin(own_script(), 100_000), 0)], [(SOMEBODY, 50_000), (own_script("p2wpkh", 1, 3), 49_000)])
    hint(psbt, 1, {**address_fields("p2wpkh", 1, 3), "derivationPath": "m/84'/1'/1'/1/3"})
    assert (prove_psbt(psbt).change, prove_psbt(psbt).outflow) == ((), 100_000)
    hint(psbt, 1, address_fields("p2wpkh", 1, 3))
    assert (prove_psbt(psbt).change, prove_psbt(psbt).outflow) == ((1,), 51_000)


@pytest.mark.parametrize("bounds", ["none", FREE])
@pytest.mark.parametrize("beyond", [0, 1])
def test_inputs_bring_no_more_than_there_can_ever_be(bounds, beyond: int) -> None:
    coins = [(coin(own_script(), MAX_MONEY - 100, "a"), 0), (coin(own_script(), 100 + beyond, "b"), 0)]
    psbt = spend(coins, [(SOMEBODY, MAX_MONEY)])
    if not beyond:
        assert prove_psbt(psbt, bounds=bounds).fee == 0
        return
    with pytest.raises(PsbtFee, match="more than there can ever be"):
        prove_psbt(psbt, bounds=bounds)


@pytest.mark.parametrize("bounds", ["none", FREE])
def test_outputs_pay_no_more_than_the_inputs_bring(bounds) -> None:
    psbt = spend([(coin(own_script(), 1_000), 0)], [(SOMEBODY, 1_001)])
    with pytest.raises(PsbtFee, match="pay 1 sat more than the inputs bring"):
        prove_psbt(psbt, bounds=bounds)


def test_a_strangers_coin_beside_our_own_of_taproot_needs_its_transaction() -> None:
    """Only of taproot is a signature of theirs worth nothing where we are told a lie."""
    both = [(coin(own_script("p2tr"), 30_000, "own"), 0), (coin(SOMEBODY, 30_000, "other"), 0)]
    fields = Fields(spend(both, [(SOMEBODY, 59_000)]).serialize())
    assert prove_psbt(fields.raw(), "p2tr").foreign == (1,)
    with pytest.raises(PsbtUnprovenInput, match="input 1 has no non-witness UTXO"):
        prove_psbt(fields.drop(2, 0).raw(), "p2tr")


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("final", [FINAL_SCRIPT, FINAL_WITNESS])
def test_final_inputs_are_not_signed_again(kind: str, final: bytes) -> None:
    one = Fields(payment(kind, inputs=2).serialize()).put(2, final, b"\1\0")
    assert [each.signed for each in prove_psbt(one.raw(), kind).own] == [True, False]
    with pytest.raises(PsbtNoOwnInput, match="is final already, so nothing is left to sign"):
        prove_psbt(one.put(1, final, b"\1\0").raw(), kind)


def test_where_nothing_is_ours_to_sign_the_refusal_says_whose_it_is() -> None:
    ours, theirs = own_script(index=4), own_script(root=STRANGER)
    elsewhere = with_hint(Fields(spend([(coin(ours, 70_000), 0)], [(SOMEBODY, 69_000)]).serialize()), 1, 4)
    with pytest.raises(PsbtNoOwnInput, match=r"; input 0 is of bitcoin:regtest:p2wpkh:0:0:4, so ask with that, or"):
        prove_psbt(elsewhere.raw())
    address = address_of(own_script())
    with pytest.raises(PsbtNoOwnInput, match=rf"whose address is {address}; check the scope, or take another PSBT"):
        prove_psbt(spend([(coin(theirs, 70_000), 0)], [(SOMEBODY, 69_000)]))
    # One that is final, beside one of another address.
    final = with_hint(Fields(three().raw()), 3, 4).put(2, FINAL_WITNESS, b"\1\0")
    with pytest.raises(PsbtNoOwnInput, match="every input of bitcoin:regtest:p2wpkh:0:0:0 is final already"):
        prove_psbt(final.raw())


@pytest.mark.parametrize(
    ("kind", "field", "value", "signs"),
    [
        ("p2sh-p2wpkh", REDEEM, b"\0\x14", True),
        ("p2wpkh", REDEEM, b"\0\x14", False),
        ("p2pkh", REDEEM, b"\0\x14", False),
        ("p2tr", REDEEM, b"\0\x14", False),
        ("p2tr", TAP_KEY, b"", True),
    ],
)
def test_the_fields_of_an_own_input_are_of_its_own_key(kind: str, field: bytes, value: bytes, signs: bool) -> None:
    said = value + hash160(key(kind)) if value else key(kind)[1:]
    one = Fields(payment(kind).serialize()).put(1, field, said)
    if signs:
        assert len(sign_spend(prove_psbt(one.raw(), kind)).signatures) == 1
    else:
        with pytest.raises(PsbtNoOwnInput, match="input 0 has a redeem or witness script"):
            prove_psbt(one.raw(), kind)
    with pytest.raises(PsbtNoOwnInput, match="input 0 has"):
        prove_psbt(one.put(1, field, said[:-1] + bytes((said[-1] ^ 1,))).raw(), kind)
    with pytest.raises(PsbtNoOwnInput, match="input 0 has"):
        prove_psbt(one.put(1, field, bytes(len(said))).raw(), kind)


@pytest.mark.parametrize(
    ("kind", "signed_input", "witnesses"),
    [
        # Beside 41 bytes, which weigh four each: how many items there are, then each behind its length.
        ("p2wpkh", 107, 2),
        ("p2tr", 66, 2),
        ("p2sh-p2wpkh", 23 * 4 + 107, 2),
        ("p2pkh", 106 * 4, 0),
    ],
)
@pytest.mark.parametrize("inputs", [1, 3])
def test_the_smallest_weight_is_that_of_the_shortest_signatures(
    kind: str, signed_input: int, witnesses: int, inputs: int
) -> None:
    found = prove_psbt(payment(kind, inputs=inputs), kind)
    assert found.weight == 4 * len(found.psbt.unsigned) + witnesses + inputs * signed_input

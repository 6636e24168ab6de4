"""Proofs of a PSBT before it is signed: its coins, whose they are, what comes back, and the fee."""

from collections.abc import Callable

import pytest
from embit import script as scripts
from embit.ec import PublicKey
from embit.psbt import PSBT
from embit.script import Script

from custody.chains.bitcoin.bounds import Bounds
from custody.chains.bitcoin.effects import subject_of
from custody.chains.bitcoin.refusals import (
    BadWalletScope,
    FeeAboveCap,
    PsbtFee,
    PsbtNonstandardOutput,
    PsbtNoOwnInput,
    PsbtSighash,
    PsbtUnprovenInput,
)
from custody.chains.bitcoin.scope import parse_scope
from custody.kit.errors import CustodyError
from tests.chains.bitcoin.wallet import (
    STRANGER,
    TYPES,
    Fields,
    address_fields,
    finish,
    own_script,
    payment,
    prove_psbt,
    sign_spend,
)
from tests.fixtures.bitcoin import SOMEBODY, coin, hint, spend

NO_CAPS = Bounds(absolute=10**9, per_vbyte=10**9, share_percent=100)
SIGHASH, REDEEM, WITNESS_SCRIPT, FINAL_WITNESS, TAP_KEY, TAP_ROOT = b"\3", b"\4", b"\5", b"\x08", b"\x17", b"\x18"
PREVIOUS, WITNESS_UTXO = b"\0", b"\1"


def amount_and_script(amount: int, script: Script) -> bytes:
    """An output as a witness UTXO has it."""
    return amount.to_bytes(8, "little") + bytes((len(script.data),)) + script.data


def one_input(kind: str = "p2wpkh", amount: int = 71_000) -> Fields:
    """A PSBT with one input of the first address."""
    own = own_script(kind)
    return Fields(spend([(coin(own, amount, kind), 0)], [(SOMEBODY, 50_000), (own, 20_000)]).serialize())


def two_inputs(other: Script, kind: str = "p2wpkh", amount: int = 30_000) -> PSBT:
    """One of the first address, and one of another script, which pay somebody."""
    own = own_script(kind)
    coins = [(coin(own, 30_000, "own"), 0), (coin(other, amount, "other"), 0)]
    return spend(coins, [(SOMEBODY, 30_000 + amount - 1_000)])


# What is wrong with the proof of an input.
UNPROVEN: dict[str, Callable[[], PSBT | bytes]] = {
    "another transaction": lambda: one_input().put(1, PREVIOUS, coin(own_script(), 71_000, "x").serialize()).raw(),
    "no such output": lambda: (
        one_input().put(0, b"\0", b"".join((one_input().of(0, 0)[:37], b"\5\0\0\0", one_input().of(0, 0)[41:]))).raw()
    ),
    "a witness UTXO of one satoshi more": lambda: (
        one_input().put(1, WITNESS_UTXO, amount_and_script(71_001, own_script())).raw()
    ),
    "a witness UTXO of another script": lambda: (
        one_input().put(1, WITNESS_UTXO, amount_and_script(71_000, SOMEBODY)).raw()
    ),
    "nothing at all": lambda: one_input().drop(1, 0).drop(1, 1).raw(),
    "one of three without its transaction": lambda: Fields(payment(inputs=3).serialize()).drop(2, 0).raw(),
    "a lone input of a stranger without its transaction": lambda: (
        Fields(spend([(coin(SOMEBODY, 71_000), 0)], [(own_script(), 70_000)]).serialize()).drop(1, 0).raw()
    ),
    "a legacy input with a witness UTXO alone": lambda: (
        one_input("p2pkh").drop(1, 0).put(1, WITNESS_UTXO, amount_and_script(71_000, own_script("p2pkh"))).raw()
    ),
    "a segwit input beside one of taproot": lambda: (
        Fields(two_inputs(own_script("p2tr")).serialize()).drop(1, 0).drop(2, 0).raw()
    ),
}


@pytest.mark.parametrize("name", UNPROVEN)
def test_a_coin_is_believed_only_as_its_transaction_has_it(name: str) -> None:
    kind = "p2pkh" if "legacy" in name else "p2wpkh"
    with pytest.raises(PsbtUnprovenInput, match=r"input [012]"):
        prove_psbt(UNPROVEN[name](), kind)


@pytest.mark.parametrize("kind", ["p2wpkh", "p2sh-p2wpkh", "p2tr"])
def test_a_lone_segwit_input_of_this_wallet_needs_no_transaction(kind: str) -> None:
    lone = one_input(kind).drop(1, 0).put(1, WITNESS_UTXO, amount_and_script(71_000, own_script(kind)))

    assert finish(prove_psbt(lone.raw(), kind)).txid


def test_taproot_inputs_need_no_transaction_for_they_sign_every_amount() -> None:
    many = Fields(payment("p2tr", inputs=3).serialize())
    for place in (1, 2, 3):
        many.drop(place, 0)

    assert len(sign_spend(prove_psbt(many.raw(), "p2tr")).signatures) == 3


def test_one_lie_in_each_of_two_sessions_gets_no_signature() -> None:
    """Otherwise both halves are signed, and the difference of 15 coins goes to a miner."""
    own, unit = own_script(), 10**8
    first, second = coin(own, 15 * unit, "a"), coin(own, 20 * unit, "b")
    honest = spend([(first, 0), (second, 0)], [(SOMEBODY, 20 * unit)]).serialize()
    for amounts in ((15 * unit, 5 * unit + 1), (1, 20 * unit)):
        lie = Fields(honest)
        for place, amount in enumerate(amounts, 1):
            lie.drop(place, 0).put(place, WITNESS_UTXO, amount_and_script(amount, own))
        with pytest.raises(PsbtUnprovenInput):
            prove_psbt(lie.raw())

    with pytest.raises(FeeAboveCap):
        prove_psbt(honest)


@pytest.mark.parametrize("kind", ["p2wpkh", "p2sh-p2wpkh", "p2pkh"])
def test_a_coin_is_not_believed_to_be_a_strangers_of_taproot(kind: str) -> None:
    """Shown so in each of two sessions, two coins would be signed away for the 1,000 sat that each session tells of."""
    own, unit = own_script(kind), 10**8
    shown_as = own_script("p2tr", root=STRANGER)
    honest = spend([(coin(own, 15 * unit, "a"), 0), (coin(own, 20 * unit, "b"), 0)], [(own, 20 * unit)]).serialize()
    for place, amount in ((2, 5 * unit + 1_000), (1, 1_000)):
        lie = Fields(honest).drop(place, 0).put(place, WITNESS_UTXO, amount_and_script(amount, shown_as))
        with pytest.raises(PsbtUnprovenInput, match=f"input {place - 1}"):
            prove_psbt(lie.raw(), kind)


def test_a_strangers_taproot_coin_is_believed_with_its_transaction() -> None:
    found = prove_psbt(two_inputs(own_script("p2tr", root=STRANGER)))

    assert (found.foreign, len(sign_spend(found).signatures)) == ((1,), 1)


@pytest.mark.parametrize("sighash", [0, 2, 3, 0x80, 0x81, 0x82, 0x83, 0x41, 0xFF, 0x101])
@pytest.mark.parametrize("kind", ["p2wpkh", "p2pkh", "p2sh-p2wpkh"])
@pytest.mark.parametrize("place", [1, 2])
def test_only_sighash_all_is_signed_on_any_input(kind: str, place: int, sighash: int) -> None:
    both = Fields(two_inputs(SOMEBODY, kind).serialize()).put(place, SIGHASH, sighash.to_bytes(4, "little"))

    with pytest.raises(PsbtSighash, match=f"input {place - 1}"):
        prove_psbt(both.raw(), kind)


@pytest.mark.parametrize(("sighash", "length"), [(None, 64), (0, 64), (1, 65)])
def test_taproot_signs_default_and_all(sighash: int | None, length: int) -> None:
    one = one_input("p2tr")
    if sighash is not None:
        one.put(1, SIGHASH, sighash.to_bytes(4, "little"))

    assert [len(each) for each in sign_spend(prove_psbt(one.raw(), "p2tr")).signatures] == [length]
    with pytest.raises(PsbtSighash):
        prove_psbt(one.put(1, SIGHASH, (3).to_bytes(4, "little")).raw(), "p2tr")


def _with_hint(fields: Fields) -> Fields:
    """With our own key beside a coin that is not ours."""
    path = b"".join(number.to_bytes(4, "little") for number in (84 + 2**31, 1 + 2**31, 2**31, 0, 0))
    said = address_fields("p2wpkh", 0, 0)
    return fields.put(1, b"\6" + bytes.fromhex(said["publicKey"]), bytes.fromhex(said["fingerprint"]) + path)


# What is not this wallet's to sign, however it is shown.
NOT_OWN: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a stranger's coin": ("p2wpkh", lambda: payment_of_stranger().raw()),
    "a stranger's coin with our derivation": ("p2wpkh", lambda: _with_hint(payment_of_stranger()).raw()),
    "a stranger's p2sh with our redeem script": (
        "p2sh-p2wpkh",
        lambda: (
            Fields(spend([(coin(scripts.p2sh(SOMEBODY), 71_000), 0)], [(SOMEBODY, 70_000)]).serialize())
            .put(1, REDEEM, scripts.p2wpkh(own_key()).data)
            .raw()
        ),
    ),
    "our key in a stranger's p2wsh": (
        "p2wpkh",
        lambda: (
            Fields(spend([(coin(scripts.p2wsh(multisig()), 71_000), 0)], [(SOMEBODY, 70_000)]).serialize())
            .put(1, WITNESS_SCRIPT, multisig().data)
            .raw()
        ),
    ),
    "our key in a bare multisig": (
        "p2wpkh",
        lambda: spend([(coin(multisig(), 71_000), 0)], [(SOMEBODY, 70_000)]).serialize(),
    ),
    "another index of our account": ("p2wpkh", lambda: payment_at(index=1).raw()),
    "our coin with another redeem script": (
        "p2sh-p2wpkh",
        lambda: one_input("p2sh-p2wpkh").put(1, REDEEM, SOMEBODY.data).raw(),
    ),
    "our coin with our redeem script and a byte more": (
        "p2sh-p2wpkh",
        lambda: one_input("p2sh-p2wpkh").put(1, REDEEM, scripts.p2wpkh(own_key("p2sh-p2wpkh")).data + b"\0").raw(),
    ),
    "our coin with a witness script": ("p2wpkh", lambda: one_input().put(1, WITNESS_SCRIPT, b"\x51").raw()),
    "our taproot coin with a merkle root": ("p2tr", lambda: one_input("p2tr").put(1, TAP_ROOT, bytes(32)).raw()),
    "our taproot coin with a leaf": (
        "p2tr",
        lambda: one_input("p2tr").put(1, b"\x15" + b"\xc0" + bytes(32), b"\x51\xc0").raw(),
    ),
    "our taproot coin with a foreign internal key": (
        "p2tr",
        lambda: one_input("p2tr").put(1, TAP_KEY, bytes(31) + b"\1").raw(),
    ),
    "our coin, final already": ("p2wpkh", lambda: one_input().put(1, FINAL_WITNESS, b"\0").raw()),
}


def own_key(kind: str = "p2wpkh") -> PublicKey:
    """The key of the first address."""
    return PublicKey.parse(bytes.fromhex(address_fields(kind, 0, 0)["publicKey"]))


def multisig(needed: int = 1, number: int = 2, *, uncompressed: bool = False) -> Script:
    """So many of so many: ours, and a stranger's."""
    keys = [address_fields("p2wpkh", 0, place, root=STRANGER)["publicKey"] for place in range(1, number)]
    pushed = [b"\x21" + bytes.fromhex(key) for key in (address_fields("p2wpkh", 0, 0)["publicKey"], *keys)]
    if uncompressed:
        pushed = [_long(key) for key in pushed]
    return Script(bytes((0x50 + needed,)) + b"".join(pushed) + bytes((0x50 + number, 0xAE)))


def _long(pushed: bytes) -> bytes:
    key = PublicKey.parse(pushed[1:])
    key.compressed = False
    return b"\x41" + key.sec()


def data(size: int) -> Script:
    """An OP_RETURN that pushes so many bytes."""
    return Script(b"\x6a\x4e" + size.to_bytes(4, "little") + bytes(size))


def payment_of_stranger() -> Fields:
    """A PSBT over a coin of somebody else."""
    theirs = own_script(root=STRANGER)
    return Fields(spend([(coin(theirs, 71_000), 0)], [(SOMEBODY, 70_000)]).serialize())


def payment_at(index: int) -> Fields:
    """A PSBT over a coin of another of our addresses."""
    return Fields(spend([(coin(own_script(index=index), 71_000), 0)], [(SOMEBODY, 70_000)]).serialize())


@pytest.mark.parametrize("name", NOT_OWN)
def test_a_coin_that_is_not_this_addresss_is_not_signed(name: str) -> None:
    kind, made = NOT_OWN[name]
    with pytest.raises(PsbtNoOwnInput):
        prove_psbt(made(), kind)


def test_an_own_coin_needs_no_derivation() -> None:
    assert not [key for key, _ in one_input().maps[1] if key[0] == 6]
    assert finish(prove_psbt(one_input().raw())).txid


def test_an_own_coin_of_another_index_is_counted_and_not_signed() -> None:
    both = two_inputs(own_script(index=4))
    path = "m/84'/1'/0'/0/4"
    said = address_fields("p2wpkh", 0, 4)
    fields = Fields(both.serialize())
    numbers = (84 + 2**31, 1 + 2**31, 2**31, 0, 4)
    assert said["derivationPath"] == path
    fields.put(
        2,
        b"\6" + bytes.fromhex(said["publicKey"]),
        bytes.fromhex(said["fingerprint"]) + b"".join(number.to_bytes(4, "little") for number in numbers),
    )

    hinted, unhinted = prove_psbt(fields.raw()), prove_psbt(both)

    assert ([one.signed for one in hinted.own], hinted.foreign) == ([True, False], ())
    assert ([one.signed for one in unhinted.own], unhinted.foreign) == ([True], (1,))
    assert len(sign_spend(hinted).signatures) == 1


@pytest.mark.parametrize("kind", TYPES)
def test_change_is_what_the_account_key_makes_again(kind: str) -> None:
    def outflow(script: Script, *hints: tuple[str, int, int, int]) -> int:
        psbt = spend([(coin(own_script(kind), 100_000), 0)], [(SOMEBODY, 50_000), (script, 49_000)])
        for of, branch, index, account in hints:
            hint(psbt, 1, address_fields(of, branch, index, account=account))
        return prove_psbt(psbt, kind).outflow

    other = next(one for one in TYPES if one != kind)
    assert outflow(own_script(kind)) == 51_000
    assert outflow(own_script(kind, 1, 3), (kind, 1, 3, 0)) == 51_000
    assert outflow(own_script(kind, 0, 9_999), (kind, 0, 9_999, 0)) == 51_000
    everything = 100_000
    assert outflow(own_script(kind, 1, 3)) == everything
    assert outflow(own_script(kind, 1, 10_000), (kind, 1, 10_000, 0)) == everything
    assert outflow(own_script(kind, 2, 3), (kind, 2, 3, 0)) == everything
    assert outflow(own_script(kind, 1, 3, account=1), (kind, 1, 3, 1)) == everything
    assert outflow(own_script(other, 1, 3), (other, 1, 3, 0)) == everything
    # The right path beside another script, and a stranger's output that names our root.
    assert outflow(own_script(kind, 1, 4), (kind, 1, 3, 0)) == everything
    assert outflow(own_script(kind, 1, 3, root=STRANGER), (kind, 1, 3, 0)) == everything


def test_an_account_key_of_somebody_else_makes_their_output_change() -> None:
    """Why the key is under a MAC: with theirs in its place their output would count nothing."""
    theirs = own_script("p2wpkh", 1, 3, root=STRANGER)
    psbt = spend([(coin(own_script(root=STRANGER), 100_000), 0)], [(theirs, 99_000)])
    hint(psbt, 0, address_fields("p2wpkh", 1, 3, root=STRANGER))

    assert prove_psbt(psbt, root=STRANGER).outflow == 1_000
    with pytest.raises(PsbtNoOwnInput):
        prove_psbt(psbt)


OUTPUTS: dict[str, tuple[Script, int, bool]] = {
    "p2pkh": (scripts.p2pkh(own_key()), 546, True),
    "p2pkh dust": (scripts.p2pkh(own_key()), 545, False),
    "p2sh": (scripts.p2sh(SOMEBODY), 540, True),
    "p2sh dust": (scripts.p2sh(SOMEBODY), 539, False),
    "p2wpkh": (SOMEBODY, 294, True),
    "p2wpkh dust": (SOMEBODY, 293, False),
    "p2wsh": (scripts.p2wsh(SOMEBODY), 330, True),
    "p2wsh dust": (scripts.p2wsh(SOMEBODY), 329, False),
    "p2tr": (scripts.p2tr(own_key()), 330, True),
    "p2tr dust": (scripts.p2tr(own_key()), 329, False),
    "witness version 2": (Script(b"\x52\x20" + bytes(32)), 330, True),
    "witness version 2 dust": (Script(b"\x52\x20" + bytes(32)), 329, False),
    "the shortest of witness version 16": (Script(b"\x60\x02" + bytes(2)), 240, True),
    "the longest of witness version 1": (Script(b"\x51\x28" + bytes(40)), 354, True),
    "a program that is too long": (Script(b"\x51\x29" + bytes(41)), 50_000, False),
    "a program that is too short": (Script(b"\x51\x01" + bytes(1)), 50_000, False),
    "a program of another length than it says": (Script(b"\x51\x20" + bytes(31)), 50_000, False),
    "witness version 0 of 31 bytes": (Script(b"\x00\x1f" + bytes(31)), 50_000, False),
    "a version that is none": (Script(b"\x61\x20" + bytes(32)), 50_000, False),
    "pay to anchor": (Script(b"\x51\x02\x4e\x73"), 240, True),
    "pay to anchor dust": (Script(b"\x51\x02\x4e\x73"), 239, False),
    "bare pubkey": (Script(b"\x21\x02" + bytes(32) + b"\xac"), 576, True),
    "bare pubkey dust": (Script(b"\x21\x02" + bytes(32) + b"\xac"), 575, False),
    "bare uncompressed pubkey": (Script(b"\x41\x04" + bytes(64) + b"\xac"), 672, True),
    "bare pubkey of no kind": (Script(b"\x21\x05" + bytes(32) + b"\xac"), 50_000, False),
    "bare multisig, 1 of 2": (multisig(), 684, True),
    "bare multisig dust": (multisig(), 683, False),
    "bare multisig, 3 of 3": (multisig(3, 3), 786, True),
    "bare multisig, 2 of 3 uncompressed": (multisig(2, 3, uncompressed=True), 50_000, True),
    "bare multisig, 3 of 2": (multisig(3, 2), 50_000, False),
    "bare multisig of four": (multisig(1, 4), 50_000, False),
    "bare multisig of another number": (Script(multisig(1, 2).data[:-2] + b"\x53\xae"), 50_000, False),
    "nothing": (Script(b""), 50_000, False),
    "anyone can spend": (Script(b"\x51"), 50_000, False),
    "OP_RETURN alone": (Script(b"\x6a"), 0, True),
    "OP_RETURN of 83 bytes": (Script(b"\x6a\x4c\x50" + bytes(80)), 0, True),
    "OP_RETURN of 84 bytes": (Script(b"\x6a\x4c\x51" + bytes(81)), 0, True),
    "OP_RETURN with small numbers": (Script(b"\x6a\x5d\x00\x4f\x50\x60"), 0, True),
    "OP_RETURN with an opcode": (Script(b"\x6a\x61"), 0, False),
    "OP_RETURN with a push that is cut": (Script(b"\x6a\x05" + bytes(4)), 0, False),
    "OP_RETURN with a length that is cut": (Script(b"\x6a\x4d\x00"), 0, False),
    "OP_RETURN with a satoshi": (Script(b"\x6a\x01\x00"), 1, False),
    "OP_RETURN of 100,000 bytes": (data(99_995), 0, False),
    "OP_RETURN of 99,800 bytes": (data(99_795), 0, True),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_only_standard_outputs_above_dust_are_paid(name: str) -> None:
    script, amount, passes = OUTPUTS[name]
    psbt = spend([(coin(own_script(), 90_000 + amount), 0)], [(SOMEBODY, 70_000), (script, amount)])
    if not passes:
        with pytest.raises(PsbtNonstandardOutput, match=r"^psbtBase64: "):
            prove_psbt(psbt, bounds=NO_CAPS)
        return

    assert [one.amount for one in prove_psbt(psbt, bounds=NO_CAPS).payments] == [70_000, amount]


@pytest.mark.parametrize(
    ("paid", "fee", "bounds", "refused"),
    [
        (10**7, 100_000, Bounds(per_vbyte=10**9), None),
        (10**7, 100_001, Bounds(per_vbyte=10**9), FeeAboveCap),
        (100_000, 50_000, Bounds(), None),
        (100_001, 5_001, Bounds(), FeeAboveCap),
        (100_020, 5_001, Bounds(), None),
        (10**7, 10, Bounds(), PsbtFee),
        (10**7, 11, Bounds(), None),
        (10**7, 109, Bounds(relay_per_kvbyte=1_000), PsbtFee),
        (10**7, 110, Bounds(relay_per_kvbyte=1_000), None),
        (10**7, 0, Bounds(relay_per_kvbyte=0), None),
        (10**7, -1, Bounds(relay_per_kvbyte=0), PsbtFee),
        (10**7, 0, Bounds(), PsbtFee),
        (10**7, -1, Bounds(), PsbtFee),
        (10**7, 110 * 500, Bounds(absolute=10**9), None),
        (10**7, 110 * 500 + 1, Bounds(absolute=10**9), FeeAboveCap),
    ],
)
def test_the_fee_is_between_what_is_relayed_and_the_caps(
    paid: int, fee: int, bounds: Bounds, refused: type[CustodyError] | None
) -> None:
    psbt = spend([(coin(own_script(), paid + fee), 0)], [(SOMEBODY, paid)])
    if refused is not None:
        with pytest.raises(refused, match=str(abs(fee)) if fee else "0 sat"):
            prove_psbt(psbt, bounds=bounds)
        return

    assert prove_psbt(psbt, bounds=bounds).fee == fee


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("inputs", [1, 3])
def test_the_smallest_weight_is_never_above_the_real_one(kind: str, inputs: int) -> None:
    found = prove_psbt(payment(kind, inputs=inputs), kind, NO_CAPS)
    done = finish(found)

    assert done.vsize - 2 * inputs <= -(-found.weight // 4) <= done.vsize


def test_everything_counts_where_others_pay_and_a_person_decides() -> None:
    found = prove_psbt(two_inputs(SOMEBODY))

    subject = subject_of(found, "ours")

    assert found.outflow == 60_000
    assert [(one.kind, one.amount) for one in subject.effects] == [("transfer", 59_000), ("fee", 1_000), ("unread", 0)]
    assert subject.effects[-1].label == "others pay in this transaction"


@pytest.mark.parametrize(
    "text",
    [
        "bitcoin:mainnet:p2wpkh:0:0", "bitcoin:mainnet:p2wpkh:0:0:0:0", "bitcoin:mainnet:p2wpkh:0:2:0",
        "bitcoin:mainnet:p2wpkh:-1:0:0", "bitcoin:mainnet:p2wpkh:0:0:2147483648",
        "bitcoin:mainnet:p2wpkh:2147483648:0:0",
        "bitcoin:mainnet:p2wpkh:00:0:0", "bitcoin:mainnet:p2wpkh:0:0:01", "bitcoin:mainnet:p2wsh:0:0:0",
        "bitcoin:testnet4:p2wpkh:0:0:0", "Bitcoin:mainnet:p2wpkh:0:0:0", "bitcoin:MAINNET:p2wpkh:0:0:0",
        "bitcoin:mainnet:p2wpkh:0:0:+1", "bitcoin:mainnet:p2wpkh:0:0:1_0", "bitcoin:mainnet:p2wpkh:0:0:\u0661", "",
        "bitcoin::p2wpkh:0:0:0", "bitcoin:mainnet:p2wpkh:0:0:0\n", "litecoin:mainnet:p2wpkh:0:0:0",
    ],
)  # fmt: skip
def test_a_wallet_scope_has_one_spelling(text: str) -> None:
    with pytest.raises(BadWalletScope):
        parse_scope(text)


def test_the_largest_scope_is_read() -> None:
    scope = parse_scope("bitcoin:regtest:p2sh-p2wpkh:2147483647:1:2147483647")

    assert scope.text == "bitcoin:regtest:p2sh-p2wpkh:2147483647:1:2147483647"
    assert scope.path == "m/49'/1'/2147483647'/1/2147483647"

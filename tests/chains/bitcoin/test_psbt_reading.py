"""PSBTs are read strictly: the published vectors, one spelling of everything, and nothing raised but our refusal."""

import json
import random
from base64 import b64encode
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.bitcoin import psbt as psbts
from custody.chains.bitcoin.orders import MAX_PSBT_CHARACTERS
from custody.chains.bitcoin.refusals import PsbtMalformed
from custody.chains.bitcoin.types import TxIn
from custody.kit.errors import CustodyError
from custody.protocol.signer.refusals import PsbtAmbiguous
from signer.orders.psbt_second_reader import compare
from tests.chains.bitcoin.wallet import Fields, address_fields, own_script, payment, prove_psbt, with_size
from tests.fixtures.bitcoin import SOMEBODY, coin, hint, spend, text
from tests.fixtures.thorough import THOROUGH

# BIP-174 and BIP-371; `read`: whether a reader of the format takes it.
VECTORS = json.loads((Path(__file__).parents[2] / "vectors/bitcoin/psbt.json").read_text())
GOOD = payment().serialize()
UNSIGNED = Fields(GOOD).of(0, 0)
MUTATIONS = 2_000 * THOROUGH


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_a_published_psbt_is_read_or_refused(vector: dict[str, object]) -> None:
    raw = bytes.fromhex(str(vector["psbt"]))
    if not vector["read"]:
        with pytest.raises(PsbtMalformed):
            psbts.read_bytes(raw)
        return

    read = psbts.read_bytes(raw)
    assert psbts.write(read) == raw
    compare(raw, read)


def test_base64_has_one_spelling() -> None:
    good = text(payment())
    assert psbts.read(good)
    unpadded = b64encode(b"psbt\xff" + b"\0" * 2).decode()
    assert unpadded.endswith("=")
    spare = unpadded[:-2] + chr(ord(unpadded[-2]) + 1) + "="

    for bad in (good + "\n", good[:40] + "\n" + good[40:], good + " ", " " + good, good[:-4] + "!" + good[-3:],
                unpadded.rstrip("="), spare, "", GOOD.hex(), good + "====", good + "A", "\u00e9" + good):  # fmt: skip
        with pytest.raises(PsbtMalformed):
            psbts.read(bad)


# Of each: what is wrong, and the bytes.
def _malformed_psbts() -> dict[str, bytes]:
    def change(place: int, key: bytes, value: bytes) -> bytes:
        return Fields(GOOD).put(place, key, value).raw()

    def with_transaction(transaction: bytes) -> bytes:
        return change(0, b"\0", transaction)

    version, rest = UNSIGNED[:4], UNSIGNED[4:]
    cases = {
        "one byte behind the end": GOOD + b"\1",
        "a zero byte behind the end": GOOD + b"\0",
        "a second PSBT behind the end": GOOD + GOOD,
        "another magic": b"psbt\xfe" + GOOD[5:],
        "nothing": b"psbt\xff",
        "version 1": change(0, b"\xfb", (1).to_bytes(4, "little")),
        "version 2": change(0, b"\xfb", (2).to_bytes(4, "little")),
        "a version of three bytes": change(0, b"\xfb", bytes(3)),
        "no unsigned transaction": Fields(GOOD).drop(0, 0).raw(),
        "two unsigned transactions": Fields(GOOD).add(0, b"\0", UNSIGNED).raw(),
        "an unsigned transaction with a scriptSig": with_transaction(
            version + b"\1" + rest[1:37] + b"\1\x51" + rest[38:]
        ),
        "an unsigned transaction in witness form": with_transaction(version + b"\0\1" + rest[:-4] + b"\0" + rest[-4:]),
        "no inputs": with_transaction(version + b"\0" + rest[42:]),
        "no outputs": with_transaction(version + rest[:42] + b"\0" + rest[-4:]),
        "bytes behind the unsigned transaction": with_transaction(UNSIGNED + b"\0"),
        "an unsigned transaction that ends early": with_transaction(UNSIGNED[:-1]),
        "a map too few": GOOD[:-1],
        "a map too many": GOOD[:-1] + b"\0\0",
        "a key of length 0 in the middle": GOOD[:-2] + b"\0" + GOOD[-2:],
        "a length that is not the shortest": GOOD[:5] + b"\xfd\1\0" + GOOD[6:],
        "a length past the end": GOOD[:5] + b"\1\0\xfe\xff\xff\xff\x7f",
        "a length of 2^63": GOOD[:5] + b"\1\0\xff" + (2**63).to_bytes(8, "little"),
        "an amount above all there is": with_transaction(
            version + rest[:42] + b"\1" + (21 * 10**14 + 1).to_bytes(8, "little") + b"\0" + rest[-4:]
        ),
        "two amounts above all there is": with_transaction(
            version + rest[:42] + b"\2" + ((21 * 10**14).to_bytes(8, "little") + b"\0") * 2 + rest[-4:]
        ),
        "an amount of 2^63": with_transaction(
            version + rest[:42] + b"\1" + (2**63).to_bytes(8, "little") + b"\0" + rest[-4:]
        ),
        "a previous transaction that ends early": change(1, b"\0", Fields(GOOD).of(1, 0)[:-1]),
        "a previous transaction with a byte behind it": change(1, b"\0", Fields(GOOD).of(1, 0) + b"\0"),
        "a witness UTXO with a byte behind it": change(1, b"\1", Fields(GOOD).of(1, 1) + b"\0"),
        "a sighash of three bytes": change(1, b"\3", bytes(3)),
        "a path of half a number": change(1, b"\6" + b"\2" * 33, bytes(6)),
        "a taproot path of half a number": change(1, b"\x16" + b"\2" * 32, b"\0" + bytes(6)),
        "a taproot path with more leaves than bytes": change(1, b"\x16" + b"\2" * 32, b"\xfc" + bytes(8)),
    }
    for name, place in (("the global map", 0), ("an input", 1), ("an output", 2)):
        for kind in (0, 0xC9):
            cases[f"field {kind:02x} twice in {name}"] = (
                Fields(GOOD)
                .drop(place, kind)
                .add(place, bytes((kind, 7)), b"x")
                .add(place, bytes((kind, 7)), b"y")
                .raw()
            )
    for kind in (0x00, 0x01, 0x03, 0x04, 0x05, 0x07, 0x08, 0x13, 0x17, 0x18):
        cases[f"field {kind:02x} of an input with a second byte"] = Fields(GOOD).add(1, bytes((kind, 0)), b"").raw()
    for place, kinds in ((0, range(2, 7)), (1, range(0x0E, 0x13)), (2, (3, 4))):
        for kind in kinds:
            cases[f"field {kind:02x} of version 2 in map {place}"] = change(place, bytes((kind,)), bytes(4))
    return cases


MALFORMED = _malformed_psbts()


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_psbt_is_refused(name: str) -> None:
    with pytest.raises(PsbtMalformed) as refused:
        psbts.read_bytes(MALFORMED[name])

    assert str(refused.value).startswith("psbtBase64: ")


@pytest.mark.parametrize("count", [100, 101])
def test_a_hundred_inputs_and_outputs_are_read_and_no_more(count: int) -> None:
    own = own_script()
    many = spend([(coin(own, 2_000, str(number)), 0) for number in range(count)], [(SOMEBODY, 600)])
    wide = spend([(coin(own, 200_000, "wide"), 0)], [(SOMEBODY, 600)] * count)
    for psbt in (many, wide):
        if count <= 100:
            assert psbts.read(text(psbt))
        else:
            with pytest.raises(PsbtMalformed):
                psbts.read(text(psbt))


WORDS = st.sampled_from([0, 1, 2, 0x0040_0001, 2**31, 0xFFFF_FFFD, 0xFFFF_FFFE, 0xFFFF_FFFF]) | st.integers(
    0, 2**32 - 1
)


@given(sequence=WORDS, version=WORDS, lock_time=WORDS)
def test_every_number_of_the_transaction_comes_back_and_is_read_alike(
    version: int, sequence: int, lock_time: int
) -> None:
    psbt = spend(
        [(coin(own_script(), 60_000), 0)], [(SOMEBODY, 50_000)], version=version, sequence=sequence, lock_time=lock_time
    )
    raw = Fields(psbt.serialize())
    # embit is known to write another transaction than it was given: the number is put where it belongs.
    given = version.to_bytes(4, "little") + raw.of(0, 0)[4:-4] + lock_time.to_bytes(4, "little")
    given = given[:42] + sequence.to_bytes(4, "little") + given[46:]
    raw.put(0, b"\0", given)

    read = psbts.read_bytes(raw.raw())

    assert psbts.write(read) == raw.raw()
    assert read.unsigned == given
    assert read.transaction.inputs[0].sequence == sequence
    compare(raw.raw(), read)
    # A control: of another number the second reader knows nothing.
    other = msgspec.structs.replace(read.transaction, inputs=(TxIn(read.transaction.inputs[0].outpoint, sequence ^ 1),))
    with pytest.raises(PsbtAmbiguous):
        compare(raw.raw(), msgspec.structs.replace(read, transaction=other))


def test_one_coin_cannot_be_spent_twice() -> None:
    one = coin(own_script(), 60_000)
    twice = spend([(one, 0), (one, 0)], [(SOMEBODY, 50_000)])
    with pytest.raises(PsbtMalformed, match="twice"):
        psbts.read(text(twice))

    twice.inputs[1].sequence = 5
    with pytest.raises(PsbtMalformed, match="twice"):
        psbts.read(text(twice))


def test_the_fields_of_a_psbt_are_bounded() -> None:
    few, many = Fields(GOOD), Fields(GOOD)
    few.maps[1] += [(b"\xf0" + number.to_bytes(2), b"") for number in range(psbts.MAX_FIELDS - 10)]
    many.maps[1] += [(b"\xf0" + number.to_bytes(2), b"") for number in range(psbts.MAX_FIELDS)]

    assert psbts.read_bytes(few.raw())
    with pytest.raises(PsbtMalformed, match="more than 8192"):
        psbts.read_bytes(many.raw())


def test_the_outputs_of_previous_transactions_are_bounded() -> None:
    one = coin(own_script(), 60_000, outputs=psbts.MAX_WALKED)
    with pytest.raises(PsbtMalformed, match="more than 16384"):
        psbts.read_bytes(spend([(one, 0)], [(SOMEBODY, 50_000)]).serialize())


def test_the_longest_psbt_fits_its_route() -> None:
    assert len(text(payment(inputs=100))) < MAX_PSBT_CHARACTERS


def test_a_mutated_psbt_raises_nothing_but_refusals() -> None:
    drawn = random.Random(20_261_123)
    hinted = payment("p2tr", inputs=3)
    hint(hinted, 1, address_fields("p2tr", 1, 3))
    seeds = [GOOD, payment(inputs=3).serialize(), hinted.serialize(), *(bytes.fromhex(one["psbt"]) for one in VECTORS)]
    read = 0
    for _ in range(MUTATIONS):
        raw = bytearray(drawn.choice(seeds))
        for _ in range(drawn.randint(1, 4)):
            place = drawn.randrange(len(raw))
            match drawn.randrange(5):
                case 0:
                    raw[place] = drawn.randrange(256)
                case 1:
                    raw[place] ^= 1 << drawn.randrange(8)
                case 2:
                    del raw[place : place + drawn.randint(1, 40)]
                case 3:
                    raw[place:place] = with_size(drawn.randbytes(drawn.randint(0, 40)))
                case _:
                    start = drawn.randrange(len(raw))
                    raw[place:place] = raw[start : start + drawn.randint(1, 60)]
            if not raw:
                break
        try:
            found = psbts.read_bytes(bytes(raw))
            read += 1
            assert psbts.write(found) == bytes(raw)
            compare(bytes(raw), found)
            prove_psbt(bytes(raw))
        except CustodyError:
            continue
    # Some survive: otherwise only the first bytes would be tried.
    assert read > MUTATIONS // 50

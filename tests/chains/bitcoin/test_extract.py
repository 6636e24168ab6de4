"""The transaction of a finished PSBT, read from its bytes, is the one that was made when it was signed."""

import pytest

from custody.chains.bitcoin import psbt as psbts
from custody.chains.bitcoin.extract import extract
from tests.chains.bitcoin.wallet import TYPES, Fields, finish, payment, prove_psbt, sign_spend


@pytest.mark.parametrize("inputs", [1, 5])
@pytest.mark.parametrize("kind", TYPES)
def test_a_finished_psbt_has_its_transaction(kind: str, inputs: int) -> None:
    found = prove_psbt(payment(kind, inputs=inputs), kind)
    done = finish(found)

    read = extract(done.psbt)

    assert read is not None
    assert (read.final.raw, read.final.txid, read.final.vsize, read.fee) == (done.raw, done.txid, done.vsize, found.fee)


@pytest.mark.parametrize("kind", TYPES)
def test_a_psbt_that_was_not_finished_has_none(kind: str) -> None:
    found = prove_psbt(payment(kind, inputs=2), kind)

    assert extract(sign_spend(found).raw) is None
    # Finished at one of its two inputs.
    half = Fields(finish(found).psbt)
    assert extract(half.drop(2, 7).drop(2, 8).raw()) is None


def test_a_psbt_of_as_many_fields_as_are_read_is_read_once_it_is_signed() -> None:
    full = Fields(payment("p2sh-p2wpkh").serialize())
    taken = sum(len(pairs) for pairs in full.maps)
    full.maps[0] += [(b"\xf0" + number.to_bytes(2), b"") for number in range(psbts.MAX_FIELDS - taken)]

    found = prove_psbt(full.raw(), "p2sh-p2wpkh")

    assert extract(sign_spend(found).raw) is None
    assert extract(finish(found).psbt) is not None

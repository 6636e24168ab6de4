"""Our transaction encoder, held byte for byte against eth-account."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from coincurve import PrivateKey, PublicKey
from eth_account import Account
from eth_utils import to_checksum_address
from hypothesis import given, settings
from hypothesis import strategies as st

from custody.chains.evm.address import BadAddress, address_of
from custody.chains.evm.signature import ORDER, SignatureWrong, sign_digest
from custody.chains.evm.transaction import MAX_UINT64, BadTransaction, EvmTransaction, sign
from custody.kit.shapes import MAX_UINT256

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "evm_transactions.json").read_text())

secrets = st.integers(1, ORDER - 1).map(lambda number: number.to_bytes(32))
# The edges of RLP: nothing, one byte below and above 0x80, both sides of 55 bytes, two length bytes.
sizes = st.sampled_from([0, 1, 2, 4, 54, 55, 56, 68, 255, 256, 1000])
payloads = sizes.flatmap(lambda size: st.binary(min_size=size, max_size=size))
amounts = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, 2**64, 2**128, MAX_UINT256]) | st.integers(0, MAX_UINT256)


@st.composite
def transactions(draw: st.DrawFn) -> EvmTransaction:
    max_fee = draw(amounts)
    return EvmTransaction(
        chain_id=draw(st.sampled_from([1, 10, 137, 8453, 31337, MAX_UINT64])),
        nonce=draw(st.sampled_from([0, 1, 0x7F, 0x80, MAX_UINT64 - 1]) | st.integers(0, MAX_UINT64 - 1)),
        gas_limit=draw(st.integers(1, MAX_UINT64)),
        max_fee=max_fee,
        priority_fee=draw(st.integers(0, max_fee)),
        to="0x" + draw(st.binary(min_size=20, max_size=20)).hex(),
        value=draw(amounts),
        data=draw(payloads),
        legacy=draw(st.booleans()),
    )


def spell(transaction: EvmTransaction) -> dict[str, Any]:
    fields = {
        "chainId": transaction.chain_id,
        "nonce": transaction.nonce,
        "gas": transaction.gas_limit,
        "to": to_checksum_address(transaction.to),
        "value": transaction.value,
        "data": transaction.data,
    }
    if transaction.legacy:
        return {**fields, "gasPrice": transaction.max_fee}
    fees = {"maxFeePerGas": transaction.max_fee, "maxPriorityFeePerGas": transaction.priority_fee}
    return {**fields, **fees, "type": 2}


PLAIN = EvmTransaction(1, 0, 21_000, 30, 2, "0x" + "ab" * 20, 10**18)
KEY = PrivateKey(b"\x46" * 32)


@given(transactions(), secrets)
@settings(max_examples=150, deadline=None)
def test_bytes_and_hash_equal_eth_accounts(transaction: EvmTransaction, secret: bytes) -> None:
    ours = sign(transaction, PrivateKey(secret))
    theirs = Account.from_key(secret).sign_transaction(spell(transaction))

    assert ours.raw == theirs.raw_transaction
    assert ours.hash == theirs.hash.to_0x_hex()


@given(transactions(), secrets)
@settings(max_examples=30, deadline=None)
def test_another_library_recovers_the_signer(transaction: EvmTransaction, secret: bytes) -> None:
    raw = sign(transaction, PrivateKey(secret)).raw

    assert Account.recover_transaction(raw) == Account.from_key(secret).address


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_known_transactions_keep_their_bytes(vector: dict[str, Any]) -> None:
    transaction = EvmTransaction(**{**vector["transaction"], "data": bytes.fromhex(vector["transaction"]["data"])})

    signed = sign(transaction, PrivateKey(bytes.fromhex(vector["key"])))

    assert (signed.raw.hex(), signed.hash) == (vector["raw"], vector["hash"])


@pytest.mark.parametrize(
    ("field", "number"),
    [
        ("chain_id", 0),
        ("chain_id", -1),
        ("nonce", -1),
        ("nonce", MAX_UINT64),
        ("gas_limit", 0),
        ("gas_limit", MAX_UINT64 + 1),
        ("max_fee", -1),
        ("max_fee", MAX_UINT256 + 1),
        ("priority_fee", -1),
        ("priority_fee", 31),
        ("value", -1),
        ("value", MAX_UINT256 + 1),
    ],
)
def test_a_field_out_of_range_is_refused(field: str, number: int) -> None:
    with pytest.raises(BadTransaction, match="must be between"):
        sign(msgspec.structs.replace(PLAIN, **{field: number}), KEY)


@pytest.mark.parametrize("to", ["", "0x", "0x" + "ab" * 19, "0x" + "Ab" * 20])
def test_a_recipient_that_is_no_address_is_refused(to: str) -> None:
    with pytest.raises(BadAddress):
        sign(msgspec.structs.replace(PLAIN, to=to), KEY)


@given(st.binary(min_size=32, max_size=32), secrets)
@settings(max_examples=50, deadline=None)
def test_every_signature_is_low_and_recovers_to_the_key(digest: bytes, secret: bytes) -> None:
    made = sign_digest(digest, PrivateKey(secret))

    recoverable = made.compact[:64] + bytes((made.compact[64] - 27,))
    recovered = PublicKey.from_signature_and_message(recoverable, digest, hasher=None)
    assert made.s <= ORDER // 2
    assert address_of(recovered.format(compressed=False)) == Account.from_key(secret).address


class FaultyKey:
    """A key whose signing has gone wrong, as broken memory would make it."""

    def __init__(self, flipped: int) -> None:
        self.public_key = KEY.public_key
        self._flipped = flipped

    def sign_recoverable(self, digest: bytes, hasher: None) -> bytes:
        made = bytearray(KEY.sign_recoverable(digest, hasher=hasher))
        made[self._flipped] ^= 1
        return bytes(made)


@pytest.mark.parametrize("flipped", [31, 63, 64])
def test_a_signature_that_does_not_verify_never_leaves(flipped: int) -> None:
    with pytest.raises(SignatureWrong):
        sign_digest(b"\x01" * 32, FaultyKey(flipped))


def test_a_high_s_never_leaves() -> None:
    class HighS(FaultyKey):
        def sign_recoverable(self, digest: bytes, hasher: None) -> bytes:
            made = KEY.sign_recoverable(digest, hasher=hasher)
            high = (ORDER - int.from_bytes(made[32:64])).to_bytes(32)
            return made[:32] + high + bytes((made[64] ^ 1,))

    with pytest.raises(SignatureWrong):
        sign_digest(b"\x01" * 32, HighS(0))

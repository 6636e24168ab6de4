"""Signed bytes read back: the same payment, the same signer, or a refusal. Promise P2."""

import contextlib

import coincurve
import pytest
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from custody.chains.evm.address import address_of
from custody.chains.evm.signed import NotOurs, read
from custody.chains.evm.transaction import EvmTransaction, sign

KEY = coincurve.PrivateKey(b"\x07" * 32)
ADDRESS = address_of(KEY.public_key.format(compressed=False))
UINT256 = st.integers(0, 2**256 - 1)

transactions = st.builds(
    EvmTransaction,
    chain_id=st.integers(1, 2**64 - 1),
    nonce=st.integers(0, 2**53),
    gas_limit=st.integers(1, 2**63),
    max_fee=st.integers(2**64, 2**128),
    priority_fee=st.integers(0, 2**64),
    value=UINT256,
    legacy=st.just(False),
    to=st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex()),
    data=st.binary(max_size=300),
)
legacies = st.builds(
    EvmTransaction,
    chain_id=st.integers(1, 2**62),
    nonce=st.integers(0, 2**53),
    gas_limit=st.integers(1, 2**63),
    max_fee=st.integers(0, 2**128),
    priority_fee=st.just(0),
    value=UINT256,
    legacy=st.just(True),
    to=st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex()),
    data=st.binary(max_size=300),
)


@given(transactions | legacies)
def test_a_signed_transaction_is_read_back(transaction: EvmTransaction) -> None:
    signed = sign(transaction, KEY)

    found = read(signed.raw)

    assert (found.transaction, found.sender, found.hash) == (transaction, ADDRESS, signed.hash)


@given(transactions | legacies, st.data())
def test_with_one_bit_changed_it_is_another_signers_or_nobodys(
    transaction: EvmTransaction, data: st.DataObject
) -> None:
    raw = bytearray(sign(transaction, KEY).raw)
    at = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[at // 8] ^= 1 << at % 8

    with contextlib.suppress(NotOurs):
        assert read(bytes(raw)).sender != ADDRESS


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    with pytest.raises(NotOurs):
        read(raw)


@pytest.mark.parametrize(
    "changes",
    [
        {"accessList": [{"address": "0x" + "11" * 20, "storageKeys": []}]},
        {"to": b""},
    ],
    ids=["an access list", "a contract's creation"],
)
def test_transactions_that_this_service_never_writes_are_refused(changes: dict[str, object]) -> None:
    fields = {
        "type": 2,
        "chainId": 1,
        "nonce": 0,
        "to": "0x" + "11" * 20,
        "value": 1,
        "gas": 21_000,
        "maxFeePerGas": 9,
        "maxPriorityFeePerGas": 1,
        "data": b"",
    }
    account = Account.from_key(b"\x07" * 32)

    assert read(bytes(account.sign_transaction(fields).raw_transaction)).sender == ADDRESS
    with pytest.raises(NotOurs):
        read(bytes(account.sign_transaction(fields | changes).raw_transaction))

"""The end of what a signed document is good for, of every kind that is read."""

import pytest

from custody.chains.evm.typed_data import read
from custody.chains.evm.typed_deadlines import ends_at
from custody.chains.evm.typed_kinds import CALLS, HARMLESS, READERS, WITNESSES
from tests.rules.chains.typed_samples import kind, sample, with_witness

NOON = 1_800_000_000
FORWARDED = "ForwardRequest(address from,address to,uint256 value,uint256 gas,uint256 nonce,"
# By what each kind calls its end, whether that is the last second or the first one after it, and whether 0 is none.
ENDS: dict[str, tuple[str, int, bool]] = {
    "Permit(address owner": ("deadline", 1, False),
    "Permit(address holder": ("expiry", 1, True),
    "TransferWithAuthorization": ("validBefore", 0, False),
    "ReceiveWithAuthorization": ("validBefore", 0, False),
    "PermitSingle": ("sigDeadline", 1, False),
    "PermitBatch(": ("sigDeadline", 1, False),
    "PermitTransferFrom": ("deadline", 1, False),
    "PermitBatchTransferFrom": ("deadline", 1, False),
    "Order(address sellToken": ("validTo", 1, False),
    "LimitOrder(address makerToken": ("expiry", 1, False),
    "RfqOrder": ("expiry", 1, False),
    "OrderComponents": ("endTime", 0, False),
    "Order(uint256 salt": ("expiration", 1, True),
    FORWARDED + "uint48": (
        "deadline",
        1,
        False,
    ),
}
# An order of 0x hides its end in another number; the others have none.
ENDLESS = (
    "OtcOrder",
    "Hyperliquid",
    "SafeTx",
    "MetaTransaction(",
    FORWARDED + "bytes",
)


@pytest.mark.parametrize("begin", ENDS)
def test_a_document_ends_where_its_contract_says(begin: str) -> None:
    name, more, never = ENDS[begin]

    assert ends_at(read(sample(kind(begin), **{name: NOON}))) == NOON + more
    assert ends_at(read(sample(kind(begin), **{name: 0}))) == (None if never else more)


@pytest.mark.parametrize("spelled", WITNESSES)
def test_a_transfer_with_a_witness_ends_with_its_permit(spelled: str) -> None:
    assert ends_at(read(with_witness(spelled, deadline=NOON))) == NOON + 1


def test_every_kind_that_is_read_stands_here() -> None:
    known = {kind(begin) for begin in ENDS} | {one for one in (*READERS, *CALLS) if one.startswith(ENDLESS)}

    assert known == {*READERS, *CALLS}
    assert {ends_at(read(sample(one))) for one in (*READERS, *CALLS) if one.startswith(ENDLESS)} == {None}


def test_a_kind_that_is_not_read_has_no_end() -> None:
    stranger = "Permit(address owner,address spender,uint256 value,uint256 deadline)"

    assert ends_at(read(sample(stranger, deadline=1))) is None
    assert {ends_at(read(sample(one))) for one in HARMLESS if "(" in one[:40] and "Person" not in one} == {None}

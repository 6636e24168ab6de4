"""EIP-191 signatures of texts: whose they are, held against eth-account."""

import pytest
from coincurve import PrivateKey
from eth_account import Account
from eth_account.messages import encode_defunct
from hypothesis import assume, given
from hypothesis import strategies as st

from custody.chains.evm.personal_message import BadSignature, digest, recover
from custody.chains.evm.signature import ORDER
from tests.fixtures.each import each

ACCOUNT = Account.from_key("0x" + "11" * 32)
keys = st.integers(1, ORDER - 1).map(lambda number: "0x" + number.to_bytes(32).hex())


def sign(text: str, account=ACCOUNT) -> str:
    return "0x" + account.sign_message(encode_defunct(text=text)).signature.hex().removeprefix("0x")


@given(st.text(), keys)
def test_the_signer_of_a_text_is_recovered(text: str, key: str) -> None:
    account = Account.from_key(key)

    assert recover(text, sign(text, account)) == account.address


@given(st.text(min_size=1), st.data())
def test_a_text_changed_in_one_character_has_another_signer(text: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(text) - 1))
    changed = text[:place] + data.draw(st.characters(exclude_categories=["Cs"])) + text[place + 1 :]
    assume(changed != text)

    try:
        recovered = recover(changed, sign(text))
    except BadSignature:
        return
    assert recovered != ACCOUNT.address


@given(st.integers(2, 129), st.integers(1, 15))
def test_a_signature_changed_in_one_digit_is_not_the_signers(place: int, added: int) -> None:
    good = sign("hello")
    bad = good[:place] + f"{(int(good[place], 16) + added) % 16:x}" + good[place + 1 :]

    try:
        recovered = recover("hello", bad)
    except BadSignature:
        return
    assert recovered != ACCOUNT.address


def test_the_last_byte_may_count_from_zero_or_from_27() -> None:
    good = sign("hello")
    number = int(good[-2:], 16)

    assert number in {27, 28}
    assert recover("hello", good[:-2] + f"{number - 27:02x}") == ACCOUNT.address
    assert recover("hello", "0x" + good[2:].upper()) == ACCOUNT.address


@given(st.text(), keys)
def test_the_compact_form_is_the_same_signature(text: str, key: str) -> None:
    account = Account.from_key(key)
    made = account.sign_message(encode_defunct(text=text))
    compact = made.r.to_bytes(32) + (made.s | (made.v - 27) << 255).to_bytes(32)
    other = made.r.to_bytes(32) + (made.s | (28 - made.v) << 255).to_bytes(32)

    assert recover(text, "0x" + compact.hex()) == account.address
    assert recover(text, "0x" + other.hex()) != account.address


def test_the_same_signature_with_a_high_s_is_refused() -> None:
    raw = PrivateKey(b"\x11" * 32).sign_recoverable(digest("hello"), hasher=None)
    high = raw[:32] + (ORDER - int.from_bytes(raw[32:64])).to_bytes(32) + bytes((28 - raw[64],))

    with pytest.raises(BadSignature):
        recover("hello", "0x" + high.hex())


@each(
    "signature",
    [
        "",
        "0x",
        "0x" + "00" * 65,
        "0x" + "00" * 32 + "11" * 32 + "1b",
        "0x" + "11" * 32 + "00" * 32 + "1b",
        "0x" + "ff" * 32 + "11" * 32 + "1b",
        "0x" + "11" * 63,
        "0x" + "11" * 32 + "7f" * 32,
        "0x" + "11" * 32 + "80" + "00" * 31,
        "0x" + "11" * 64 + "02",
        "0x" + "11" * 64 + "1d",
        "0x" + "11" * 64 + "ff",
        "0x" + "11" * 64 + "1b" + "00",
        "0x" + "11" * 64 + "1b\n",
        "0X" + "11" * 64 + "1b",
        "11" * 64 + "1b",
        "0x" + "1g" * 64 + "1b",
    ],
)
def test_a_malformed_signature_is_refused(signature: str) -> None:
    with pytest.raises(BadSignature) as refused:
        recover("hello", signature)

    assert refused.value.code == "signature_invalid"

"""A serialized Solana transaction is read strictly."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from solders.message import (
    MessageAddressTableLookup,
    MessageHeader,
    MessageV0,
    MessageV1,
    TransactionConfig,
    to_bytes_versioned,
)
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from custody.chains.solana.message import SolanaMalformed, SolanaUnsupported, digest_bytes, parse
from custody.kit.errors import Invalid
from tests.outside.solana_messages import (
    THEM,
    US,
    compute_limit,
    create_account,
    encode,
    legacy,
    message,
    pay,
    pay_tokens,
)


def raw(text: str) -> bytes:
    return base64.b64decode(text)


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


PAYMENT = encode(message(pay(5)))
RICH = raw(encode(message(compute_limit(9), pay(5), create_account(), pay_tokens(7))))


@pytest.mark.parametrize("build", [message, legacy])
def test_both_message_versions_are_read(build):
    parsed = parse(encode(build(pay(5))))

    assert [one.accounts for one in parsed.instructions] == [(US, THEM)]
    assert parsed.renewable(US)


@pytest.mark.parametrize(
    "text",
    [
        PAYMENT + "\n",
        " " + PAYMENT,
        PAYMENT[:50] + "\n" + PAYMENT[50:],
        PAYMENT + "AAAA",
        b64(raw(PAYMENT) + b"\0"),
        PAYMENT[:-4],
        raw(PAYMENT).hex(),
        b64(raw(PAYMENT)).replace("A", "-", 1),
        "é" * 8,
        "",
        "AAAA",
    ],
)
def test_anything_but_the_exact_encoding_is_refused(text):
    with pytest.raises(SolanaMalformed):
        parse(text)


@pytest.mark.parametrize("build", [message, legacy])
@pytest.mark.parametrize("instructions", [(pay(5),), (pay(62), compute_limit(62)), (pay_tokens(7), create_account())])
def test_a_message_without_its_signature_slots_is_told_what_is_missing(build, instructions):
    made = build(*instructions)

    with pytest.raises(SolanaMalformed, match="a message alone: send the transaction"):
        parse(b64(to_bytes_versioned(made)))

    slots = bytes([made.header.num_required_signatures]) + bytes(64) * made.header.num_required_signatures
    assert parse(b64(slots + to_bytes_versioned(made))).message == made


def test_base64_with_stray_bits_is_refused():
    text = b64(raw(PAYMENT) + b"\0" * ((1 - len(raw(PAYMENT))) % 3))
    loose = text[:-3] + chr(ord(text[-3]) + 1) + "==" if text.endswith("==") else None

    assert loose
    assert base64.b64decode(loose) == base64.b64decode(text)
    with pytest.raises(SolanaMalformed, match="canonical base64"):
        parse(loose)


def test_more_bytes_than_a_packet_holds_are_refused():
    with pytest.raises(SolanaMalformed, match="1232"):
        parse(b64(bytes(1_233)))


def test_a_key_listed_twice_is_refused():
    twice = raw(PAYMENT).replace(bytes(THEM), bytes(US))

    with pytest.raises(SolanaMalformed, match="twice"):
        parse(b64(twice))


def test_an_account_index_out_of_range_is_refused():
    content = message(pay(5))
    changed = raw(encode(content)).replace(b"\x02\x00\x01\x0c", b"\x02\x00\x03\x0c")

    assert changed != raw(PAYMENT)
    with pytest.raises(SolanaMalformed, match="Instruction 1"):
        parse(b64(changed))


# The header says how many sign, and how many of both kinds are read-only; then come three keys.
HEADER = b"\x80\x01\x00\x01\x03"


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        (b"\x80\x01\x01\x01\x03", "read-only"),
        (b"\x80\x01\x00\x03\x03", "counts more"),
        (b"\x80\x00\x00\x01\x03", "signers"),
    ],
)
def test_a_header_that_does_not_add_up_is_refused(header, complaint):
    assert HEADER in raw(PAYMENT)

    with pytest.raises(SolanaMalformed, match=complaint):
        parse(b64(raw(PAYMENT).replace(HEADER, header)))


def test_a_program_that_pays_the_fee_is_refused():
    changed = raw(PAYMENT).replace(b"\x01\x02\x02\x00\x01\x0c", b"\x01\x00\x02\x00\x01\x0c")

    assert changed != raw(PAYMENT)
    with pytest.raises(SolanaMalformed, match="Instruction 1"):
        parse(b64(changed))


def test_a_missing_signature_place_is_refused():
    with pytest.raises(SolanaMalformed, match="signatures"):
        parse(encode(message(pay(5)), [Signature.default()] * 2))


def test_a_lookup_table_is_refused():
    plain = message(pay(5))
    lookup = [MessageAddressTableLookup(THEM, b"\x00", b"")]
    content = MessageV0(plain.header, plain.account_keys, plain.recent_blockhash, plain.instructions, lookup)

    with pytest.raises(SolanaUnsupported, match="lookup table"):
        parse(encode(content))


def test_a_later_message_version_is_refused():
    plain = message(pay(5))
    later = MessageV1(
        MessageHeader(1, 0, 1), TransactionConfig(), plain.recent_blockhash, plain.account_keys, plain.instructions
    )

    with pytest.raises(SolanaUnsupported, match="version 0"):
        parse(b64(bytes(VersionedTransaction.populate(later, [Signature.default()]))))


@given(st.lists(st.tuples(st.integers(0, len(RICH) - 1), st.integers(0, 255)), max_size=6), st.integers(0, 40))
def test_a_parsed_message_serializes_to_the_same_bytes(changes, cut):
    content = bytearray(RICH[: len(RICH) - cut if cut < 5 else None])
    for place, value in changes:
        content[place % len(content)] = value

    try:
        parsed = parse(b64(bytes(content)))
    except Invalid:
        return
    assert bytes(VersionedTransaction.populate(parsed.message, list(parsed.signatures))) == bytes(content)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused_and_nothing_worse(content):
    with pytest.raises(Invalid):
        parse(b64(content))


@pytest.mark.parametrize("build", [message, legacy])
def test_the_digest_ignores_the_blockhash_and_nothing_else(build):
    fresh = "4uQeVj5tqViQh7yWWGStvkEG1Zmhx6uasJtWCJziofM"
    one, other = parse(encode(build(pay(5)))), parse(encode(build(pay(5), blockhash=fresh)))

    assert digest_bytes(one) == digest_bytes(other)
    assert digest_bytes(one) != digest_bytes(parse(encode(build(pay(6)))))

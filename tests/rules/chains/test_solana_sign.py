"""We sign our own serialization and nothing else."""

import pytest
from solders.keypair import Keypair
from solders.message import to_bytes_versioned
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from custody.chains.solana.message import SolanaUnsupported, digest_bytes, parse
from custody.chains.solana.sign import sign
from tests.outside.solana_messages import US, compute_limit, encode, legacy, message, pay, pay_tokens

SEED = b"\x01" * 32
FRESH = "4uQeVj5tqViQh7yWWGStvkEG1Zmhx6uasJtWCJziofM"
OURS = Keypair.from_seed(SEED)
SOMEBODY = Keypair.from_seed(b"\x04" * 32)


@pytest.mark.parametrize("build", [message, legacy])
@pytest.mark.parametrize("blockhash", [None, FRESH])
def test_the_signature_verifies_over_the_bytes_that_are_sent(build, blockhash):
    content = build(compute_limit(9), pay(5), pay_tokens(7))

    signature, raw = sign(parse(encode(content)), OURS, blockhash)

    sent = VersionedTransaction.from_bytes(raw)
    assert Signature.from_string(signature).verify(US, to_bytes_versioned(sent.message))
    assert sent.signatures == [Signature.from_string(signature)]


def test_without_a_new_blockhash_the_callers_message_is_signed_unchanged():
    content = message(pay(5))

    _, raw = sign(parse(encode(content)), OURS, None)

    assert VersionedTransaction.from_bytes(raw).message == content


@pytest.mark.parametrize("build", [message, legacy])
def test_a_new_blockhash_changes_nothing_else(build):
    parsed = parse(encode(build(pay(5))))

    _, raw = sign(parsed, OURS, FRESH)

    sent = VersionedTransaction.from_bytes(raw)
    assert str(sent.message.recent_blockhash) == FRESH
    assert sent.message.instructions == parsed.message.instructions
    assert sent.message.account_keys == parsed.message.account_keys
    assert sent.message.header == parsed.message.header


def test_a_cosigned_message_keeps_its_blockhash_and_the_other_signature():
    content = message(pay(5), payer=SOMEBODY.pubkey())
    theirs = SOMEBODY.sign_message(to_bytes_versioned(content))

    ours, raw = sign(parse(encode(content, [theirs, Signature.default()])), OURS, FRESH)

    sent = VersionedTransaction.from_bytes(raw)
    assert sent.message == content
    assert sent.signatures == [theirs, Signature.from_string(ours)]
    assert sent.verify_with_results() == [True, True]


def test_a_key_that_is_not_asked_for_signs_nothing():
    with pytest.raises(SolanaUnsupported):
        sign(parse(encode(message(pay(5)))), SOMEBODY, None)


def test_signing_the_same_message_twice_gives_the_same_bytes():
    parsed = parse(encode(message(pay(5))))

    assert sign(parsed, OURS, FRESH) == sign(parsed, OURS, FRESH)


def test_the_signed_transaction_has_the_digest_that_was_approved():
    parsed = parse(encode(legacy(pay(5))))
    _, raw = sign(parsed, OURS, FRESH)

    content = VersionedTransaction.from_bytes(raw)

    assert digest_bytes(parse(encode(content.message, content.signatures))) == digest_bytes(parsed)

"""Somebody else may pay the fee and sign last, and nothing more: x402 on Solana, and every gasless transfer."""

import pytest
from solders.keypair import Keypair
from solders.message import to_bytes_versioned
from solders.signature import Signature
from solders.transaction import VersionedTransaction

from custody.chains.solana.effects import check_declared, check_sendable, subject_of
from custody.chains.solana.message import SolanaUnsupported, digest_bytes, id_of, parse
from custody.chains.solana.sign import sign
from tests.outside.solana_messages import (
    MEMO,
    OWN_KEY,
    THEM,
    US,
    compute_limit,
    compute_price,
    create_account,
    encode,
    instruction,
    legacy,
    message,
    pay,
    pay_tokens,
    system,
    with_references,
)

SPONSOR = Keypair.from_seed(b"\x07" * 32)
OTHER = Keypair.from_seed(b"\x08" * 32)
UNSIGNED = Signature.default()
FRESH = "4uQeVj5tqViQh7yWWGStvkEG1Zmhx6uasJtWCJziofM"
EXACT = (compute_limit(20_000), compute_price(1), pay_tokens(1_000), instruction(MEMO, b"a nonce", signers=()))


def with_sponsor(*instructions, build=message):
    return build(*instructions, payer=SPONSOR.pubkey())


def read_subject(content, signatures=None):
    return subject_of(parse(encode(content, signatures)), str(US), 101, "solana:x", str(THEM))


@pytest.mark.parametrize("build", [message, legacy])
@pytest.mark.parametrize("instructions", [EXACT, EXACT[:3], (pay(5),)])
def test_a_fee_payer_who_signs_last_is_accepted_and_its_fee_is_not_ours(build, instructions):
    subject = read_subject(with_sponsor(*instructions, build=build))

    assert [effect.kind for effect in subject.effects] == ["transfer"]
    check_declared(subject, str(US), str(THEM), 5 if len(instructions) == 1 else 0)


@pytest.mark.parametrize(
    "instructions",
    [
        [pay(5, SPONSOR.pubkey())],
        [with_references(pay(5), SPONSOR.pubkey())],
        [pay(5), instruction(MEMO, b"hello", SPONSOR.pubkey(), signers=(SPONSOR.pubkey(),))],
    ],
)
def test_a_fee_payer_who_stands_in_an_instruction_signs_first(instructions):
    with pytest.raises(SolanaUnsupported, match=f"{SPONSOR.pubkey()}, which stands in an instruction, must sign"):
        read_subject(with_sponsor(*instructions))


def test_a_fee_payer_with_a_wrong_signature_is_refused():
    content = with_sponsor(pay(5))
    wrong = SPONSOR.sign_message(b"something else")

    with pytest.raises(SolanaUnsupported, match="must sign"):
        read_subject(content, [wrong, UNSIGNED])


def test_any_other_cosigner_signs_first():
    # A third key that the header counts among the signers, and no instruction names.
    content = with_sponsor(pay(5), system(2, bytes(8), US, OTHER.pubkey()))
    keys = [SPONSOR.pubkey(), US, OTHER.pubkey(), *(key for key in content.account_keys[2:] if key != OTHER.pubkey())]
    header = type(content.header)(3, 0, content.header.num_readonly_unsigned_accounts)
    moved = {content.account_keys.index(key): place for place, key in enumerate(keys)}
    compiled = [
        type(one)(moved[one.program_id_index], one.data, bytes(moved[place] for place in one.accounts))
        for one in content.instructions[:1]
    ]
    three = type(content)(header, keys, content.recent_blockhash, compiled, [])

    with pytest.raises(SolanaUnsupported, match=f"{OTHER.pubkey()} must sign"):
        read_subject(three)
    signed = [UNSIGNED, UNSIGNED, OTHER.sign_message(to_bytes_versioned(three))]
    assert read_subject(three, signed).effects[0].amount == 5


def test_a_durable_nonce_would_give_the_sponsor_all_the_time_it_wants_and_is_refused():
    with pytest.raises(SolanaUnsupported, match="AdvanceNonceAccount"):
        read_subject(with_sponsor(system(4, b"", THEM, OTHER.pubkey(), US), pay(5)))


def test_rent_is_not_the_sponsors_to_pay_unsigned():
    created = create_account()
    by_sponsor = instruction(
        created.program_id,
        b"\x01",
        SPONSOR.pubkey(),
        *(one.pubkey for one in created.accounts[1:]),
        signers=(SPONSOR.pubkey(),),
    )
    with pytest.raises(SolanaUnsupported, match="must sign"):
        read_subject(with_sponsor(by_sponsor, pay_tokens(7)))


def test_only_the_fee_payer_can_broadcast_it():
    unsigned, signed = with_sponsor(pay(5)), message(pay(5))

    with pytest.raises(SolanaUnsupported, match="send `broadcast` false") as refused:
        check_sendable(parse(encode(unsigned)), str(US))
    assert str(SPONSOR.pubkey()) in refused.value.message
    check_sendable(parse(encode(signed)), str(US))
    theirs = SPONSOR.sign_message(to_bytes_versioned(unsigned))
    check_sendable(parse(encode(unsigned, [theirs, UNSIGNED])), str(US))


@pytest.mark.parametrize("build", [message, legacy])
def test_the_sponsor_completes_what_we_signed(build):
    content = with_sponsor(*EXACT, build=build)

    signature, raw = sign(parse(encode(content)), OWN_KEY, None)

    ours = VersionedTransaction.from_bytes(raw)
    assert ours.signatures == [UNSIGNED, Signature.from_string(signature)]
    assert id_of(raw) is None
    theirs = SPONSOR.sign_message(to_bytes_versioned(ours.message))
    whole = VersionedTransaction.populate(ours.message, [theirs, ours.signatures[1]])
    assert whole.verify_with_results() == [True, True]
    assert id_of(bytes(whole)) == str(theirs)


def test_a_new_blockhash_spoils_no_signature_that_is_not_there():
    parsed = parse(encode(with_sponsor(pay(5))))

    signature, raw = sign(parsed, OWN_KEY, FRESH)

    renewed = VersionedTransaction.from_bytes(raw)
    assert parsed.renewable(US)
    assert str(renewed.message.recent_blockhash) == FRESH
    assert Signature.from_string(signature).verify(US, to_bytes_versioned(renewed.message))
    assert digest_bytes(parse(encode(renewed.message, renewed.signatures))) == digest_bytes(parsed)


def test_a_sponsor_who_signed_keeps_their_blockhash():
    content = with_sponsor(pay(5))
    theirs = SPONSOR.sign_message(to_bytes_versioned(content))
    parsed = parse(encode(content, [theirs, UNSIGNED]))

    _, raw = sign(parsed, OWN_KEY, FRESH)

    assert not parsed.renewable(US)
    assert VersionedTransaction.from_bytes(raw).message == content
    assert id_of(raw) == str(theirs)

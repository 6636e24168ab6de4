"""Judging of a Solana message by what it does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from solders.keypair import Keypair
from solders.message import to_bytes_versioned
from solders.signature import Signature

from custody.chains.solana.accounts import TokenAccount
from custody.chains.solana.effects import DeclaredMismatch, FeeAboveCap, check_declared, check_fees, subject_of
from custody.chains.solana.message import SolanaUnsupported, parse
from custody.chains.types import Effect
from custody.policies.moved import moves
from tests.outside.solana_messages import (
    MEMO,
    MINT,
    THEM,
    TOKEN,
    TOKEN_2022,
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
    token_account,
)

CAIP2 = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"
FEE = Effect("fee", "solana:native", 5_000, from_=str(US), label="network fee")
SOMEBODY = Keypair.from_seed(b"\x04" * 32)
NATIVE_TO_THEM = Effect("transfer", "solana:native", 5, from_=str(US), to=str(THEM))


def subject(*instructions, to=THEM, build=message):
    return subject_of(parse(encode(build(*instructions))), str(US), 101, CAIP2, str(to))


def tokens(amount, to, account=None, program=TOKEN):
    held = TokenAccount(str(account or token_account(to, program=program)), str(MINT), str(program))
    told = f"solana:{MINT}", amount, str(US), str(to)
    return Effect("transfer", *told, account=held, unowned=to == account)


def declare(to, value, *instructions):
    check_declared(subject(*instructions, to=to), str(US), str(to), value)


@pytest.mark.parametrize("build", [message, legacy])
def test_a_native_transfer_is_one_effect_beside_its_fee(build):
    judged = subject(pay(5), build=build)

    assert judged.effects == (NATIVE_TO_THEM, FEE)
    assert (judged.family, judged.kind, judged.chain_id, judged.caip2) == ("solana", "solana", 101, CAIP2)
    assert judged.destination == str(THEM)


def test_a_token_transfer_goes_to_the_owner_that_was_declared():
    assert subject(pay_tokens(7)).effects == (tokens(7, THEM), FEE)


def test_a_token_transfer_goes_to_the_owner_whose_account_it_creates():
    judged = subject(create_account(SOMEBODY.pubkey()), pay_tokens(7, token_account(SOMEBODY.pubkey())))

    assert judged.effects[0] == tokens(7, SOMEBODY.pubkey())


def test_a_token_account_of_an_unknown_owner_is_named_itself():
    unknown = token_account(SOMEBODY.pubkey())

    assert subject(pay_tokens(7, unknown)).effects[0] == tokens(7, unknown, unknown)


def test_a_token_2022_account_is_derived_with_its_own_program():
    judged = subject(pay_tokens(7, program=TOKEN_2022))

    assert judged.effects[0] == tokens(7, THEM, program=TOKEN_2022)


def test_rent_is_an_effect_of_its_own():
    rent = subject(create_account(), pay_tokens(7)).effects[1]

    assert rent == Effect("fee", "solana:native", 2_039_280, from_=str(US), to=str(THEM), label="rent")


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x01"])
def test_an_account_is_created_in_each_of_three_ways(data):
    rent = subject(create_account(data=data), pay_tokens(7)).effects[1]

    assert (rent.amount, rent.label) == (2_039_280, "rent")


@pytest.mark.parametrize("tokens_paid", [0, 1])
def test_an_account_for_somebody_else_spends_its_rent(tokens_paid):
    judged = subject(create_account(), pay_tokens(tokens_paid))

    assert moves(judged).get("solana:native") == 2_039_280
    check_declared(judged, str(US), str(THEM), 0)


def test_an_account_of_our_own_spends_its_rent_for_nothing_here_closes_it():
    assert moves(subject(create_account(US), pay(5))) == {"solana:native": 2_039_285, "solana:rent": 2_039_280}


@pytest.mark.parametrize(
    ("instructions", "fee"),
    [
        ([pay(5)], 5_000),
        ([compute_limit(300_000), compute_price(1_000), pay(5)], 5_300),
        ([compute_limit(1), compute_price(1), pay(5)], 5_001),
        ([compute_price(1_000_000), pay(5), pay(6)], 405_000),
        ([compute_limit(2**32 - 1), compute_price(1_000_000), pay(5)], 1_405_000),
        ([instruction(MEMO, b"thank you"), pay(5)], 5_000),
    ],
)
def test_the_fee_is_what_the_cluster_may_take(instructions, fee):
    assert subject(*instructions).effects[-1].amount == fee


def test_fee_and_rent_together_stay_under_the_cap():
    judged = subject(create_account(), pay_tokens(7))

    check_fees(judged, 2_044_280)
    with pytest.raises(FeeAboveCap) as refused:
        check_fees(judged, 2_044_279)
    assert refused.value.code == "fee_above_cap"


def test_a_fee_that_somebody_else_pays_is_not_ours():
    content = message(pay(5), payer=SOMEBODY.pubkey())
    signed = [SOMEBODY.sign_message(to_bytes_versioned(content)), Signature.default()]

    judged = subject_of(parse(encode(content, signed)), str(US), 101, CAIP2, str(THEM))

    assert judged.effects == (NATIVE_TO_THEM,)


def test_a_transaction_that_does_not_need_our_signature_is_refused():
    content = message(pay(5, THEM, source=SOMEBODY.pubkey()), payer=SOMEBODY.pubkey())

    with pytest.raises(SolanaUnsupported, match="not among"):
        subject_of(parse(encode(content)), str(US), 101, CAIP2, str(THEM))


@pytest.mark.parametrize(
    ("instructions", "to", "value"),
    [
        ([pay(5)], THEM, 5),
        ([pay(5), pay(6)], THEM, 11),
        ([pay(5), pay_tokens(7)], THEM, 5),
        ([pay(5), pay_tokens(7, SOMEBODY.pubkey())], THEM, 5),
        ([pay(5), pay_tokens(7, token_account(SOMEBODY.pubkey()))], SOMEBODY.pubkey(), 5),
        ([pay(5), pay(6, SOMEBODY.pubkey())], THEM, 11),
        ([pay(5), pay(6, SOMEBODY.pubkey())], SOMEBODY.pubkey(), 11),
        ([pay(5), pay(6, US)], THEM, 11),
        ([pay_tokens(7), pay_tokens(8, token_account(US))], THEM, 0),
        ([pay(5, US)], US, 5),
        ([create_account(US)], US, 0),
        ([instruction(MEMO, b"nothing")], US, 0),
        ([pay_tokens(7)], THEM, 0),
        ([create_account(), pay_tokens(7), pay_tokens(8)], THEM, 0),
        ([pay_tokens(7, SOMEBODY.pubkey())], SOMEBODY.pubkey(), 0),
    ],
)
def test_a_declaration_that_agrees_is_accepted(instructions, to, value):
    declare(to, value, *instructions)


@pytest.mark.parametrize(
    ("instructions", "to", "value"),
    [
        ([pay(5)], THEM, 4),
        ([pay(5)], THEM, 6),
        ([pay(5)], SOMEBODY.pubkey(), 5),
        ([pay(5), pay(6, SOMEBODY.pubkey())], THEM, 5),
        ([pay(5), pay(6, SOMEBODY.pubkey())], MINT, 11),
        ([pay(5), pay(6, US)], US, 11),
        ([pay(5, US)], THEM, 5),
        ([pay(5, US)], US, 0),
        ([pay_tokens(7)], THEM, 7),
        ([pay_tokens(7)], SOMEBODY.pubkey(), 0),
        ([pay(5), pay_tokens(7)], THEM, 0),
        ([instruction(MEMO, b"nothing")], THEM, 0),
        ([create_account(US)], THEM, 0),
        ([create_account(US)], US, 1),
    ],
)
def test_a_declaration_that_differs_is_a_mismatch(instructions, to, value):
    with pytest.raises(DeclaredMismatch) as refused:
        declare(to, value, *instructions)
    assert refused.value.code == "declared_mismatch"


def test_a_declared_receiver_that_is_no_address_is_a_mismatch():
    with pytest.raises(DeclaredMismatch):
        subject(pay(5), to="l" * 40)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=12), st.integers(-3, 3))
def test_the_declared_value_is_the_sum_of_all_transfers(amounts, off):
    judged = subject(*[pay(amount) for amount in amounts])

    if off:
        with pytest.raises(DeclaredMismatch):
            check_declared(judged, str(US), str(THEM), sum(amounts) + off)
    else:
        check_declared(judged, str(US), str(THEM), sum(amounts))


@pytest.mark.parametrize(
    ("instructions", "to", "cure"),
    [
        ([create_account(US)], THEM, f"pays nobody but this wallet, not {THEM}: `to` must be {US}."),
        ([pay(5, US)], THEM, f"pays nobody but this wallet, not {THEM}: `to` must be {US}."),
        ([pay(5)], MINT, f"pays {THEM}, not {MINT}: `to` must be {THEM}."),
        (
            [pay_tokens(7)],
            MINT,
            f"`to` must be {token_account(THEM)}, or the owner of a token account among these.",
        ),
    ],
)
def test_the_error_says_what_to_must_be_and_that_passes(instructions, to, cure):
    with pytest.raises(DeclaredMismatch) as refused:
        declare(to, 0, *instructions)

    assert refused.value.message.endswith(cure)
    value = sum(int.from_bytes(one.data[4:12], "little") for one in instructions if len(one.data) == 12)
    named = next(key for key in (token_account(THEM), THEM, US) if f"must be {key}" in cure)
    declare(named, value, *instructions)


def test_of_several_receivers_the_error_names_each():
    with pytest.raises(DeclaredMismatch) as refused:
        declare(MINT, 11, pay(5), pay(6, SOMEBODY.pubkey()))

    assert all(f"{one}" in refused.value.message.split("must be")[1] for one in (THEM, SOMEBODY.pubkey()))

"""A wallet's acts with its own token accounts: wrap, unwrap, revoke, close, create."""

import pytest
from solders.keypair import Keypair

from custody.chains.solana.accounts import TokenAccount
from custody.chains.solana.effects import check_declared, check_fees, subject_of
from custody.chains.solana.message import SolanaUnsupported, parse
from custody.chains.types import Effect
from custody.policies.moved import moves
from tests.outside.solana_messages import (
    COMPUTE,
    MINT,
    SYSTEM,
    THEM,
    TOKEN,
    TOKEN_2022,
    US,
    WRAPPED_SOL,
    close,
    compute_limit,
    compute_price,
    create_account,
    encode,
    instruction,
    message,
    pay,
    pay_tokens,
    pay_tokens_with_fee,
    revoke,
    sync,
    token_account,
    with_references,
)

OURS, WRAPPED = token_account(US), token_account(US, WRAPPED_SOL)
REFERENCE = Keypair.from_seed(b"\x06" * 32).pubkey()
OWN = ("solana:native", 0, str(US), str(US))


def subject(*instructions, to=US):
    return subject_of(parse(encode(message(*instructions))), str(US), 101, "solana:x", str(to))


def refusal_of(*instructions):
    with pytest.raises(SolanaUnsupported) as caught:
        subject(*instructions)
    return caught.value.context["instruction"]


@pytest.mark.parametrize("program", [TOKEN, TOKEN_2022])
def test_a_revocation_only_takes_power_away(program):
    judged = subject(revoke(OURS, program))

    assert judged.effects[0] == Effect("approval", None, 0, str(US), label=f"revoke on {OURS}", revokes=True)
    assert moves(judged) == {}
    check_declared(judged, str(US), str(US), 0)


@pytest.mark.parametrize("program", [TOKEN, TOKEN_2022])
def test_closing_into_the_wallet_counts_nothing(program):
    judged = subject(close(OURS, program=program))

    assert judged.effects[0] == Effect("transfer", *OWN, label=f"close {OURS}")
    assert moves(judged) == {}
    check_declared(judged, str(US), str(US), 0)


def test_wrapped_lamports_count_in_full_and_are_declared():
    judged = subject(create_account(US, WRAPPED_SOL), pay(5, WRAPPED), sync())

    assert judged.effects[0] == Effect("transfer", "solana:native", 5, str(US), str(US), label="wrap")
    assert moves(judged) == {"solana:native": 5 + 2_039_280, "solana:rent": 2_039_280}
    check_declared(judged, str(US), str(US), 5)


def test_a_payment_beside_tidying_is_declared_by_itself():
    judged = subject(close(WRAPPED), pay(5), to=THEM)

    check_declared(judged, str(US), str(THEM), 5)


def test_references_of_solana_pay_change_nothing():
    for plain in (pay(5), pay_tokens(7)):
        assert subject(with_references(plain, REFERENCE, SYSTEM), to=THEM) == subject(plain, to=THEM)


@pytest.mark.parametrize(
    "odd",
    [
        with_references(pay_tokens(7, program=TOKEN_2022), REFERENCE),
        with_references(pay_tokens_with_fee(7, 1), REFERENCE),
        with_references(pay_tokens(7), US),
    ],
)
def test_accounts_that_may_mean_something_are_no_references(odd):
    assert "Transfer" in refusal_of(odd)


@pytest.mark.parametrize("plain", [pay(5), pay_tokens(7)])
def test_a_reference_that_may_be_written_is_refused(plain):
    written = instruction(plain.program_id, bytes(plain.data), *(one.pubkey for one in plain.accounts), REFERENCE)

    assert "Transfer" in refusal_of(written)
    # Written by another instruction, it is writable in the whole message.
    assert "Transfer" in refusal_of(with_references(plain, REFERENCE), pay(1, REFERENCE))


def test_a_transfer_with_its_fee_counts_in_full():
    account = TokenAccount(str(token_account(THEM, program=TOKEN_2022)), str(MINT), str(TOKEN_2022))

    judged = subject(pay_tokens_with_fee(1_000, 10), to=THEM)

    assert judged.effects[0] == Effect("transfer", f"solana:{MINT}", 1_000, str(US), str(THEM), account=account)


@pytest.mark.parametrize(
    ("data", "accounts"),
    [
        (b"\x1a\x01" + bytes(8) + b"\x06" + bytes(7), 4),
        (b"\x1a\x01" + bytes(8) + b"\x06" + bytes(9), 4),
        (b"\x1a\x01" + bytes(8) + b"\x06" + bytes(8), 3),
        (b"\x1a\x00" + bytes(8) + b"\x06" + bytes(8), 4),
        (b"\x1a", 4),
    ],
)
def test_a_transfer_with_fee_in_any_other_shape_is_refused(data, accounts):
    whole = [one.pubkey for one in pay_tokens_with_fee(1, 0).accounts]

    assert refusal_of(instruction(TOKEN_2022, data, *whole[:accounts])) == "Token-2022.TransferFeeExtension"


def test_every_setting_of_the_compute_budget_is_taken_once():
    settings = [
        instruction(COMPUTE, bytes([tag]) + (65_536).to_bytes(size, "little")) for tag, size in ((1, 4), (4, 4))
    ]
    priced = [compute_limit(300_000), compute_price(1_000)]

    assert subject(*settings, *priced, pay(5), to=THEM).effects[-1].amount == 5_300
    assert subject(*settings, compute_price(1_000_000), pay(5), to=THEM).effects[-1].amount == 205_000
    assert refusal_of(*settings, settings[0], pay(5)) == "ComputeBudget.RequestHeapFrame"


@pytest.mark.parametrize(
    ("program", "lamports", "label"), [(TOKEN, 2_039_280, "rent"), (TOKEN_2022, 2_248_080, "rent at most")]
)
def test_rent_that_depends_on_the_mint_is_said_to_be_the_most(program, lamports, label):
    judged = subject(create_account(US, program=program))

    assert judged.effects[0] == Effect("fee", "solana:native", lamports, str(US), str(US), label=label)
    check_declared(judged, str(US), str(US), 0)
    check_fees(judged, lamports + 5_000)

"""An instruction we do not understand is refused by its name."""

import pytest
from solders.keypair import Keypair

from custody.chains.solana.effects import subject_of
from custody.chains.solana.message import SolanaUnsupported, parse
from tests.outside.solana_messages import (
    ASSOCIATED,
    COMPUTE,
    MEMO,
    MINT,
    SYSTEM,
    THEM,
    TOKEN,
    TOKEN_2022,
    US,
    WRAPPED_SOL,
    compute_limit,
    create_account,
    encode,
    instruction,
    message,
    pay,
    pay_tokens,
    system,
    token_account,
)

OTHER = Keypair.from_seed(b"\x05" * 32).pubkey()
OURS, THEIRS = token_account(US), token_account(THEM)
AMOUNT = (7).to_bytes(8, "little")
LIMIT = b"\x02" + (9).to_bytes(4, "little")


def token(data, *accounts, program=TOKEN):
    return instruction(program, data, *accounts)


def refusal_of(*instructions):
    with pytest.raises(SolanaUnsupported) as caught:
        subject_of(parse(encode(message(*instructions))), str(US), 101, "solana:x", str(THEM))
    assert caught.value.code == "solana_unsupported"
    return caught.value


@pytest.mark.parametrize(
    ("dangerous", "name"),
    [
        (system(0, bytes(48), US, THEM), "System.CreateAccount"),
        (system(1, bytes(OTHER), US), "System.Assign"),
        (system(3, bytes(80), US, THEM), "System.CreateAccountWithSeed"),
        (system(4, b"", THEM, OTHER, US), "System.AdvanceNonceAccount"),
        (system(5, AMOUNT, THEM, OTHER, US), "System.WithdrawNonceAccount"),
        (system(7, bytes(OTHER), THEM, US), "System.AuthorizeNonceAccount"),
        (system(8, AMOUNT, US, THEM), "System.Allocate"),
        (system(11, AMOUNT, THEM, US, OTHER), "System.TransferWithSeed"),
        (system(99, b"", US), "System instruction 99"),
        (instruction(SYSTEM, b"\x02", US, THEM), "System without an instruction"),
        (token(b"\x03" + AMOUNT, OURS, THEIRS, US), "Token.Transfer"),
        (token(b"\x04" + AMOUNT, OURS, THEM, US), "Token.Approve"),
        (token(b"\x06\x02\x01" + bytes(OTHER), OURS, US), "Token.SetAuthority"),
        (token(b"\x08" + AMOUNT, OURS, MINT, US), "Token.Burn"),
        (token(b"\x09", OURS, THEM, US), "Token.CloseAccount"),
        (token(b"\x0d" + AMOUNT + b"\x06", OURS, MINT, THEM, US), "Token.ApproveChecked"),
        (token(b"\x1a\x01" + AMOUNT, OURS, MINT, THEIRS, US, program=TOKEN_2022), "Token-2022.TransferFeeExtension"),
        (token(b"", OURS), "Token without an instruction"),
        (instruction(ASSOCIATED, b"\x02", US, THEM), "AssociatedToken.RecoverNested"),
        (token(b"\x09", OURS, US, THEM), "Token.CloseAccount"),
        (token(b"\x09\x00", OURS, US, US), "Token.CloseAccount"),
        (token(b"\x09", OURS, US, US, OTHER), "Token.CloseAccount"),
        (token(b"\x05", OURS, THEM), "Token.Revoke"),
        (token(b"\x05", OURS, US, OTHER), "Token.Revoke"),
        (token(b"\x05\x00", OURS, US), "Token.Revoke"),
        (token(b"\x11", OURS), "Token.SyncNative"),
        (token(b"\x11", token_account(THEM, WRAPPED_SOL)), "Token.SyncNative"),
        (token(b"\x11", token_account(US, WRAPPED_SOL), OTHER), "Token.SyncNative"),
        (token(b"\x11", token_account(US, WRAPPED_SOL), program=TOKEN_2022), "Token-2022.SyncNative"),
        (token(b"\x1a\x01" + AMOUNT + b"\x06" + AMOUNT, OURS, MINT, THEIRS, US), "Token.TransferFeeExtension"),
        (instruction(COMPUTE, b"\x00" + bytes(8)), "ComputeBudget.RequestUnits"),
        (instruction(COMPUTE, b"\x01" + bytes(5)), "ComputeBudget.RequestHeapFrame"),
        (instruction(COMPUTE, b"\x04" + bytes(8)), "ComputeBudget.SetLoadedAccountsDataSizeLimit"),
        *((instruction(COMPUTE, b"\x05" + bytes(count)), "ComputeBudget instruction 5") for count in (0, 1, 4, 8)),
        (instruction(COMPUTE, b""), "ComputeBudget without an instruction"),
        (instruction(OTHER, b"\x02", US), f"program {OTHER}"),
    ],
)
def test_an_instruction_outside_the_list_is_refused_by_name(dangerous, name):
    problem = refusal_of(pay(5), dangerous)

    assert problem.context["instruction"] == name
    assert f"Instruction 2 ({name})" in problem.message


@pytest.mark.parametrize(
    "odd",
    [
        pay(5, source=THEM, to=US),
        system(2, AMOUNT + b"\x00", US, THEM),
        system(2, AMOUNT, US, THEM, OTHER),
        system(2, AMOUNT, US),
    ],
)
def test_a_native_transfer_in_any_other_shape_is_refused(odd):
    assert refusal_of(odd, pay(1)).context["instruction"] == "System.Transfer"


@pytest.mark.parametrize(
    "odd",
    [
        token(b"\x0c" + AMOUNT + b"\x06", OURS, MINT, THEIRS, THEM),
        token(b"\x0c" + AMOUNT + b"\x06", THEIRS, MINT, OURS, US),
        token(b"\x0c" + AMOUNT + b"\x06", token_account(US, OTHER), MINT, THEIRS, US),
        token(b"\x0c" + AMOUNT + b"\x06", OURS, MINT, THEIRS, US, program=TOKEN_2022),
        token(b"\x0c" + AMOUNT + b"\x06", OURS, MINT, THEIRS, US, OTHER),
        token(b"\x0c" + AMOUNT + b"\x06\x00", OURS, MINT, THEIRS, US),
        token(b"\x0c" + AMOUNT, OURS, MINT, THEIRS, US),
    ],
)
def test_a_token_transfer_in_any_other_shape_is_refused(odd):
    assert refusal_of(odd, pay(1)).context["instruction"].endswith(".TransferChecked")


@pytest.mark.parametrize(
    "odd",
    [
        instruction(ASSOCIATED, b"", US, THEIRS, OTHER, MINT, SYSTEM, TOKEN),
        instruction(ASSOCIATED, b"", US, THEIRS, THEM, OTHER, SYSTEM, TOKEN),
        instruction(ASSOCIATED, b"", US, THEIRS, THEM, MINT, SYSTEM, TOKEN_2022),
        instruction(ASSOCIATED, b"", US, THEIRS, THEM, MINT, SYSTEM, OTHER),
        instruction(ASSOCIATED, b"", US, token_account(US, MINT, OTHER), US, MINT, SYSTEM, OTHER),
        instruction(ASSOCIATED, b"", US, THEIRS, THEM, MINT, OTHER, TOKEN),
        instruction(ASSOCIATED, b"", OTHER, THEIRS, THEM, MINT, SYSTEM, TOKEN),
        instruction(ASSOCIATED, b"", US, THEIRS, THEM, MINT, SYSTEM, TOKEN, OTHER),
        instruction(ASSOCIATED, b"\x00\x00", US, THEIRS, THEM, MINT, SYSTEM, TOKEN),
    ],
)
def test_a_token_account_that_is_not_the_derived_one_is_refused(odd):
    assert refusal_of(odd, pay_tokens(7)).context["instruction"].startswith("AssociatedToken")


def test_rent_for_somebody_who_is_not_paid_is_refused():
    assert "does not pay into" in refusal_of(create_account(OTHER), pay_tokens(7)).message


def test_a_second_compute_limit_is_refused():
    assert "twice" in refusal_of(compute_limit(9), compute_limit(8), pay(5)).message


@pytest.mark.parametrize("odd", [instruction(COMPUTE, LIMIT + b"\x00"), instruction(COMPUTE, LIMIT, US)])
def test_a_compute_limit_in_any_other_shape_is_refused(odd):
    assert refusal_of(odd, pay(5)).context["instruction"] == "ComputeBudget.SetComputeUnitLimit"


def test_a_memo_that_we_sign_is_taken():
    parsed = parse(encode(message(pay(5), instruction(MEMO, b"hello", US))))
    assert len(subject_of(parsed, str(US), 101, "solana:x", str(THEM)).effects) == 2


def test_a_memo_in_the_name_of_somebody_else_is_refused():
    assert "memo" in refusal_of(pay(5), instruction(MEMO, b"hello", THEM)).message

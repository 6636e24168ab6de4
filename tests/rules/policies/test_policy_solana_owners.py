"""A list of addresses names owners; what is paid into their token accounts is paid to them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from solders.keypair import Keypair

from custody.chains.solana.effects import subject_of
from custody.chains.solana.message import parse
from custody.policies.holders import MOST_OWNERS_TRIED
from custody.policies.judge import judge
from tests.outside.solana_messages import (
    MEMO,
    MINT,
    SYSTEM,
    THEM,
    TOKEN,
    TOKEN_2022,
    US,
    WRAPPED_SOL,
    close,
    create_account,
    encode,
    instruction,
    message,
    pay,
    pay_tokens,
    revoke,
    sync,
    token_account,
    with_references,
)
from tests.rules.policies.makers import facts, rule, rules

SHOP, BOB = (Keypair.from_seed(bytes([seed]) * 32).pubkey() for seed in (21, 22))
# Tokens of its own, made at the address of a key.
SPARE = Keypair.from_seed(b"\x17" * 32).pubkey()


def verdict(mode, listed, to, *instructions):
    subject = subject_of(parse(encode(message(*instructions))), str(US), 101, "solana:x", str(to))
    terms = rule("approved-addresses", {"mode": mode, "addresses": [str(one) for one in listed]})
    return judge(rules(terms), subject, facts())


def decision(mode, listed, to, *instructions):
    return verdict(mode, listed, to, *instructions).decision


def to_owner(owner, program=None):
    return (
        pay_tokens(7, token_account(owner, MINT, program), program=program)
        if program
        else pay_tokens(7, token_account(owner))
    )


@pytest.mark.parametrize("program", [None, TOKEN_2022])
@pytest.mark.parametrize("named", ["owner", "account", "another"])
def test_a_blocked_owner_gets_no_tokens_whatever_is_declared(program, named):
    account = token_account(BOB, MINT, program) if program else token_account(BOB)
    to = {"owner": BOB, "account": account, "another": SHOP}[named]

    found = verdict("blacklist", [BOB], to, to_owner(BOB, program))

    assert found.decision == "refuse"
    assert f"{BOB} is a blocked address" in found.results[0].reason


def test_a_blocked_owner_is_found_beside_a_payment_to_somebody_else():
    assert decision("blacklist", [BOB], SHOP, pay(5, SHOP), to_owner(BOB)) == "refuse"
    assert decision("blacklist", [BOB], SHOP, pay(5, SHOP), pay(6, BOB)) == "refuse"
    assert decision("blacklist", [BOB], SHOP, pay(5, SHOP), to_owner(SHOP)) == "sign"


def test_an_account_whose_owner_cannot_be_told_is_undetermined_under_a_blacklist():
    found = verdict("blacklist", [BOB], SPARE, pay_tokens(7, SPARE))

    assert found.decision == "refuse"
    assert "the recipient cannot be determined" in found.results[0].reason
    assert "name the owner as `to`" in found.results[0].reason
    assert decision("blacklist", [BOB], token_account(SHOP), to_owner(SHOP)) == "refuse"
    # The cure: the owner is named, and derived.
    assert decision("blacklist", [BOB], SHOP, to_owner(SHOP)) == "sign"


def test_a_blocked_account_is_blocked_for_every_declared_receiver():
    assert decision("blacklist", [token_account(SHOP)], SHOP, to_owner(SHOP)) == "refuse"
    assert decision("blacklist", [SPARE], SPARE, pay_tokens(7, SPARE)) == "refuse"


@pytest.mark.parametrize("mint", [WRAPPED_SOL, MINT])
def test_lamports_into_a_token_account_are_its_owners(mint):
    account = token_account(BOB, mint)

    assert decision("blacklist", [BOB], account, pay(5, account)) == "refuse"
    assert decision("blacklist", [THEM], account, pay(5, account)) == "refuse"
    assert decision("blacklist", [BOB], SHOP, pay(5, SHOP)) == "sign"


def test_of_lamports_no_cure_is_named_that_is_none():
    account = token_account(SHOP)

    for mode in ("blacklist", "whitelist"):
        assert "name the owner" not in verdict(mode, [THEM], account, pay(5, account)).results[0].reason
    assert decision("whitelist", [account], account, pay(5, account)) == "sign"
    assert (
        decision("whitelist", [SHOP], token_account(SHOP, WRAPPED_SOL), pay(5, token_account(SHOP, WRAPPED_SOL)))
        == "sign"
    )


def test_tokens_for_an_owner_that_is_itself_an_account_are_undetermined():
    # The owner of the outer account recovers what lies in the nested one.
    outer = token_account(BOB)

    assert decision("blacklist", [BOB], outer, to_owner(outer)) == "refuse"


def test_rent_for_a_blocked_owner_is_refused():
    assert decision("blacklist", [BOB], BOB, create_account(BOB), to_owner(BOB)) == "refuse"
    assert decision("blacklist", [BOB], SHOP, create_account(SHOP), to_owner(SHOP)) == "sign"


def test_a_whitelist_takes_the_account_of_every_approved_owner():
    # A tip to one beside tokens for another: `to` names either.
    both = (pay(5, SHOP), to_owner(BOB))

    for to in (SHOP, BOB, token_account(BOB)):
        assert decision("whitelist", [SHOP, BOB], to, *both) == "sign"
        assert decision("whitelist", [SHOP, token_account(BOB)], to, *both) == "sign"
        assert decision("whitelist", [SHOP], to, *both) == "refuse"
        assert decision("whitelist", [BOB], to, *both) == "refuse"


def test_a_whitelist_refuses_an_account_of_nobody_on_it_and_names_the_cure():
    found = verdict("whitelist", [SHOP], token_account(BOB), to_owner(BOB))

    assert found.decision == "refuse"
    assert f"{token_account(BOB)} is not an approved address; of a token account name" in found.results[0].reason


def test_the_account_of_an_approved_owner_for_another_mint_or_program_is_another():
    assert decision("whitelist", [SHOP], SHOP, pay_tokens(7, token_account(SHOP, SHOP))) == "refuse"
    assert decision("whitelist", [SHOP], SHOP, pay_tokens(7, token_account(SHOP, MINT, TOKEN_2022))) == "refuse"


@pytest.mark.parametrize("mode", ["whitelist", "blacklist"])
@pytest.mark.parametrize(
    "own",
    [
        [create_account(US)],
        [revoke(token_account(US))],
        [close(token_account(US))],
        [pay(5, token_account(US, WRAPPED_SOL)), sync()],
        [instruction(MEMO, b"a note")],
    ],
)
def test_money_that_stays_with_the_wallet_has_no_recipient(mode, own):
    assert decision(mode, [SHOP], US, *own) == "sign"
    assert decision(mode, [SHOP], US, *own, pay(5, BOB)) == ("refuse" if mode == "whitelist" else "sign")
    assert decision(mode, [BOB], US, *own, pay(5, BOB)) == ("sign" if mode == "whitelist" else "refuse")


def test_nothing_sent_to_a_stranger_is_still_sent_to_them():
    assert decision("whitelist", [SHOP], BOB, pay(0, BOB)) == "refuse"


def test_references_are_nobodys_to_approve():
    assert decision("whitelist", [SHOP], SHOP, with_references(pay(5, SHOP), BOB)) == "sign"


def test_a_long_list_is_tried_no_longer_than_its_bound():
    many = [Keypair().pubkey() for _ in range(MOST_OWNERS_TRIED - 1)]
    account = token_account(SHOP)

    assert decision("whitelist", [*many, SHOP], account, to_owner(SHOP)) == "sign"
    assert decision("whitelist", [*many, BOB, SHOP], account, to_owner(SHOP)) == "refuse"
    # The same account twice is tried once, another mint's is tried too.
    twice, other = [to_owner(SHOP), to_owner(SHOP)], pay_tokens(7, token_account(SHOP, BOB), BOB)
    assert decision("whitelist", [*many, SHOP], account, *twice) == "sign"
    assert decision("whitelist", [*many, SHOP], account, *twice, other) == "refuse"
    assert decision("whitelist", [*many[:100], SHOP], account, *twice, other) == "sign"
    # With the owner named nothing need be tried.
    assert decision("whitelist", [*many, BOB, SHOP], SHOP, to_owner(SHOP)) == "sign"
    began = time.thread_time()
    decision("whitelist", [*many, *many[:700], BOB], account, to_owner(SHOP))
    assert time.thread_time() - began < 0.5


ANYBODY = st.sampled_from([SHOP, BOB, THEM, US, SPARE])
MINTS = st.sampled_from([MINT, WRAPPED_SOL, SHOP])
PROGRAMS = st.sampled_from([TOKEN, TOKEN_2022])
# Where something may be sent: to somebody, to an account of theirs, or to an account of such an account.
PLACES = ANYBODY | st.builds(token_account, ANYBODY, MINTS, PROGRAMS)
NESTED = PLACES | st.builds(token_account, PLACES, MINTS, PROGRAMS)


@st.composite
def payments(draw):
    mint, program = draw(MINTS), draw(PROGRAMS)
    tokens = pay_tokens(7, draw(NESTED), mint, program)
    owner = draw(ANYBODY)
    created = [create_account(owner, mint, program), pay_tokens(1, token_account(owner, mint, program), mint, program)]
    return draw(st.sampled_from([[pay(5, draw(NESTED))], [tokens], created]))


@given(st.lists(payments(), min_size=1, max_size=3), NESTED, st.sampled_from(["whitelist", "blacklist"]), ANYBODY)
def test_nothing_that_is_signed_reaches_whom_a_list_forbids(drawn, to, mode, named):
    made = [one for several in drawn for one in several]
    if decision(mode, [named], to, *made) != "sign":
        return
    reached = {one.accounts[1].pubkey if one.program_id == SYSTEM else one.accounts[2].pubkey for one in made}
    mints, programs = (MINT, WRAPPED_SOL, SHOP), (TOKEN, TOKEN_2022)
    theirs = {named} | {token_account(named, mint, program) for mint in mints for program in programs}
    theirs |= {token_account(one, mint, program) for one in theirs for mint in mints for program in programs}
    if mode == "blacklist":
        assert not reached & theirs or named == US
    else:
        ours = {US} | {token_account(US, mint, program) for mint in mints for program in programs}
        assert reached <= theirs | ours

"""Messages do under Solana's own programs what their effects say: executed, with balances read around it."""

import pytest
from solders.account import Account
from solders.keypair import Keypair
from solders.litesvm import LiteSVM
from solders.message import to_bytes_versioned
from solders.token.state import Mint, TokenAccount
from solders.transaction import VersionedTransaction
from solders.transaction_metadata import TransactionMetadata

from custody.chains.solana.effects import check_declared, subject_of
from custody.chains.solana.message import parse
from custody.chains.solana.sign import sign
from tests.outside.solana_messages import (
    COMPUTE,
    MEMO,
    MINT,
    OWN_KEY,
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
    legacy,
    message,
    pay,
    pay_tokens,
    pay_tokens_with_fee,
    revoke,
    sync,
    token_account,
    with_references,
)

SOL = 10**9
SPONSOR = Keypair.from_seed(b"\x07" * 32)
DELEGATE = Keypair.from_seed(b"\x08" * 32).pubkey()
OURS, WRAPPED = token_account(US), token_account(US, WRAPPED_SOL)
# Extensions of a mint by their number, with their content: a fee of 1 %, non-transferable, a hook of nobody, pausable.
FEE = (1, bytes(72) + 2 * ((0).to_bytes(8, "little") + (10**9).to_bytes(8, "little") + (100).to_bytes(2, "little")))
EVERYTHING = (FEE, (9, b""), (14, bytes(64)), (26, bytes(33)))


class Ledger:
    """A cluster with two mints of which we hold a thousand each."""

    def __init__(self, extensions=()):
        self.svm = LiteSVM()
        self.svm.airdrop(US, SOL)
        self.svm.airdrop(SPONSOR.pubkey(), SOL)
        self.svm.airdrop(THEM, SOL)
        plain = bytes(Mint(US, 0, 6, True, None))
        self.svm.set_account(MINT, Account(SOL, plain, TOKEN))
        self.svm.set_account(WRAPPED_SOL, Account(SOL, bytes(Mint(None, 0, 9, True, None)), TOKEN))
        self.mint_2022 = Keypair.from_seed(b"\x0a" * 32).pubkey()
        tlv = b"".join(
            number.to_bytes(2, "little") + len(one).to_bytes(2, "little") + one for number, one in extensions
        )
        extended = plain + bytes(83) + b"\x01" + tlv if tlv else plain
        self.svm.set_account(self.mint_2022, Account(SOL, extended, TOKEN_2022))

    def hold(self, mint=MINT, program=TOKEN):
        """Make our account and theirs, and mint a thousand to ours."""
        minted = b"\x07" + (1_000).to_bytes(8, "little")
        self.do(
            create_account(US, mint, program),
            create_account(THEM, mint, program),
            instruction(program, minted, mint, token_account(US, mint, program), US),
        )

    def do(self, *instructions):
        """Execute for ourselves what the service would not sign."""
        content = message(*instructions, blockhash=str(self.svm.latest_blockhash()))
        self._land(VersionedTransaction(content, [OWN_KEY]))

    def execute(self, *instructions, to=US, value=0, payer=US, build=message):
        """Execute what the service signs of a message; return its effects, and how many lamports left us."""
        content = build(*instructions, payer=payer, blockhash=str(self.svm.latest_blockhash()))
        parsed = parse(encode(content))
        subject = subject_of(parsed, str(US), 102, "solana:x", str(to))
        check_declared(subject, str(US), str(to), value)
        made = VersionedTransaction.from_bytes(sign(parsed, OWN_KEY, None)[1])
        if payer != US:
            theirs = SPONSOR.sign_message(to_bytes_versioned(made.message))
            made = VersionedTransaction.populate(made.message, [theirs, made.signatures[1]])
        before = self.lamports(US)
        self._land(made)
        return subject.effects, before - self.lamports(US)

    def lamports(self, key):
        """Return the lamports of an account."""
        return self.svm.get_balance(key) or 0

    def tokens(self, key):
        """Return the number of tokens in an account."""
        return self.account(key).amount

    def account(self, key):
        """A token account's state, without extensions."""
        return TokenAccount.from_bytes(self.svm.get_account(key).data[:165])

    def _land(self, transaction):
        outcome = self.svm.send_transaction(transaction)
        assert isinstance(outcome, TransactionMetadata), (outcome.err(), outcome.meta().logs())
        self.svm.expire_blockhash()


def native(effects):
    return sum(effect.amount for effect in effects if effect.asset == "solana:native")


@pytest.fixture
def ledger():
    return Ledger()


def test_wrapped_lamports_are_those_that_count_and_unwrapping_brings_them_back(ledger):
    effects, left = ledger.execute(create_account(US, WRAPPED_SOL), pay(5_000_000, WRAPPED), sync(), value=5_000_000)

    assert left == native(effects) == 5_000_000 + 2_039_280 + 5_000
    assert ledger.tokens(WRAPPED) == 5_000_000

    effects, left = ledger.execute(close(WRAPPED))

    assert left == 5_000 - 5_000_000 - 2_039_280
    assert native(effects) == 5_000
    assert ledger.svm.get_account(WRAPPED) is None


def test_wrapped_lamports_are_paid_like_any_token(ledger):
    ledger.execute(create_account(US, WRAPPED_SOL), pay(5_000_000, WRAPPED), sync(), value=5_000_000)
    theirs = token_account(THEM, WRAPPED_SOL)

    paid, left = ledger.execute(
        create_account(THEM, WRAPPED_SOL), pay_tokens(1_000, theirs, WRAPPED_SOL, decimals=9), to=THEM
    )

    assert left == native(paid) == 2_039_280 + 5_000
    assert (paid[0].asset, paid[0].amount, ledger.tokens(theirs)) == (f"solana:{WRAPPED_SOL}", 1_000, 1_000)


@pytest.mark.parametrize("program", [TOKEN, TOKEN_2022])
def test_a_revocation_ends_the_delegates_power(ledger, program):
    mint = MINT if program == TOKEN else ledger.mint_2022
    account = token_account(US, mint, program)
    ledger.hold(mint, program)
    ledger.do(instruction(program, b"\x04" + (9).to_bytes(8, "little"), account, DELEGATE, US))
    assert ledger.account(account).delegate == DELEGATE

    effects, left = ledger.execute(revoke(account, program))

    assert ledger.account(account).delegate is None
    assert left == native(effects) == 5_000
    assert ledger.tokens(account) == 1_000


@pytest.mark.parametrize("program", [TOKEN, TOKEN_2022])
def test_an_empty_account_gives_its_rent_back(ledger, program):
    mint = MINT if program == TOKEN else ledger.mint_2022
    made, left = ledger.execute(create_account(US, mint, program))
    assert left <= native(made)

    effects, back = ledger.execute(close(token_account(US, mint, program), program=program))

    assert back == 5_000 - (left - 5_000)
    assert native(effects) == 5_000


@pytest.mark.parametrize("extensions", [(), (FEE,), EVERYTHING])
def test_rent_of_token_2022_is_never_more_than_was_counted(extensions):
    ledger = Ledger(extensions)

    effects, left = ledger.execute(create_account(US, ledger.mint_2022, TOKEN_2022))

    size = len(ledger.svm.get_account(token_account(US, ledger.mint_2022, TOKEN_2022)).data)
    assert left - 5_000 == ledger.svm.minimum_balance_for_rent_exemption(size)
    assert left - 5_000 == {0: 2_074_080, 1: 2_157_600, 4: 2_248_080}[len(extensions)]
    assert effects[0].amount == 2_248_080 >= left - 5_000
    assert effects[0].label == "rent at most"


def test_rent_of_the_classic_program_is_exact_and_a_second_account_costs_none(ledger):
    for paid in (2_039_280, 0):
        effects, left = ledger.execute(create_account(US))
        assert (left - 5_000, effects[0].amount, effects[0].label) == (paid, 2_039_280, "rent")


@pytest.mark.parametrize("build", [message, legacy])
def test_references_move_nothing(ledger, build):
    ledger.hold()
    references = [Keypair.from_seed(bytes([seed]) * 32).pubkey() for seed in (31, 32)]
    before = ledger.lamports(THEM)

    coins, left = ledger.execute(with_references(pay(1_000_000), *references), to=THEM, value=1_000_000, build=build)
    paid, _ = ledger.execute(with_references(pay_tokens(400), *references), to=THEM, build=build)

    assert left == native(coins) == 1_005_000
    assert ledger.lamports(THEM) - before == 1_000_000
    assert (paid[0].amount, ledger.tokens(token_account(THEM)), ledger.tokens(OURS)) == (400, 400, 600)
    assert all(ledger.svm.get_account(one) is None for one in references)


@pytest.mark.parametrize("build", [message, legacy])
def test_a_sponsor_pays_the_fee_and_the_wallet_none_of_it(ledger, build):
    ledger.hold()
    before = ledger.lamports(SPONSOR.pubkey())

    effects, left = ledger.execute(
        compute_limit(40_000),
        compute_price(1_000_000),
        pay_tokens(400),
        instruction(MEMO, b"a nonce", signers=()),
        to=THEM,
        payer=SPONSOR.pubkey(),
        build=build,
    )

    assert (left, [effect.kind for effect in effects]) == (0, ["transfer"])
    assert before - ledger.lamports(SPONSOR.pubkey()) == 10_000 + 40_000
    assert (ledger.tokens(OURS), ledger.tokens(token_account(THEM))) == (600, 400)


def test_a_transfer_with_its_fee_takes_what_was_counted():
    ledger = Ledger((FEE,))
    mint, theirs = ledger.mint_2022, token_account(THEM, Ledger((FEE,)).mint_2022, TOKEN_2022)
    ledger.hold(mint, TOKEN_2022)

    effects, _ = ledger.execute(pay_tokens_with_fee(400, 4, mint), to=THEM)

    assert (effects[0].asset, effects[0].amount) == (f"solana:{mint}", 400)
    assert ledger.tokens(token_account(US, mint, TOKEN_2022)) == 600
    assert ledger.tokens(theirs) == 396


def test_several_receivers_get_the_sum_that_is_declared(ledger):
    ledger.hold()
    other = Keypair.from_seed(b"\x21" * 32).pubkey()

    effects, left = ledger.execute(pay(1_000_000), pay(2_000_000, other), pay_tokens(5), to=other, value=3_000_000)

    assert left == native(effects) == 3_005_000
    assert (ledger.lamports(other), ledger.tokens(token_account(THEM))) == (2_000_000, 5)


def test_the_whole_compute_budget_costs_what_was_counted(ledger):
    settings = [
        instruction(COMPUTE, b"\x01" + (65_536).to_bytes(4, "little")),
        instruction(COMPUTE, b"\x04" + (10_000_000).to_bytes(4, "little")),
        compute_limit(300_000),
        compute_price(1_000_000),
    ]

    effects, left = ledger.execute(*settings, pay(1_000_000), to=THEM, value=1_000_000)

    assert left == native(effects) == 1_000_000 + 5_000 + 300_000


def test_lamports_sent_to_ourselves_count_although_they_stay(ledger):
    effects, left = ledger.execute(pay(1_000, US), value=1_000)

    assert (left, native(effects)) == (5_000, 6_000)

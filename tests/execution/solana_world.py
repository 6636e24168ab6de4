"""The inhabitants of the tests' Solana cluster: an agent, people, mints of three kinds, and accounts of each."""

import hashlib
from functools import cache

import msgspec
from solders.account import Account
from solders.keypair import Keypair
from solders.litesvm import LiteSVM
from solders.pubkey import Pubkey
from solders.token.associated import get_associated_token_address
from solders.token.state import Mint, TokenAccount, TokenAccountState
from solders.transaction import VersionedTransaction
from solders.transaction_metadata import FailedTransactionMetadata

SYSTEM = Pubkey.from_string("11111111111111111111111111111111")
CLASSIC = Pubkey.from_string("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA")
EXTENDED = Pubkey.from_string("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
ASSOCIATED = Pubkey.from_string("ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL")
COMPUTE = Pubkey.from_string("ComputeBudget111111111111111111111111111111")
MEMO = Pubkey.from_string("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")
WRAPPED = Pubkey.from_string("So11111111111111111111111111111111111111112")
_BASE, _MINT, _FEE_MINT, _FEE_HELD = 165, 82, 1, 2
HELD = 1_000
LAMPORTS = 10**9


def _key(name: str) -> Keypair:
    """A worthless key: the cluster exists in memory only."""
    return Keypair.from_seed(hashlib.sha256(name.encode()).digest())


KEY, SPONSOR_KEY = _key("the agent"), _key("the sponsor")
AGENT, SPONSOR = KEY.pubkey(), SPONSOR_KEY.pubkey()
SHOP, STRANGER, BLOCKED = (_key(name).pubkey() for name in ("the shop", "a stranger", "somebody blocked"))
PEOPLE = (SHOP, STRANGER, BLOCKED)
COIN_MINT, NEW_MINT, FEE_MINT = (_key(name).pubkey() for name in ("a mint", "a Token-2022 mint", "a mint with a fee"))
PROGRAM = {COIN_MINT: CLASSIC, NEW_MINT: EXTENDED, FEE_MINT: EXTENDED, WRAPPED: CLASSIC}
# Token accounts that are no owner's associated one.
AUXILIARY = {owner: _key(f"an account of {owner}").pubkey() for owner in (AGENT, BLOCKED, STRANGER)}


def associated_account(owner: Pubkey, mint: Pubkey) -> Pubkey:
    """The one account of an owner and a mint that anybody can derive."""
    return get_associated_token_address(owner, mint, PROGRAM[mint])


# Whose the accounts are, also before they exist: their owners may make them, and then have what lies there.
HOLDERS = {associated_account(owner, mint): owner for owner in (AGENT, SPONSOR, *PEOPLE) for mint in PROGRAM}


class Held(msgspec.Struct, frozen=True):
    """An account at one moment; `mint` is None for one that holds lamports alone."""

    lamports: int
    owner: Pubkey
    mint: Pubkey | None = None
    amount: int = 0
    delegate: Pubkey | None = None
    delegated: int = 0
    closes: Pubkey | None = None


class Executed(msgspec.Struct, frozen=True):
    """Effects of a transaction on the accounts that it names; a failed one took its fee."""

    succeeded: bool
    before: dict[Pubkey, Held]
    after: dict[Pubkey, Held]


class Cluster:
    """The real programs. Every transaction is executed on the same state, which is put back after it."""

    def __init__(self) -> None:
        self._svm = LiteSVM().with_transaction_history(0)
        for mint, program in PROGRAM.items():
            self._set(mint, _mint(mint), program)
        for who in (AGENT, SPONSOR, *PEOPLE):
            self._svm.set_account(who, Account(LAMPORTS, b"", SYSTEM))
        for mint in PROGRAM:
            for owner in (AGENT, STRANGER, BLOCKED):
                delegate = STRANGER if (owner, mint) == (AGENT, COIN_MINT) else None
                self._hold(associated_account(owner, mint), owner, mint, delegate)
        for owner, address in AUXILIARY.items():
            self._hold(address, owner, COIN_MINT, None)

    @property
    def blockhash(self) -> object:
        """The recent blockhash that transactions need."""
        return self._svm.latest_blockhash()

    def execute(self, raw: bytes) -> Executed:
        """Execute signed bytes."""
        transaction = VersionedTransaction.from_bytes(raw)
        keys = list(transaction.message.account_keys)
        kept = {key: self._svm.get_account(key) for key in keys}
        before = {key: self._holding(key, account) for key, account in kept.items() if account}
        try:
            outcome = self._svm.send_transaction(transaction)
            after = {key: self._holding(key, account) for key in keys if (account := self._svm.get_account(key))}
        finally:
            for key, account in kept.items():
                if account is None or not account.executable:
                    self._svm.set_account(key, account or Account(0, b"", SYSTEM))
        return Executed(not isinstance(outcome, FailedTransactionMetadata), before, after)

    def _holding(self, key: Pubkey, account: Account) -> Held:
        if (
            account.owner not in (CLASSIC, EXTENDED)
            or len(account.data) < _BASE
            or account.executable
            or key in PROGRAM
        ):
            return Held(account.lamports, HOLDERS.get(key, key))
        held = TokenAccount.from_bytes(account.data[:_BASE])
        known = held.delegate, held.delegated_amount, held.close_authority
        return Held(account.lamports, held.owner, held.mint, held.amount, *known)

    def _set(self, address: Pubkey, data: bytes, program: Pubkey) -> None:
        self._svm.set_account(address, Account(self._rent(len(data)), data, program))

    def _rent(self, size: int) -> int:
        return int(self._svm.minimum_balance_for_rent_exemption(size))

    def _hold(self, address: Pubkey, owner: Pubkey, mint: Pubkey, delegate: Pubkey | None) -> None:
        native = self._rent(_BASE) if mint == WRAPPED else None
        state = TokenAccountState.Initialized
        account = TokenAccount(mint, owner, HELD, delegate, state, native, HELD // 2 if delegate else 0, None)
        fee = b"\x02" + _FEE_HELD.to_bytes(2, "little") + (8).to_bytes(2, "little") + bytes(8)
        data = bytes(account) + (fee if mint == FEE_MINT else b"")
        lamports = self._rent(len(data)) + (HELD if native else 0)
        self._svm.set_account(address, Account(lamports, data, PROGRAM[mint]))


def _mint(mint: Pubkey) -> bytes:
    plain = bytes(Mint(None, 2**40, 9 if mint == WRAPPED else 2, True, None))
    if mint != FEE_MINT:
        return plain
    # Ten per cent of each transfer are withheld, at most 3.
    fee = bytes(8) + (3).to_bytes(8, "little") + (1_000).to_bytes(2, "little")
    config = bytes(32) + bytes(32) + bytes(8) + fee + fee
    head = plain.ljust(_BASE, b"\0") + b"\x01" + _FEE_MINT.to_bytes(2, "little")
    return head + len(config).to_bytes(2, "little") + config


@cache
def cluster() -> Cluster:
    """The cluster as every case begins."""
    return Cluster()

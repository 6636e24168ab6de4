"""Answers of the API about accounts, as far as their screen reads them. See `shapes.py`."""

import msgspec


class SigningDetails(msgspec.Struct, frozen=True):
    """The way in which a wallet is signed for."""

    mode: str


class WalletDetails(msgspec.Struct, frozen=True):
    """Details of a wallet."""

    signing: SigningDetails


class AccountWallet(msgspec.Struct, frozen=True, rename="camel"):
    """One family of one agent."""

    id: str
    wallet_id: str
    name: str
    chain_family: str
    address: str | None
    capabilities: list[str]
    capability_metadata: WalletDetails


class DigitalAssetAccount(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Wallets under one name."""

    id: str
    display_name: str | None
    wallet_ids: list[str]
    wallets: list[AccountWallet]
    owner_user_ids: list[str]
    additional_signer_ids: list[str]
    signer_policy_ids: list[str]
    created_at: str


class AccountPage(msgspec.Struct, frozen=True):
    """A page of accounts, newest first."""

    accounts: list[DigitalAssetAccount]
    total: int


class WalletBalance(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The coin of one wallet on one chain."""

    wallet_id: str
    chain_id: int
    symbol: str
    native: str | None
    note: str | None = None


class TokenBalance(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One token in one wallet."""

    wallet_id: str
    chain_id: int
    token: str
    symbol: str | None
    balance: str | None
    formatted: str | None


class NativeRollup(msgspec.Struct, frozen=True, rename="camel"):
    """Total of one coin in all wallets."""

    chain_id: int
    native: str


class TokenRollup(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Total of one token in all wallets."""

    chain_id: int
    token: str
    symbol: str | None
    balance: str
    decimals: int | None


class Rollups(msgspec.Struct, frozen=True):
    """Totals of the account in all its wallets."""

    native: list[NativeRollup]
    tokens: list[TokenRollup]


class AccountBalance(msgspec.Struct, frozen=True, rename="camel"):
    """Balances of an account's wallets, as far as nodes tell."""

    balances: list[WalletBalance]
    token_balances: list[TokenBalance]
    rollups: Rollups

"""An account in words: its wallets, and what they hold. Pure."""

from collections.abc import Sequence
from typing import Final

from console.wire.shapes_accounts import AccountBalance, AccountWallet, DigitalAssetAccount, TokenRollup
from words.texts.amounts import coins, human, quote, whole
from words.texts.chains import SOL, chain_name, native_coin
from words.texts.lines import Heading, Line
from words.texts.moments import clock, moment
from words.texts.plain import clip

_IN: Final = "  "
_SOLANA: Final = (101, 102)
_BY: Final = {"server": "the service", "user": "its owner", "delegated": "a delegated signer", "quorum": "a key quorum"}


def name_of(account: DigitalAssetAccount) -> str:
    """Name the account for a person."""
    return account.display_name or account.id


def families_of(account: DigitalAssetAccount) -> str:
    """On which chains it has wallets."""
    return ", ".join(sorted({wallet.chain_family for wallet in account.wallets})) or "none"


def in_full(account: DigitalAssetAccount, balance: AccountBalance | None, trouble: str = "") -> list[Line]:
    """Everything about it; without a balance, that it is being asked for, or why there is none."""
    lines: list[Line] = [Heading(f"{clip(name_of(account), 200)} ({account.id})")]
    if trouble:
        lines.append(Line(f"! {trouble}", "warn"))
    elif balance is None:
        lines.append(Line("Asking nodes…", "quiet"))
    else:
        lines += [Line(""), Heading("Holds in all"), *_totals(balance)]
    lines.append(Line(""))
    for wallet in account.wallets:
        lines += _wallet(wallet, balance)
    if not account.wallets:
        lines.append(Line("It has no wallets.", "quiet"))
    lines += _assignments(account)
    return [*lines, Line(f"made {clock(moment(account.created_at))}; the API makes and changes accounts", "quiet")]


def _totals(balance: AccountBalance) -> list[Line]:
    lines = [Line(f"{_IN}{_coin(one.native, one.chain_id)}") for one in balance.rollups.native if whole(one.native)]
    lines += [Line(f"{_IN}{_token(one)}") for one in balance.rollups.tokens if whole(one.balance)]
    silent = sorted({chain_name(one.chain_id) for one in balance.balances if one.native is None})
    if silent:
        lines.append(Line(f"{_IN}Not all is known: {', '.join(silent)}. See below.", "warn"))
    return lines or [Line(f"{_IN}nothing", "quiet")]


def _wallet(wallet: AccountWallet, balance: AccountBalance | None) -> list[Line]:
    by = _BY.get(wallet.capability_metadata.signing.mode, wallet.capability_metadata.signing.mode)
    lines: list[Line] = [Heading(f"{clip(wallet.name, 200)}, {wallet.chain_family} (agent {wallet.wallet_id})")]
    if wallet.address is None:
        return [*lines, Line(f"{_IN}The agent was deleted: there is no wallet any more.", "bad"), Line("")]
    lines.append(Line(f"{_IN}{wallet.address}"))
    lines.append(Line(f"{_IN}signed for by {by}" if wallet.capabilities else f"{_IN}frozen: it can do nothing"))
    on = [one for one in balance.balances if one.wallet_id == wallet.wallet_id] if balance else []
    for one in on:
        if (one.chain_id in _SOLANA) != (wallet.chain_family == "solana"):
            continue
        if one.native is None:
            lines.append(Line(f"{_IN}{chain_name(one.chain_id)}: {clip(one.note or 'not known', 300)}", "warn"))
        else:
            lines.append(Line(f"{_IN}{_coin(one.native, one.chain_id)}"))
    return [*lines, Line("")]


def _coin(amount: str, chain: int) -> str:
    coin = SOL if chain in _SOLANA else native_coin("evm:native", chain)
    return f"{coins(amount, coin) if coin else amount} on {chain_name(chain)}"


def _token(one: TokenRollup) -> str:
    amount = whole(one.balance) or 0
    shown = human(amount, one.decimals) if one.decimals is not None and one.decimals <= 77 else f"{amount:,} smallest"
    named = f"that calls itself {quote(one.symbol)}" if one.symbol else "without a name"
    return f"{shown} of the token {clip(one.token, 64)} {named}, on {chain_name(one.chain_id)}"


def _assignments(account: DigitalAssetAccount) -> list[Line]:
    given: Sequence[tuple[str, list[str]]] = (
        ("owners", account.owner_user_ids),
        ("signers", account.additional_signer_ids),
        ("rules", account.signer_policy_ids),
    )
    said = [Line(f"{_IN}{name}: {', '.join(clip(one, 128) for one in ids)}") for name, ids in given if ids]
    return [Heading("Assigned, which grants nothing"), *said, Line("")] if said else []

"""The holdings of a Solana wallet in SPL tokens, summed over its accounts of each mint.

A mint has no symbol of its own; what calls itself one is somebody's page, so the symbol is unknown.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from solders.pubkey import Pubkey

from api.areas.funds.types import BadToken, Held
from custody.chains.family import Chain
from custody.chains.rpc import Rpc, RpcRefused, RpcUnavailable

PROGRAMS = ("TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
_PARSED = {"encoding": "jsonParsed", "commitment": "confirmed"}
_MOST = 2**64
_MOST_DECIMALS = 255


class _Amount(msgspec.Struct):
    amount: str
    decimals: int


class _Info(msgspec.Struct, rename="camel"):
    mint: str
    owner: str
    token_amount: _Amount


class _Parsed(msgspec.Struct):
    info: _Info


class _Data(msgspec.Struct):
    parsed: _Parsed


class _Account(msgspec.Struct):
    data: _Data


class _Entry(msgspec.Struct):
    account: _Account


class _Answer(msgspec.Struct):
    value: list[_Entry]


def token_address(text: str) -> str:
    """The address of a mint, or BadToken."""
    try:
        return str(Pubkey.from_string(text))
    except ValueError:
        raise BadToken(f"{text[:64]!r} is not a mint address.") from None


async def balances(rpc: Rpc, chain: Chain, owner: str, mints: Sequence[str]) -> list[Held]:
    """Read a wallet's balances of the mints named, or of all; raises RpcUnavailable when no node answers."""
    filters = [{"mint": mint} for mint in mints] or [{"programId": program} for program in PROGRAMS]
    answers = await rpc.batch(
        chain.rpc_urls, [("getTokenAccountsByOwner", [owner, wanted, _PARSED]) for wanted in filters]
    )
    if not mints:
        # A cluster without the newer program refuses to be asked about it.
        return sorted(
            (one for answer in answers if not isinstance(answer, RpcRefused) for one in _sum(answer, owner)),
            key=lambda one: one.address,
        )
    return [_of(mint, answer, owner) for mint, answer in zip(mints, answers, strict=True)]


def _of(mint: str, answer: Any, owner: str) -> Held:
    if isinstance(answer, RpcRefused):
        return Held(mint, note="No token at this address reports a balance.")
    # Without an account there is nothing of it, and nobody says how many decimals nothing has.
    return next((one for one in _sum(answer, owner) if one.address == mint), Held(mint, amount=0))


def _sum(answer: Any, owner: str) -> list[Held]:
    """The accounts of one answer, one line for each mint; those of others are not counted, whatever a node says."""
    try:
        accounts = [entry.account.data.parsed.info for entry in msgspec.convert(answer, _Answer).value]
    except msgspec.ValidationError:
        raise RpcUnavailable("The node's response is not valid.") from None
    found: dict[str, Held] = {}
    for account in accounts:
        amount = account.token_amount
        if account.owner != owner or len(account.mint) > 44 or not amount.amount.isdecimal() or len(amount.amount) > 20:
            continue
        decimals = amount.decimals if 0 <= amount.decimals <= _MOST_DECIMALS else None
        before = found.get(account.mint)
        total = int(amount.amount) + ((before.amount or 0) if before else 0)
        found[account.mint] = Held(account.mint, amount=min(total, _MOST), decimals=decimals)
    return list(found.values())

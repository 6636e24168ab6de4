"""Balance, symbol and decimals of ERC-20 tokens, asked of contracts that may say anything.

A contract is asked with little gas, which bounds how much it can answer; its answers are read strictly, or the value
stays unknown. Each token is asked by itself, so that a hostile one spoils nothing but its own line.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from api.areas.funds.types import BadToken, Held
from custody.chains.evm.address import BadAddress, parse_address
from custody.chains.family import Chain
from custody.chains.rpc import Rpc, RpcRefused, RpcUnavailable

_BALANCE_OF, _SYMBOL, _DECIMALS = "0x70a08231", "0x95d89b41", "0x313ce567"
_GAS = hex(400_000)
_WORD = 32
_MOST_DECIMALS = 77
MAX_SYMBOL = 32
_SYMBOL_TEXT = re.compile(rb"[\x21-\x7e]{1,%d}" % MAX_SYMBOL)
_AT_ONCE = 8


def token_address(text: str) -> str:
    """The address of a token in lower case, or BadToken."""
    try:
        return parse_address(text)
    except BadAddress as problem:
        raise BadToken(f"{text[:64]!r} is not a token address on an EVM chain. {problem}") from None


async def balances(rpc: Rpc, chain: Chain, owner: str, tokens: Sequence[str]) -> list[Held]:
    """Read an address' balance of each token, in the order of the tokens."""
    gate = asyncio.Semaphore(_AT_ONCE)
    return await asyncio.gather(*(_balance(rpc, chain, owner, token, gate) for token in tokens))


async def _balance(rpc: Rpc, chain: Chain, owner: str, token: str, gate: asyncio.Semaphore) -> Held:
    whose = _BALANCE_OF + owner.lower().removeprefix("0x").rjust(64, "0")
    queries = [
        ("eth_call", [{"to": token, "data": data, "gas": _GAS}, "latest"]) for data in (whose, _SYMBOL, _DECIMALS)
    ]
    async with gate:
        try:
            answers = await rpc.batch(chain.rpc_urls, queries)
        except RpcUnavailable as problem:
            return Held(token, note=problem.message)
    balance, symbol, decimals = map(_bytes, answers)
    if balance is None or len(balance) != _WORD:
        return Held(token, note="No token at this address reports a balance.")
    return Held(token, symbol_of(symbol), int.from_bytes(balance), _decimals(decimals))


def _bytes(answer: Any) -> bytes | None:
    """The bytes that a call gave; None where it failed or gave something else."""
    if isinstance(answer, RpcRefused) or not isinstance(answer, str) or not answer.startswith("0x"):
        return None
    try:
        return bytes.fromhex(answer[2:])
    except ValueError:
        return None


def _decimals(answer: bytes | None) -> int | None:
    if answer is None or len(answer) != _WORD:
        return None
    # A negative number is one of nearly 2^256 here, and as absurd.
    found = int.from_bytes(answer)
    return found if found <= _MOST_DECIMALS else None


def symbol_of(answer: bytes | None) -> str | None:
    """The symbol a token claims, or None if it is not short printable ASCII.

    ASCII only: look-alike letters and direction marks have dressed worthless tokens up as known ones. Nothing is cut
    out or cut off either, because what is left could be the name of another token.
    """
    if answer is None:
        return None
    # Early tokens return 32 bytes in place of a string.
    content = answer.rstrip(b"\0") if len(answer) == _WORD else _string(answer)
    return content.decode("ascii") if _SYMBOL_TEXT.fullmatch(content) else None


def _string(answer: bytes) -> bytes:
    if len(answer) < 2 * _WORD or int.from_bytes(answer[:_WORD]) != _WORD:
        return b""
    content = answer[2 * _WORD :]
    length = int.from_bytes(answer[_WORD : 2 * _WORD])
    return content[:length] if length <= len(content) else b""

"""Balance, symbol and decimals of ERC-20 tokens, asked of contracts that may say anything. Spec 1/4.1.

A contract is asked with little gas, which bounds how much it can answer; what it says is cut, cleaned, or taken for
unknown. Each token is asked for by itself, so that one of them spoils nothing but its own line.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from custody.chains.rpc import Rpc, RpcRefused, RpcUnavailable
from custody.chains.table import Chain
from custody.funds.types import Held

_BALANCE_OF, _SYMBOL, _DECIMALS = "0x70a08231", "0x95d89b41", "0x313ce567"
_GAS = hex(400_000)
_WORD = 32
_MOST_DECIMALS = 77
_LONGEST_STRING = 1024
_LONGEST_SYMBOL = 32
_AT_ONCE = 8


async def held(rpc: Rpc, chain: Chain, owner: str, tokens: Sequence[str]) -> list[Held]:
    """What an address holds of each token, in the order of the tokens."""
    gate = asyncio.Semaphore(_AT_ONCE)
    return await asyncio.gather(*(_held(rpc, chain, owner, token, gate) for token in tokens))


async def _held(rpc: Rpc, chain: Chain, owner: str, token: str, gate: asyncio.Semaphore) -> Held:
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
        return Held(token, note="There is no token at this address that tells a balance.")
    return Held(token, _symbol(symbol), int.from_bytes(balance), _decimals(decimals))


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


def _symbol(answer: bytes | None) -> str | None:
    """A string, or the 32 bytes that early tokens gave in its place."""
    if answer is None:
        return None
    content = answer.rstrip(b"\0") if len(answer) == _WORD else _string(answer)
    return None if content is None else cleaned(content)


def _string(answer: bytes) -> bytes | None:
    if len(answer) < 2 * _WORD or int.from_bytes(answer[:_WORD]) != _WORD:
        return None
    length = int.from_bytes(answer[_WORD : 2 * _WORD])
    content = answer[2 * _WORD : 2 * _WORD + length] if length <= _LONGEST_STRING else b""
    return content if len(content) == length else None


def cleaned(content: bytes) -> str | None:
    """A symbol that can be shown: a few printable characters of UTF-8, without what turns a line around."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return "".join(letter for letter in text if letter.isprintable()).strip()[:_LONGEST_SYMBOL] or None

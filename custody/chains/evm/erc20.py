"""ERC-20 calls we make ourselves, and reading what a node says they returned. Spec 1/4.4.

The answers come from a contract through a node; both are untrusted, so they are for display and never decide.
"""

import re

from custody.chains.evm.abi import WORD, NotCanonical, decode, encode_words
from custody.chains.evm.address import parse_address

TRANSFER = "0xa9059cbb"
DECIMALS = bytes.fromhex("313ce567")
SYMBOL = bytes.fromhex("95d89b41")
_BALANCE_OF = bytes.fromhex("70a08231")
_VISIBLE = re.compile(rb"[\x21-\x7e]{1,32}")


def transfer(to: str, amount: int) -> bytes:
    """Calldata of `transfer(address,uint256)`."""
    return bytes.fromhex(TRANSFER[2:]) + encode_words((parse_address(to), amount))


def balance_of(owner: str) -> bytes:
    """Calldata of `balanceOf(address)`."""
    return _BALANCE_OF + encode_words((parse_address(owner),))


def read_amount(answer: bytes) -> int | None:
    """The number a call returned, or None if it returned something else."""
    return int.from_bytes(answer) if len(answer) == WORD else None


def read_decimals(answer: bytes) -> int | None:
    """The decimals a token claims, or None if they do not fit a uint8."""
    decimals = read_amount(answer)
    return decimals if decimals is not None and decimals < 2**8 else None


def read_symbol(answer: bytes) -> str | None:
    """The symbol a token claims, or None if it is not short printable ASCII.

    Some old tokens return bytes32 instead of a string. ASCII only: look-alike letters and direction marks have
    dressed worthless tokens up as known ones.
    """
    content = answer.rstrip(b"\0") if len(answer) == WORD else _text(answer)
    if not _VISIBLE.fullmatch(content):
        return None
    return content.decode("ascii")


def _text(answer: bytes) -> bytes:
    try:
        (content,) = decode(("bytes",), answer)
    except NotCanonical:
        return b""
    return content if isinstance(content, bytes) else b""

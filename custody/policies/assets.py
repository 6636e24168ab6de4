"""Asset names and amounts as rules write them. Decisions 3."""

import re
from collections.abc import Mapping
from typing import Final

from custody.chains.evm.address import parse_address
from custody.chains.types import EVM_NATIVE, SOLANA_NATIVE
from custody.kit.shapes import MAX_UINT256
from custody.policies.addresses import family_of
from custody.policies.types import InvalidPolicy

BITCOIN: Final = "bitcoin"
NATIVE_OF: Final[Mapping[str, str]] = {"evm": EVM_NATIVE, "solana": SOLANA_NATIVE, "bitcoin": BITCOIN}
NATIVES: Final = frozenset(NATIVE_OF.values())
_UNITS: Final = {EVM_NATIVE: "wei", SOLANA_NATIVE: "lamports", BITCOIN: "satoshi"}
_EVM_TOKEN = re.compile(r"evm:([1-9][0-9]{0,15}):(0x[0-9a-fA-F]{40})\Z")


def parse_asset(text: str) -> str:
    """The asset as effects name it (EVM tokens in lower case), or InvalidPolicy."""
    if text in NATIVES:
        return text
    if token := _EVM_TOKEN.match(text):
        return f"evm:{token[1]}:{parse_address(token[2])}"
    mint = text.removeprefix("solana:")
    if mint != text and family_of(mint) == "solana":
        return text
    raise InvalidPolicy(
        f"`asset` {text!r} is none of evm:native, solana:native, bitcoin, evm:<chainId>:<token>, solana:<mint>"
    )


def parse_amount(text: str, field: str) -> int:
    """The amount as an integer, or InvalidPolicy when it does not fit 256 bits."""
    amount = int(text)
    if amount > MAX_UINT256:
        raise InvalidPolicy(f"`{field}` must be at most 2^256-1")
    return amount


def parse_optional_amount(text: str | None, field: str) -> int | None:
    """The amount, or None when the field is absent."""
    return None if text is None else parse_amount(text, field)


def told(amount: int, asset: str) -> str:
    """An amount as a person reads it: `300 wei`, `5 units of evm:1:0x...`."""
    return f"{amount} {_UNITS.get(asset) or 'units of ' + asset}"

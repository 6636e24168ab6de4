"""The chain families whose keys this signer holds. A new family: a file beside these, and a line here."""

from collections.abc import Mapping
from typing import Final

from signer.wallets.evm import EVM_KEYS
from signer.wallets.keys import AnyKeys
from signer.wallets.solana import SOLANA_KEYS

KEYS: Final[Mapping[str, AnyKeys]] = {keys.family: keys for keys in (EVM_KEYS, SOLANA_KEYS)}


def address_of(family: str, secret: bytes) -> str:
    """The address of a family's secret; ValueError where the secret is none of that family's."""
    keys = KEYS[family]
    return keys.address(keys.open(secret))

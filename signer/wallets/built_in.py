"""The chain families whose keys this signer holds. A new family: a file beside these, and a line here."""

from collections.abc import Mapping
from typing import Final

from signer.wallets.bitcoin import BITCOIN_KEYS
from signer.wallets.evm import EVM_KEYS
from signer.wallets.keys import AnyKeys
from signer.wallets.solana import SOLANA_KEYS

KEYS: Final[Mapping[str, AnyKeys]] = {keys.family: keys for keys in (EVM_KEYS, SOLANA_KEYS, BITCOIN_KEYS)}
# Those that every agent has from its beginning; the others are made when they are first asked for.
BORN_WITH: Final = tuple(family for family, keys in KEYS.items() if not keys.made_when_asked)


def address_of(family: str, secret: bytes) -> str:
    """The address of a family's secret; ValueError where the secret is none of that family's."""
    keys = KEYS[family]
    return keys.address(keys.open(secret))

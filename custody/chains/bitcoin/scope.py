"""Wallet scopes: which address of an agent is meant."""

import re
from typing import Final

from custody.chains.bitcoin.networks import NETWORKS
from custody.chains.bitcoin.refusals import BadWalletScope
from custody.chains.bitcoin.types import PURPOSES, WalletScope

_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,9}\Z")
# From here on a number of a key path is hardened.
_HARDENED: Final = 2**31


def parse_scope(text: str) -> WalletScope:
    """The scope that a text names in its one spelling; BadWalletScope for any other text."""
    parts = text.split(":")
    if len(parts) != 6 or parts[0] != "bitcoin" or parts[1] not in NETWORKS or parts[2] not in PURPOSES:
        raise BadWalletScope
    account, change, index = (_number(part) for part in parts[3:])
    if change > 1:
        raise BadWalletScope("walletScope: the change number must be 0 (receiving) or 1 (change).")
    return WalletScope(NETWORKS[parts[1]], parts[2], account, change, index)


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) >= _HARDENED:
        raise BadWalletScope(
            "walletScope: account, change and index must be decimal numbers below 2147483648, without leading zeros."
        )
    return int(text)

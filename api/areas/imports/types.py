"""The bodies that import a private key."""

from typing import Annotated

import msgspec

from custody.kit.described import described
from custody.protocol.signer.imports import Chain


class ImportBegun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For which of the agent's wallets a key comes."""

    chain: Annotated[Chain, described("`evm` or `solana`.")]

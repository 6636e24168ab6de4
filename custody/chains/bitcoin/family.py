"""Bitcoin: PSBTs are signed with keys below one root, which an agent has once it asked for an address."""

import base64
import re
from hashlib import sha256
from typing import Final

from custody.chains import base58
from custody.chains.bitcoin.networks import NETWORKS
from custody.chains.family import SigningFamily
from custody.chains.units import Unit

_SEGWIT: Final = re.compile(r"(?:bc|tb|bcrt)1[02-9ac-hj-np-z]{8,87}\Z")
_BYTES: Final = 25


class Bitcoin(SigningFamily):
    """Segwit addresses are compared in lower case; those in base58 have one spelling."""

    name = "bitcoin"
    title = "Bitcoin"
    native_asset = "bitcoin"
    unit = "satoshi"
    chain_name = re.compile(r"bip122:[0-9a-f]{32}\Z")
    order_kinds = ("bitcoin",)
    coin = Unit("BTC", 8, "satoshi")
    # What leaves by a PSBT is only known with it.
    counts_fee = True

    def is_address(self, text: str) -> bool:
        """Say whether it looks like segwit, or is base58 with a checksum that holds."""
        if _SEGWIT.match(text.lower()):
            return text in (text.lower(), text.upper())
        raw = base58.decode(text)
        return raw is not None and len(raw) == _BYTES and sha256(sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]

    def spell(self, address: str) -> str:
        """Segwit in lower case."""
        return address.lower() if _SEGWIT.match(address.lower()) else address

    def parse_chain(self, text: str) -> str | None:
        """`bip122:<genesis>`, also for `bitcoin:<network>`."""
        network = NETWORKS.get(text.removeprefix("bitcoin:")) if text.startswith("bitcoin:") else None
        return super().parse_chain(text) if network is None else network.caip2

    def encode(self, raw: bytes) -> str:
        """A PSBT in base64."""
        return base64.b64encode(raw).decode()

"""Bitcoin: PSBTs are signed with keys below one root, which an agent has once it asked for an address."""

import base64
import re
from hashlib import sha256
from typing import Final

from custody.chains import base58
from custody.chains.family import SigningFamily

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

    def is_address(self, text: str) -> bool:
        """Say whether it looks like segwit, or is base58 with a checksum that holds."""
        if _SEGWIT.match(text.lower()):
            return text in (text.lower(), text.upper())
        raw = base58.decode(text)
        return raw is not None and len(raw) == _BYTES and sha256(sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]

    def spelled(self, address: str) -> str:
        """Segwit in lower case."""
        return address.lower() if _SEGWIT.match(address.lower()) else address

    def encoded(self, raw: bytes) -> str:
        """A PSBT in base64."""
        return base64.b64encode(raw).decode()

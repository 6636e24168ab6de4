"""EVM addresses as people compare them: in the EIP-55 spelling, whose capitals are a checksum. Pure."""

import re
from functools import lru_cache
from typing import Final

from Crypto.Hash import keccak

_EVM: Final = re.compile(r"0[xX][0-9a-fA-F]{40}\Z")


@lru_cache(maxsize=4096)
def checksum_address(address: str) -> str:
    """An EVM address with its checksum, whatever its case; anything else as it is."""
    if not _EVM.match(address):
        return address
    digits = address[2:].lower()
    nibbles = keccak.new(digest_bits=256, data=digits.encode()).hexdigest()
    capital = (digit.upper() if nibble > "7" else digit for digit, nibble in zip(digits, nibbles, strict=False))
    return "0x" + "".join(capital)

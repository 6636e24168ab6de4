"""Keys of EVM wallets: secp256k1."""

import secrets

import coincurve

from custody.chains.evm.address import address_of
from signer.wallets.keys import WalletKeys


class EvmKeys(WalletKeys[coincurve.PrivateKey]):
    """A secret is the 32 bytes of the private key; the address is checksummed."""

    family = "evm"

    def generate(self) -> bytes:
        """A new secret."""
        return secrets.token_bytes(32)  # noqa: TID251 - a private key

    def open(self, secret: bytes) -> coincurve.PrivateKey:
        """The key, which serves the address check and the signature: building it twice costs as much as signing."""
        return coincurve.PrivateKey(secret)

    def address(self, key: coincurve.PrivateKey) -> str:
        """The checksummed address."""
        return address_of(key.public_key.format(compressed=False))


EVM_KEYS = EvmKeys()

"""Keys of Bitcoin wallets: one BIP-32 root for each agent, from which the keys of all its addresses follow."""

import secrets

from custody.chains.bitcoin.keys import Root, fingerprint, root_of
from signer.wallets.keys import WalletKeys


class BitcoinKeys(WalletKeys[Root]):
    """A secret is the 32-byte seed of the root. In place of an address stands the root's fingerprint (BIP-32)."""

    family = "bitcoin"
    made_when_asked = True

    def generate(self) -> bytes:
        """A new secret."""
        return secrets.token_bytes(32)  # noqa: TID251 - a private key

    def open(self, secret: bytes) -> Root:
        """The root."""
        return root_of(secret)

    def address(self, key: Root) -> str:
        """The fingerprint, 8 hex digits."""
        return fingerprint(key).hex()


BITCOIN_KEYS = BitcoinKeys()

"""Keys of Solana wallets: Ed25519."""

import secrets

from solders.keypair import Keypair

from signer.wallets.keys import WalletKeys


class SolanaKeys(WalletKeys[Keypair]):
    """A secret is the 32-byte seed; the address is the public key in base58."""

    family = "solana"

    def generate(self) -> bytes:
        """A new secret."""
        return secrets.token_bytes(32)  # noqa: TID251 - a private key

    def open(self, secret: bytes) -> Keypair:
        """The key pair."""
        return Keypair.from_seed(secret)

    def address(self, key: Keypair) -> str:
        """The public key in base58."""
        return str(key.pubkey())


SOLANA_KEYS = SolanaKeys()

"""The keys of one chain family's wallets: how they are made, opened and named."""

from abc import abstractmethod
from typing import Any, Protocol


class WalletKeys[Key](Protocol):
    """One class for each family, in this package; `signer/wallets/built_in.py` lists them.

    A secret is what is sealed; a key is what it opens to, ready to sign, and is let go as soon as it has.
    """

    # The chain family, which is also the purpose that the secret is sealed for.
    family: str
    # Not with the agent, but when its first address is asked for.
    made_when_asked: bool = False

    @abstractmethod
    def generate(self) -> bytes:
        """A new secret."""

    @abstractmethod
    def open(self, secret: bytes) -> Key:
        """The key of a secret; ValueError where the secret is none of this family's."""

    @abstractmethod
    def address(self, key: Key) -> str:
        """The address that the key really has, spelled as rows and answers have it."""


type AnyKeys = WalletKeys[Any]

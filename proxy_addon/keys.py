"""The public keys that agent tokens are signed with, straight from the signer that holds the private ones."""

import time

from custody.kit.callers import Origin
from custody.kit.jwt import TokenKeys
from custody.protocol.client import SignerClient
from custody.protocol.common import PublicKeys

_ORIGIN = Origin("proxy-keys")
# Tokens with made-up key ids must not make the signer busy.
_REFRESH_SECONDS = 5.0


class Keys:
    """The keys as they were last read; `refresh` reads them again, now and then."""

    def __init__(self, signer: SignerClient) -> None:
        self._signer = signer
        self._read_at = float("-inf")
        self._shown: list[dict[str, str]] = []
        self.current = TokenKeys({})

    async def load(self) -> None:
        """Read the keys."""
        self._read_at = time.monotonic()
        keys = (await self._signer.tell(PublicKeys(), _ORIGIN)).keys
        if keys != self._shown:
            # Only then: the new ones know no verified token yet.
            self._shown, self.current = keys, TokenKeys.from_jwks(keys)

    async def refresh(self) -> bool:
        """Read the keys again, unless that was a moment ago; whether they were read."""
        if time.monotonic() - self._read_at < _REFRESH_SECONDS:
            return False
        await self.load()
        return True

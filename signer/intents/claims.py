"""The claim on an intent by the change of its resource."""

from typing import Any, Protocol

import msgspec


class StaleState(Exception):
    """The state the intent was authorised against has changed since."""


class Claimed(Protocol):
    """Claims the intent in the transaction of its change, with what the change came to."""

    async def __call__(self, connection: Any, result: dict[str, Any], /) -> None:
        """Take the intent's last step; raises where it is not as it was."""


class Claim(msgspec.Struct, frozen=True):
    """The version that the intent was authorised against, and how it is claimed."""

    version: int
    claimed: Claimed

"""Signing in by a code that a person approves elsewhere. RFC 8628."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import msgspec

from console.wire.api_client import ApiClient, SignedIn
from console.wire.failures import Answered, Away, TooFast
from console.wire.tokens import Tokens

_GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:device_code"
# What is said to last longer, or to be waited for longer, is cut to these: no service means more.
_LONGEST_CODE_SECONDS: Final = 86_400
_LONGEST_INTERVAL_SECONDS: Final = 900
# What `slow_down` adds, where the service does not say more.
SLOWER_SECONDS: Final = 5


class DeviceCode(msgspec.Struct, frozen=True):
    """A code: what is shown to the person, and what this console alone knows."""

    device_code: str
    user_code: str
    verification_uri: str
    expires_in: int
    interval: int = 5
    verification_uri_complete: str = ""

    def __repr__(self) -> str:
        return "DeviceCode()"

    @property
    def lasts(self) -> timedelta:
        """Time within which it may be approved."""
        return timedelta(seconds=max(0, min(_LONGEST_CODE_SECONDS, self.expires_in)))

    @property
    def is_in_address(self) -> bool:
        """True if the page that opens has the code already."""
        return bool(self.verification_uri_complete)

    @property
    def address(self) -> str:
        """Address to open."""
        return self.verification_uri_complete or self.verification_uri


class Ended(Exception):
    """The code serves no more; the message says why. Another one may be had."""


class Asking:
    """The polls for one code."""

    def __init__(self, client: ApiClient, code: DeviceCode) -> None:
        self._client = client
        self._code = code
        self.interval: float = _clamp(code.interval)

    async def session(self, wait: Callable[[float, str], Awaitable[None]]) -> Tokens:
        """The session, once somebody has approved; raises Ended.

        `wait` is told how long to wait before the next poll, and what is wrong meanwhile, if anything is.
        """
        failures, pause, trouble = 0, self.interval, ""
        while True:
            await wait(pause, trouble)
            try:
                return await self._poll()
            except Away as away:
                failures += 1
                pause, trouble = max(self.interval, self._client.patience.again_in(failures)), away.sentence
            except TooFast as refused:
                pause, trouble = max(self.interval, refused.retry_after), refused.sentence
            except Answered as refused:
                failures, pause, trouble = 0, self._next_interval(refused), ""

    async def _poll(self) -> Tokens:
        body = {"grant_type": _GRANT_TYPE, "device_code": self._code.device_code}
        return (await self._client.send("POST", "/auth/device/token", SignedIn, body)).tokens()

    def _next_interval(self, refused: Answered) -> float:
        match refused.code:
            case "authorization_pending":
                return self.interval
            case "slow_down":
                said = refused.data.get("interval")
                self.interval = _clamp(max(self.interval + SLOWER_SECONDS, said if isinstance(said, int) else 0))
                return self.interval
            case "access_denied":
                raise Ended(f"This sign-in was refused. {refused.sentence}")
            case "expired_token":
                raise Ended("This code has expired.")
        if refused.status >= 500:
            return self.interval
        raise Ended(f"The service no longer accepts this code: {refused.sentence}")


def _clamp(seconds: float) -> float:
    return max(1, min(_LONGEST_INTERVAL_SECONDS, seconds))


async def new_code(client: ApiClient, tenant: str) -> DeviceCode:
    """A code of this console; raises Failure."""
    return await client.send("POST", "/auth/device/code", DeviceCode, {"tenant_id": tenant})

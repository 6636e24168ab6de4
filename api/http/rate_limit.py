"""The global limit per client, and its headers. Spec 1/8, decisions 1."""

import math
import time

from limits import RateLimitItemPerSecond
from limits.aio.storage import Storage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.storage import storage_from_string

from api.settings import Settings
from custody.kit.callers import AgentCaller, Caller, PlatformCaller, TenantCaller
from custody.kit.errors import TooMany


class RateLimited(TooMany):
    """Too many requests; wait and try again."""


class RateLimit:
    """Counts requests per credential, or per address where there is none."""

    def __init__(self, settings: Settings) -> None:
        store = settings.rate_limit_store
        storage = storage_from_string("async+memory://" if store == "memory" else f"async+{store}")
        assert isinstance(storage, Storage)  # noqa: S101 - the scheme says so
        self._limiter = FixedWindowRateLimiter(storage)
        window = settings.rate_limit_window_seconds
        self._known = RateLimitItemPerSecond(settings.rate_limit_max, window) if settings.rate_limit_max else None
        self._anonymous = (
            RateLimitItemPerSecond(settings.rate_limit_anonymous_max, window)
            if settings.rate_limit_anonymous_max
            else None
        )

    async def count(self, caller: Caller | None, address: str) -> dict[str, str]:
        """Count one request; gives the headers of a good answer, or raises RateLimited with those of a refusal."""
        item = self._known if caller is not None else self._anonymous
        if item is None:
            return {}
        name = _name_of(caller, address)
        within = await self._limiter.hit(item, name)
        stats = await self._limiter.get_window_stats(item, name)
        reset = max(1, math.ceil(stats.reset_time - time.time()))  # noqa: TID251 - the library counts in this clock
        headers = {
            "RateLimit-Limit": str(item.amount),
            "RateLimit-Remaining": str(stats.remaining),
            "RateLimit-Reset": str(reset),
        }
        if not within:
            # The legacy spellings only where they are needed: each header costs as much as a small query.
            raise RateLimited(
                retry_after=reset, headers=headers | {f"X-{name}": text for name, text in headers.items()}
            )
        return headers


def _name_of(caller: Caller | None, address: str) -> str:
    if isinstance(caller, AgentCaller):
        return f"agent:{caller.tenant}:{caller.agent}"
    if isinstance(caller, TenantCaller):
        return f"tenant:{caller.tenant}:{caller.key_prefix}"
    if isinstance(caller, PlatformCaller):
        return f"platform:{caller.key_prefix}"
    return f"address:{address}"

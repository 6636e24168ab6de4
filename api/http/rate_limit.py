"""The global limit per client with its headers, and the smaller ones of routes that anybody may call. Decisions 1."""

import math
import time

from limits import RateLimitItemPerMinute, RateLimitItemPerSecond
from limits.aio.storage import MemoryStorage, Storage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.errors import StorageError
from limits.limits import RateLimitItem
from limits.storage import storage_from_string

from api.http.addresses import counted_as
from api.settings import Limit, Settings
from custody.kit.callers import AgentCaller, Caller, PlatformCaller, TenantCaller
from custody.kit.errors import TooMany
from custody.kit.logs import logger

log = logger("api")
# How long a store that did not answer is not asked again, and how long it has to answer.
AWAY_SECONDS = 2.0
STORE_SECONDS = 0.5


class RateLimited(TooMany):
    """Too many requests; wait and try again."""


class RateLimit:
    """Counts requests per credential, or per address where there is none.

    While the shared store is away every process counts for itself, so that there is always a limit.
    """

    def __init__(self, settings: Settings) -> None:
        self._own = FixedWindowRateLimiter(MemoryStorage())
        self._store = _store(settings.rate_limit_store)
        self._shared = FixedWindowRateLimiter(self._store) if self._store is not None else None
        self._away_until = 0.0
        window = settings.rate_limit_window_seconds
        self._known = _item(settings.rate_limit_max, window)
        self._anonymous = _item(settings.rate_limit_anonymous_max, window)
        self._small = {
            name: RateLimitItemPerMinute(amount, namespace=name)
            for name, amount in settings.small_limits.items()
            if amount
        }

    async def count(self, caller: Caller | None, address: str) -> dict[str, str]:
        """Count one request; gives the headers of a good answer, or raises RateLimited with those of a refusal."""
        item = self._known if caller is not None else self._anonymous
        return {} if item is None else await self._count(item, _name_of(caller, address))

    async def count_small(self, name: Limit, address: str) -> dict[str, str]:
        """Count one request of a route that anybody may call."""
        item = self._small.get(name)
        return {} if item is None else await self._count(item, _of_address(address))

    async def close(self) -> None:
        """Close the connections to the shared store."""
        if self._store is not None:
            await self._store.bridge.storage.aclose()  # type: ignore[attr-defined]

    async def _count(self, item: RateLimitItem, name: str) -> dict[str, str]:
        if self._shared is not None and time.monotonic() >= self._away_until:
            try:
                return await _hit(self._shared, item, name)
            except StorageError as problem:
                self._away_until = time.monotonic() + AWAY_SECONDS
                log.error("the store of rate limits is away", extra={"reason": type(problem.storage_error).__name__})
        return await _hit(self._own, item, name)


def _store(store: str) -> Storage | None:
    if store == "memory":
        return None
    # The library's own choice for Redis is a client that we do not have; the one of Valkey speaks to both.
    given = {} if store.startswith("valkey") else {"implementation": "valkey"}
    storage = storage_from_string(
        f"async+{store}", wrap_exceptions=True, socket_timeout=STORE_SECONDS, socket_connect_timeout=STORE_SECONDS,
        **given,
    )  # fmt: skip
    assert isinstance(storage, Storage)  # noqa: S101 - the scheme says so
    return storage


def _item(amount: int, window: int) -> RateLimitItem | None:
    return RateLimitItemPerSecond(amount, window) if amount else None


async def _hit(limiter: FixedWindowRateLimiter, item: RateLimitItem, name: str) -> dict[str, str]:
    within = await limiter.hit(item, name)
    stats = await limiter.get_window_stats(item, name)
    reset = max(1, math.ceil(stats.reset_time - time.time()))  # noqa: TID251 - the library counts in this clock
    headers = {
        "RateLimit-Limit": str(item.amount),
        "RateLimit-Remaining": str(stats.remaining),
        "RateLimit-Reset": str(reset),
    }
    if not within:
        # The legacy spellings only where they are needed: each header costs as much as a small query.
        raise RateLimited(retry_after=reset, headers=headers | {f"X-{name}": text for name, text in headers.items()})
    return headers


def _name_of(caller: Caller | None, address: str) -> str:
    if isinstance(caller, AgentCaller):
        return _name("agent", caller.tenant, caller.agent)
    if isinstance(caller, TenantCaller):
        return _name("tenant", caller.tenant, caller.principal)
    if isinstance(caller, PlatformCaller):
        return _name("platform", caller.key_prefix)
    return _of_address(address)


def _of_address(address: str) -> str:
    return _name("address", counted_as(address))


def _name(*parts: str) -> str:
    # No id has a space, while most may have a colon: so two clients never have one name.
    return " ".join(parts)

"""The global limit per client with its headers, and the smaller ones of routes that anybody may call."""

import math
import time

from limits import RateLimitItemPerMinute, RateLimitItemPerSecond
from limits.aio.storage import Storage
from limits.aio.strategies import FixedWindowRateLimiter
from limits.errors import StorageError
from limits.limits import RateLimitItem
from limits.storage import storage_from_string

from api.http.addresses import counted_as
from api.http.envelope import full, limit_headers
from api.settings import Limit, Settings
from custody.kit.cache import Cache
from custody.kit.callers import AgentCaller, Caller, PlatformCaller, TenantCaller
from custody.kit.errors import TooMany
from custody.kit.logs import logger
from custody.kit.windows import Windows

log = logger("api")
# How long a store that did not answer is not asked again, and how long it has to answer.
AWAY_SECONDS = 2.0
STORE_SECONDS = 0.5
# So many credentials are remembered as good, and as many as over their limit.
MAX_REMEMBERED = 20_000


class RateLimited(TooMany):
    """Too many requests; wait, then retry."""


class RateLimit:
    """Counts requests per credential, or per address where there is none.

    While the shared store is away every process counts for itself, so that there is always a limit.
    """

    def __init__(self, settings: Settings) -> None:
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
        seconds = {"known": window, "anonymous": window, "failed": window} | dict.fromkeys(self._small, 60)
        self._own = {kind: Windows(lasts) for kind, lasts in seconds.items()}
        self._good: Cache[bytes, bool] = Cache(MAX_REMEMBERED)
        self._spent: Cache[bytes, tuple[float, int]] = Cache(MAX_REMEMBERED)

    def refuse_unread(self, credential: bytes | None, address: str) -> None:
        """Raise RateLimited before a credential is looked up, where the answer is known: a look-up costs a query.

        It is known of a credential that is over its limit. And from an address that showed so many wrong ones that it
        is over the limit of strangers, only credentials are looked up that were good before.
        """
        if credential is None:
            return
        now = time.monotonic()
        if (spent := self._spent.get(credential)) is not None and spent[0] > now:
            raise _refuse(spent[1], spent[0] - now)
        if self._anonymous is not None and credential not in self._good:
            count, ends = self._own["failed"].of(_of_address(address), now)
            if count >= self._anonymous.amount:
                raise _refuse(self._anonymous.amount, ends - now)

    def looked_up(self, credential: bytes | None, address: str, *, good: bool) -> None:
        """Remember what became of a credential."""
        if credential is None:
            return
        if not good:
            self._good.drop(credential)
            self._own["failed"].hit(_of_address(address), time.monotonic())
            return
        self._good.put(credential, True)

    async def count(self, caller: Caller | None, address: str, credential: bytes | None = None) -> dict[str, str]:
        """Count one request; gives the headers of a good answer, or raises RateLimited with those of a refusal."""
        item, kind = (self._known, "known") if caller is not None else (self._anonymous, "anonymous")
        if item is None:
            return {}
        try:
            return await self._count(kind, item, _name_of(caller, address))
        except RateLimited as refusal:
            if caller is not None and credential is not None:
                self._spent.put(credential, (time.monotonic() + refusal.retry_after, item.amount))
            raise

    async def count_small(self, name: Limit, address: str) -> dict[str, str]:
        """Count one request of a route that anybody may call."""
        item = self._small.get(name)
        return {} if item is None else await self._count(name, item, _of_address(address))

    async def close(self) -> None:
        """Close the connections to the shared store."""
        if self._store is not None:
            await self._store.bridge.storage.aclose()  # type: ignore[attr-defined]

    async def _count(self, kind: str, item: RateLimitItem, name: str) -> dict[str, str]:
        if self._shared is not None and time.monotonic() >= self._away_until:
            try:
                return await _hit(self._shared, item, name)
            except StorageError as problem:
                self._away_until = time.monotonic() + AWAY_SECONDS
                log.error("the store of rate limits is away", extra={"reason": type(problem.storage_error).__name__})
        now = time.monotonic()
        count, ends = self._own[kind].hit(name, now)
        if count > item.amount:
            raise _refuse(item.amount, ends - now)
        return _headers(item.amount, item.amount - count, ends - now)


def _store(store: str) -> Storage | None:
    if store == "memory":
        return None
    # The library's own choice for Redis is a client that we do not have; the one of Valkey speaks to both.
    given = {} if store.startswith("valkey") else {"implementation": "valkey"}
    storage = storage_from_string(
        f"async+{store}",
        wrap_exceptions=True,
        socket_timeout=STORE_SECONDS,
        socket_connect_timeout=STORE_SECONDS,
        **given,
    )
    assert isinstance(storage, Storage)  # noqa: S101 - the scheme says so
    return storage


def _item(amount: int, window: int) -> RateLimitItem | None:
    return RateLimitItemPerSecond(amount, window) if amount else None


async def _hit(limiter: FixedWindowRateLimiter, item: RateLimitItem, name: str) -> dict[str, str]:
    within = await limiter.hit(item, name)
    stats = await limiter.get_window_stats(item, name)
    left = stats.reset_time - time.time()  # noqa: TID251 - the library counts in this clock
    if not within:
        raise _refuse(item.amount, left)
    return _headers(item.amount, stats.remaining, left)


def _headers(amount: int, remaining: int, seconds: float) -> dict[str, str]:
    return limit_headers(amount, remaining, _whole(seconds))


def _refuse(amount: int, seconds: float) -> RateLimited:
    return RateLimited(retry_after=_whole(seconds), headers=full(amount, _whole(seconds)))


def _whole(seconds: float) -> int:
    return max(1, math.ceil(seconds))


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

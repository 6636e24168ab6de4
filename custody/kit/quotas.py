"""The limits of one tenant, and of one person: the operator's figures, and what is answered beyond them.

Defaults are such that a small team never meets them; they are there so that nobody fills the disk of all.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from custody.kit import clock
from custody.kit.errors import DailyQuotaExceeded, QuotaExceeded

HIGHEST: Final = 2**53
Figure = Annotated[int, Meta(ge=0, le=HIGHEST)]


class Quotas(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of one tenant; 0: as much as it likes. The names are those of the variables, in lower case."""

    # Ten times what a large team has; an agent with its keys and its row of the audit log takes 3 KiB.
    agents: Figure = 1_000
    # 128 agents with the largest set there is, or 1,000 with 8 KiB each.
    policy_bytes: Figure = 8 * 2**20
    # As long as their agents: a thousand a day for 13 years.
    orders: Figure = 5_000_000
    # From one midnight (UTC) to the next, refused ones too: one every other second, day and night.
    orders_per_day: Figure = 50_000
    # Of orders, rule sets and new agents.
    bytes_per_day: Figure = 256 * 2**20
    secrets: Figure = 1_000
    credential_routes: Figure = 1_000
    webhooks: Figure = 50
    members: Figure = 200
    # Of one api process.
    event_streams: Figure = 20


class People(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one person; 0: as much as they like."""

    # Beside their personal one: signing up is free, and what a tenant keeps is kept for good.
    tenants_per_person: Figure = 20
    # Of one api process: in all tenants that they made together, and of those that they opened themselves.
    event_streams_per_person: Figure = 40


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of this deployment: everybody's, those of tenants with some of their own, and each person's."""

    everybody: Quotas = Quotas()
    people: People = People()
    apart: Mapping[str, Quotas] = {}

    def of(self, tenant: str) -> Quotas:
        """Find the quotas of this tenant."""
        return self.apart.get(tenant, self.everybody)


_WORDS: Final = {
    "agents": ("agents", "delete one that is not used"),
    "policy_bytes": ("bytes of policies, of all its agents together", "make their lists shorter"),
    "orders": ("orders", "delete agents that are not used, with theirs"),
    "orders_per_day": ("orders a day", "retry after midnight UTC"),
    "bytes_per_day": ("bytes a day", "retry after midnight UTC"),
    "secrets": ("secrets", "delete one that is not used"),
    "credential_routes": ("credential routes", "delete one that is not used"),
    "webhooks": ("webhooks", "delete one that is not used"),
    "members": ("members", "remove one"),
    "event_streams": ("open streams of events", "close one"),
    "tenants_per_person": ("tenants made by one person", "have one deleted"),
    "event_streams_per_person": ("open streams of events for one person", "close one"),
}
# Those whose use the database knows; streams are a process' own.
STORED: Final = tuple(name for name in Quotas.__struct_fields__ if name != "event_streams")
_DAILY: Final = frozenset({"orders_per_day", "bytes_per_day"})
_MOMENTARY: Final = frozenset({"event_streams", "event_streams_per_person"})
_STREAM_SECONDS = 5


def excess(name: str, used: int, limit: int) -> QuotaExceeded | DailyQuotaExceeded:
    """The refusal, with what there is already, what there may be, and what cures it."""
    what, cure = _WORDS[name]
    whose = "of a person" if name.endswith("per_person") else "of this tenant"
    message = f"The quota {whose} is {limit:,} {what}, and {used:,} are there; {cure}, or ask the operator for more."
    context: dict[str, Any] = {"quota": camel(name), "used": used, "limit": limit}
    if name in _DAILY:
        return DailyQuotaExceeded(message, retry_after=_until_midnight(), **context)
    if name in _MOMENTARY:
        return DailyQuotaExceeded(message, retry_after=_STREAM_SECONDS, **context)
    return QuotaExceeded(message, **context)


def check(name: str, used: int, limit: int, wanted: int = 1) -> None:
    """Raise unless so many more fit."""
    if limit and used + wanted > limit:
        raise excess(name, used, limit)


def camel(name: str) -> str:
    """A quota's name as answers have it."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def today() -> dt.date:
    """The day that is counted: UTC's."""
    return clock.now().date()


def _until_midnight() -> int:
    now = clock.now()
    tomorrow = dt.datetime.combine(now.date() + dt.timedelta(days=1), dt.time(), now.tzinfo)
    return max(1, int((tomorrow - now).total_seconds()))

"""The use of a tenant's quotas, beside their limits. docs/limits.md."""

import datetime as dt
from typing import Annotated, Any

import msgspec

from api.areas.tenants import store
from custody.kit import clock
from custody.kit.described import Instant, described
from custody.kit.quotas import Quotas
from custody.ports import Ports


class Quota(msgspec.Struct, frozen=True):
    """One quota; `limit` is null if there is none."""

    used: Annotated[int, described("Amount used.")]
    limit: Annotated[int | None, described("Limit of the amount; null if there is none.")]


class QuotaUsage(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Every quota of a tenant. Daily quotas reset at midnight UTC; streams are counted per process."""

    agents: Annotated[Quota, described("Agents.")]
    policy_bytes: Annotated[Quota, described("Bytes of all policies.")]
    orders: Annotated[Quota, described("Orders that are kept.")]
    orders_per_day: Annotated[Quota, described("Orders of today.")]
    bytes_per_day: Annotated[Quota, described("Bytes written today.")]
    secrets: Annotated[Quota, described("Secrets.")]
    credential_routes: Annotated[Quota, described("Credential routes.")]
    webhooks: Annotated[Quota, described("Webhook endpoints.")]
    members: Annotated[Quota, described("Members.")]
    event_streams: Annotated[Quota, described("Streams of events open in this process.")]


class Usage(msgspec.Struct, frozen=True, rename="camel"):
    """A tenant's quotas; `resetsAt` is when the daily ones reset."""

    tenant_id: Annotated[str, described("The tenant.")]
    resets_at: Annotated[Instant, described("Time when the daily quotas reset.")]
    quotas: Annotated[QuotaUsage, described("Every quota.")]


async def usage(ports: Ports, tenant: str) -> Usage:
    """Report each quota and its use; TenantAbsent if there is no such tenant."""
    row = await store.usage(ports.pool, tenant)
    used = {**row, "event_streams": ports.notifier.waiting(tenant)}
    tomorrow = dt.datetime.combine(row["day"] + dt.timedelta(days=1), dt.time(), dt.UTC)
    return Usage(tenant, clock.iso(tomorrow), QuotaUsage(**quotas(used, ports.quotas.of(tenant))))


def quotas(used: dict[str, Any], allowed: Quotas) -> dict[str, Quota]:
    """Figures beside their limits, by the names of the quotas."""
    return {name: Quota(int(used[name]), getattr(allowed, name) or None) for name in Quotas.__struct_fields__}

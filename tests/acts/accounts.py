"""Acts on accounts, each at two places."""

from typing import TYPE_CHECKING, Any

from tests.acts.act import ADMINS, SIDE, TEAM, Act, Journey
from tests.routes.accounts.makers import open_account

if TYPE_CHECKING:
    from tests.table.world import World


def _account(world: "World", body: Any = None) -> Journey:
    """An account of its own; a tenant has many, but not any number."""
    for account in world.tenant.ok("GET", "/accounts?offset=50")["accounts"]:
        world.tenant.ok("DELETE", f"/accounts/{account['id']}")
    return Journey(world.tenant, {"account_id": open_account(world.tenant, world.agent)["id"]}, body)


def _aggregation(world: "World", body: Any = None) -> Journey:
    journey = _account(world)
    path = f"/accounts/{journey.path['account_id']}/aggregations"
    made = world.tenant.ok("POST", path, {"displayName": "A quarter"})
    return Journey(world.tenant, {**journey.path, "aggregation_id": made["id"]}, body)


def _both(method: str, path: str = "") -> tuple[str, ...]:
    return tuple(f"{method} {at}/accounts{path}" for at in ("", "/v1"))


ACTS = (
    Act(_both("GET"), SIDE, TEAM),
    Act(
        _both("POST"),
        SIDE,
        ADMINS,
        "tenantAdmin",
        journey=lambda world: Journey(world.tenant, body={"wallet_ids": [world.agent.id]}),
    ),
    Act(_both("GET", "/{accountId}"), SIDE, TEAM, journey=_account),
    Act(
        _both("PATCH", "/{accountId}"),
        SIDE,
        ADMINS,
        "tenantAdmin",
        journey=lambda world: _account(world, {"displayName": "Called otherwise"}),
    ),
    Act(_both("DELETE", "/{accountId}"), SIDE, ADMINS, "tenantAdmin", journey=_account),
    Act(_both("GET", "/{accountId}/balance"), SIDE, TEAM, journey=_account),
    Act(_both("GET", "/{accountId}/aggregations"), SIDE, TEAM, journey=_account),
    Act(
        _both("POST", "/{accountId}/aggregations"),
        SIDE,
        ADMINS,
        "tenantAdmin",
        journey=lambda world: _account(world, {"displayName": "A quarter"}),
    ),
    Act(_both("GET", "/{accountId}/aggregations/{aggregationId}"), SIDE, TEAM, journey=_aggregation),
    Act(
        _both("PATCH", "/{accountId}/aggregations/{aggregationId}"),
        SIDE,
        ADMINS,
        "tenantAdmin",
        journey=lambda world: _aggregation(world, {"refresh": True}),
    ),
    Act(
        _both("DELETE", "/{accountId}/aggregations/{aggregationId}"), SIDE, ADMINS, "tenantAdmin", journey=_aggregation
    ),
)

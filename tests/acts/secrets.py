"""Acts on secrets, credential routes and payment routes."""

from typing import TYPE_CHECKING

from tests.acts.act import ABSENT, AGENT, BUILDERS, PUBLIC, SIDE, SIDE_OR_AGENT, TEAM, Act, Journey
from tests.fixtures.callers import fresh
from tests.routes.secrets.makers import keep_secret, payment_fields, preset_fields, route_fields

if TYPE_CHECKING:
    from tests.table.world import World


def _preset(world: "World") -> Journey:
    presets = [preset_fields("act")]
    world.tenant.ok("PUT", f"/tenants/{world.tenant.id}/config", {"secretRoutePresets": presets})
    return Journey(world.tenant, body={"presetId": "act", "secretId": keep_secret(world.tenant)["id"]})


ACTS = (
    Act(
        "POST /secrets",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="CreateSecret",
        nothing={"name": "x", "value": "x", "expires_at": "2000-01-01T00:00:00Z"},
        body=lambda world: {"name": fresh(), "value": "a value"},
    ),
    Act("GET /secrets", SIDE, TEAM),
    Act("GET /secrets/{id}", SIDE, TEAM),
    Act(
        "PUT /secrets/{id}",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="RotateSecret",
        nothing={"secret": ABSENT, "value": "x", "rotate": True},
        body=lambda world: {"value": "the next value"},
    ),
    Act("DELETE /secrets/{id}", SIDE, BUILDERS, "tenantAdmin", command="DeleteSecret", nothing={"secret": ABSENT}),
    Act(
        "POST /secrets/{id}/rotate",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="RotateSecret",
        body=lambda world: {"value": "the next value"},
    ),
    Act(
        "POST /secrets/routes",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="CreateCredentialRoute",
        nothing={
            "secret": ABSENT,
            "fields": {"hostPattern": "api.example.com", "injectAs": "header", "injectKey": "X-Key"},
        },
        body=lambda world: route_fields(keep_secret(world.tenant)),
    ),
    Act("GET /secrets/routes", SIDE, TEAM),
    Act("GET /agents/{agentId}/apis", SIDE_OR_AGENT, TEAM),
    Act(
        "PUT /secrets/routes/{id}",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="ChangeCredentialRoute",
        nothing={"route": ABSENT, "changes": {}},
        body=lambda world: {"priority": 5},
    ),
    Act(
        "DELETE /secrets/routes/{id}",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="DeleteCredentialRoute",
        nothing={"route": ABSENT},
    ),
    Act(
        "POST /secrets/routes/explain",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        body=lambda world: {
            "agentId": world.agent.id,
            "method": "GET",
            "url": "https://api.example.com/v1",
        },
        unaudited="a question: nothing is sent and nothing is written",
    ),
    Act(
        "POST /secrets/routes/preset",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="CreateCredentialRoute",
        journey=_preset,
    ),
    Act("GET /secrets/routes/{id}", SIDE, TEAM),
    Act(
        "POST /payment-routes",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="CreatePaymentRoute",
        nothing={"fields": {"hostPattern": "api.example.com", "maxPerCall": {"nothing": "1"}}},
        body=lambda world: payment_fields(),
    ),
    Act("GET /payment-routes", SIDE, TEAM),
    Act("GET /payment-routes/{id}", SIDE, TEAM),
    Act(
        "PUT /payment-routes/{id}",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="ChangePaymentRoute",
        nothing={"route": ABSENT, "changes": {}},
        body=lambda world: {"priority": 5},
    ),
    Act(
        "DELETE /payment-routes/{id}",
        SIDE,
        BUILDERS,
        "tenantAdmin",
        command="DeletePaymentRoute",
        nothing={"route": ABSENT},
    ),
    Act((), AGENT, command="BeginRefresh", nothing={"route": ABSENT}, senders="proxy"),
    Act(
        (),
        PUBLIC,
        command="EndRefresh",
        nothing={"tenant": "t", "secret": ABSENT, "lease": ABSENT},
        senders="proxy",
    ),
    Act(
        (),
        AGENT,
        command="PayForRoute",
        nothing={
            "route": ABSENT,
            "tx_id": ABSENT,
            "demand": b"{}",
            "request": {"method": "GET", "host": "api.example.com", "path": "/", "body_hash": "0" * 64},
        },
        senders="proxy",
    ),
    Act((), AGENT, command="RevealForRoute", nothing={"route": ABSENT}, senders="proxy"),
    Act((), AGENT, command="ChargeCall", nothing={"route": ABSENT, "call": ABSENT}, senders="proxy"),
    Act((), PUBLIC, command="EndCharge", nothing={"tenant": "t", "call": ABSENT, "counts": {}}, senders="proxy"),
)

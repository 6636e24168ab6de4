"""Secrets, credential routes and payment routes with good defaults."""

import itertools
from typing import Any

from tests.fixtures.callers import Tenant

HOST = "api.example.com"
TOKEN = f"evm:1:0x{'0a' * 20}"
PAYEE = f"0x{'0b' * 20}"
_numbers = itertools.count(1)


def keep_secret(tenant: Tenant, value: str = "a secret value", **fields: Any) -> dict[str, Any]:
    """Make a secret under a name of its own."""
    made: dict[str, Any] = tenant.ok("POST", "/secrets", {"name": f"secret-{next(_numbers)}", "value": value, **fields})
    return made


def route_fields(secret: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """The body of a route for a secret: a bearer token for one host, unless changed."""
    return {
        "secretId": secret["id"],
        "hostPattern": HOST,
        "injectAs": "header",
        "injectKey": "Authorization",
        "injectFormat": "Bearer {value}",
        **changed,
    }


def keep_route(tenant: Tenant, secret: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    """Make a credential route, for a fresh secret unless one is given."""
    made: dict[str, Any] = tenant.ok("POST", "/secrets/routes", route_fields(secret or keep_secret(tenant), **changed))
    return made


def preset_fields(preset_id: str = "api", **changed: Any) -> dict[str, Any]:
    """A preset of routes: a bearer token for one host that the tenant brings itself, unless changed."""
    return {
        "id": preset_id,
        "name": "The API",
        "hostPattern": HOST,
        "pathPattern": "/v1/*",
        "injectAs": "header",
        "injectKey": "Authorization",
        "injectFormat": "Bearer {value}",
        "provisioning": "user",
        **changed,
    }


def payment_fields(**changed: Any) -> dict[str, Any]:
    """The body of a payment route: a dollar of one token a call at one host, unless changed."""
    return {"hostPattern": HOST, "maxPerCall": {TOKEN: "1000000"}, "payTo": [PAYEE], **changed}


def keep_payment_route(tenant: Tenant, **changed: Any) -> dict[str, Any]:
    """Make a payment route."""
    made: dict[str, Any] = tenant.ok("POST", "/payment-routes", payment_fields(**changed))
    return made

"""Secrets and credential routes with good defaults."""

import itertools
from typing import Any

from tests.fixtures.callers import Tenant

HOST = "api.example.com"
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

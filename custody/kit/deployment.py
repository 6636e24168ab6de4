"""The operator's settings for every tenant, as far as tenants may know them."""

from typing import Literal

import msgspec


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """The switches of this deployment; the defaults are those of the variables."""

    public_url: str = "http://localhost:3200"
    require_request_expiry: bool = False
    require_auth_signature: bool = False
    empty_policy: Literal["allow", "deny"] = "allow"
    allow_broad_routes: bool = False
    scoped_platform_keys: bool = True

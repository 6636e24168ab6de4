"""The settings that the api reads from its environment, once."""

import os
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Literal

import msgspec

from custody.chains import chains_file, node_shares, prices
from custody.chains.table import ChainTable
from custody.identity.oidc_provider import SECRET_PREFIX
from custody.kit import (
    environment,
    metrics_address,
    name_server,
    networks,
    oauth_endpoints,
    quota_settings,
    quotas,
    server_urls,
)
from custody.kit.oauth_endpoints import OAuthName
from custody.tenants import presets

# Routes that anybody may call have a smaller limit of their own, for each address.
Limit = Literal[
    "nonce",
    "verify",
    "codes",
    "refresh",
    "device_code",
    "device_token",
    "discover",
    "sso",
    "callback",
    "exchange",
    "invitations",
]
SMALL_LIMITS: dict[Limit, int] = {
    "nonce": 30,
    "verify": 10,
    "codes": 5,
    "refresh": 60,
    "device_code": 20,
    "device_token": 60,
    "invitations": 10,
    "discover": 30,
    "sso": 20,
    "callback": 30,
    "exchange": 30,
}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The api's settings."""

    host: str
    port: int
    metrics_host: str
    metrics_port: int
    home: Path
    database_url: str
    sign_socket: Path
    identity_socket: Path
    public_url: str
    production: bool
    rate_limit_max: int
    rate_limit_anonymous_max: int
    # Questions to nodes in a minute, of one person's tenants.
    node_calls: int
    rate_limit_window_seconds: int
    rate_limit_store: str
    # Requests a minute and address, for what anybody may call.
    small_limits: dict[Limit, int]
    smtp_url: str
    sms_url: str
    # Text messages an hour, of this process; 0: no limit.
    sms_per_hour: int
    require_request_expiry: bool
    require_auth_signature: bool
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]
    pool_size: int
    # How long /ready says no before connections are refused.
    drain_seconds: int
    worker: int
    workers: int
    chains: ChainTable
    allow_broad_routes: bool
    allow_cookie_injection: bool
    empty_policy: Literal["allow", "deny"]
    scoped_platform_keys: bool
    presets: dict[str, str]
    prices: prices.Prices
    quotas: quotas.Limits
    # Our clients' secrets at Google, Discord and X, where we have an id there too.
    oauth_secrets: dict[OAuthName, str]
    # By the names of their variables.
    oidc_secrets: dict[str, str]
    # The name server for records of e-mail domains; None: the system's.
    dns_server: tuple[str, int] | None

    def __repr__(self) -> str:
        return "Settings()"


def read(source: Mapping[str, str] = os.environ) -> Settings:
    """Read and check; raises ValueError with the variable's name and what it should be."""
    home = environment.home(source)
    return Settings(
        host=environment.text(source, "SERVICE_API_HOST", "127.0.0.1"),
        port=environment.port(source, "SERVICE_API_PORT", 3200),
        metrics_host=metrics_address.host(source),
        metrics_port=environment.port(source, "SERVICE_METRICS_PORT_API", 3290),
        home=home,
        database_url=environment.url_from_home(source, "api"),
        sign_socket=environment.sign_socket(source),
        identity_socket=environment.identity_socket(source),
        public_url=environment.public_url(source),
        production=environment.choice(source, "SERVICE_ENV", ("development", "production")) == "production",
        rate_limit_max=environment.integer(source, "SERVICE_RATE_LIMIT_MAX", 30_000),
        rate_limit_anonymous_max=environment.integer(source, "SERVICE_RATE_LIMIT_ANONYMOUS_MAX", 3_000),
        node_calls=environment.integer(source, node_shares.SETTING, node_shares.QUESTIONS_A_MINUTE),
        rate_limit_window_seconds=environment.integer(source, "SERVICE_RATE_LIMIT_WINDOW_SECONDS", 60, low=1),
        rate_limit_store=server_urls.rate_limit_store(source),
        small_limits={
            name: environment.integer(source, f"SERVICE_RATE_LIMIT_{name.upper()}", default)
            for name, default in SMALL_LIMITS.items()
        },
        smtp_url=server_urls.read(source, "SERVICE_SMTP_URL", ("smtp", "smtps")),
        sms_url=server_urls.read(source, "SERVICE_SMS_URL", ("https", "http")),
        sms_per_hour=environment.integer(source, "SERVICE_SMS_MAX_PER_HOUR", 100),
        require_request_expiry=environment.flag(source, "SERVICE_REQUIRE_REQUEST_EXPIRY", default=False),
        require_auth_signature=environment.flag(source, "SERVICE_REQUIRE_AUTH_SIGNATURE", default=False),
        trusted_proxies=tuple(networks.read(source, "SERVICE_TRUSTED_PROXIES")),
        pool_size=environment.integer(source, "SERVICE_API_CONNECTIONS", 8, low=1, high=64),
        drain_seconds=environment.integer(source, "SERVICE_API_DRAIN_SECONDS", 0, high=60),
        workers=environment.integer(source, "SERVICE_API_WORKERS", 1, low=1, high=64),
        worker=environment.integer(source, "SERVICE_API_WORKER", 0),
        chains=chains_file.load(source),
        allow_broad_routes=environment.flag(source, "SERVICE_ALLOW_BROAD_SECRET_ROUTES", default=False),
        allow_cookie_injection=environment.flag(source, "SERVICE_ALLOW_COOKIE_INJECTION", default=False),
        empty_policy=(
            "deny" if environment.choice(source, "SERVICE_EMPTY_POLICY", ("allow", "deny")) == "deny" else "allow"
        ),
        scoped_platform_keys=environment.flag(source, "SERVICE_SCOPED_PLATFORM_KEYS", default=True),
        presets=presets.load(source),
        prices=prices.load(source),
        quotas=quota_settings.load(source),
        oauth_secrets=_oauth_secrets(source),
        oidc_secrets=_oidc_secrets(source),
        dns_server=name_server.load(source),
    )


def _oauth_secrets(source: Mapping[str, str]) -> dict[OAuthName, str]:
    """Of the providers for which both variables are set."""
    ids = oauth_endpoints.client_ids(source)
    return {name: secret for name, secret in oauth_endpoints.client_secrets(source).items() if name in ids}


def _oidc_secrets(source: Mapping[str, str]) -> dict[str, str]:
    """Of our clients at tenants' providers; which of them a tenant may name is decided where one is used."""
    found = {name: value.strip() for name, value in source.items() if name.startswith(SECRET_PREFIX)}
    return {name: value for name, value in found.items() if value}

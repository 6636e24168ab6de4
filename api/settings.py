"""What the api reads from its environment, once. Decisions 2."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from custody.chains import table
from custody.kit import environment


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The api's settings."""

    host: str
    port: int
    metrics_port: int
    home: Path
    database_url: str
    sign_socket: Path
    public_url: str
    production: bool
    rate_limit_max: int
    rate_limit_anonymous_max: int
    rate_limit_window_seconds: int
    rate_limit_store: str
    trusted_proxies: tuple[str, ...]
    pool_size: int
    worker: int
    workers: int
    chains: table.ChainTable
    allow_broad_routes: bool
    allow_cookie_injection: bool


def read(source: Mapping[str, str] = os.environ) -> Settings:
    """Read and check; raises ValueError with the variable's name and what it should be."""
    home = environment.home(source)
    return Settings(
        host=environment.text(source, "SERVICE_API_HOST", "127.0.0.1"),
        port=environment.port(source, "SERVICE_API_PORT", 3200),
        metrics_port=environment.port(source, "SERVICE_METRICS_PORT_API", 3290),
        home=home,
        database_url=environment.url_from_home(source, "api"),
        sign_socket=environment.sign_socket(source),
        public_url=environment.public_url(source),
        production=environment.choice(source, "SERVICE_ENV", ("development", "production")) == "production",
        rate_limit_max=environment.integer(source, "SERVICE_RATE_LIMIT_MAX", 30_000),
        rate_limit_anonymous_max=environment.integer(source, "SERVICE_RATE_LIMIT_ANONYMOUS_MAX", 3_000),
        rate_limit_window_seconds=environment.integer(source, "SERVICE_RATE_LIMIT_WINDOW_SECONDS", 60, low=1),
        rate_limit_store=environment.choice(source, "SERVICE_RATE_LIMIT_STORE", ("memory",)),
        trusted_proxies=tuple(
            filter(None, (part.strip() for part in source.get("SERVICE_TRUSTED_PROXIES", "").split(",")))
        ),
        pool_size=environment.integer(source, "SERVICE_API_CONNECTIONS", 8, low=1, high=64),
        workers=environment.integer(source, "SERVICE_API_WORKERS", 1, low=1, high=64),
        worker=environment.integer(source, "SERVICE_API_WORKER", 0),
        chains=table.load(source),
        allow_broad_routes=environment.flag(source, "SERVICE_ALLOW_BROAD_SECRET_ROUTES", default=False),
        allow_cookie_injection=environment.flag(source, "SERVICE_ALLOW_COOKIE_INJECTION", default=False),
    )

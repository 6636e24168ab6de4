"""The settings that the scheduler reads from its environment, once."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from custody.chains import chains_file
from custody.chains.table import ChainTable
from custody.kit import environment, metrics_address, name_server, price_url, server_urls


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler's settings."""

    database_url: str
    sign_socket: Path
    identity_socket: Path
    metrics_host: str
    metrics_port: int
    chains: ChainTable
    public_url: str
    webhook_extra_ca_file: Path | None
    # The name server for records of e-mail domains; None: the system's.
    dns_server: tuple[str, int] | None
    # Of the server that mails what waits; empty: no mail.
    smtp_url: str
    production: bool
    # Of the endpoint that issues prices.
    prices_url: str | None

    def __repr__(self) -> str:
        return "Settings()"


def read(source: Mapping[str, str] = os.environ) -> Settings:
    """Read and check; raises ValueError with the variable's name and what it should be."""
    extra = environment.text(source, "SERVICE_WEBHOOK_EXTRA_CA_FILE", "")
    return Settings(
        database_url=environment.url_from_home(source, "scheduler"),
        sign_socket=environment.sign_socket(source),
        identity_socket=environment.identity_socket(source),
        metrics_host=metrics_address.host(source),
        metrics_port=environment.port(source, "SERVICE_METRICS_PORT_SCHEDULER", 3292),
        chains=chains_file.load(source),
        public_url=environment.public_url(source),
        webhook_extra_ca_file=environment.path(source, "SERVICE_WEBHOOK_EXTRA_CA_FILE", "") if extra else None,
        dns_server=name_server.load(source),
        smtp_url=server_urls.read(source, "SERVICE_SMTP_URL", ("smtp", "smtps")),
        production=environment.choice(source, "SERVICE_ENV", ("development", "production")) == "production",
        prices_url=price_url.load(source),
    )

"""The settings that the proxy reads from its environment, once."""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from custody.credentials import private_hosts
from custody.credentials.aliases import parse_aliases
from custody.credentials.private_hosts import PrivateHosts
from custody.kit import environment, metrics_address

ALIASES = "openai=api.openai.com,anthropic=api.anthropic.com,github=api.github.com"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The proxy's settings. Times in seconds, sizes in bytes."""

    home: Path
    database_url: str
    reveal_socket: Path
    host: str
    port: int
    worker: int
    metrics_host: str
    metrics_port: int
    # Scheme, host and port by which agents reach the gateway, or nothing: then each request says so itself.
    public_url: str
    aliases: dict[str, str]
    private_hosts: PrivateHosts
    extra_ca_file: Path | None
    ca_file: Path
    ca_key_file: Path
    max_body_bytes: int
    connect_seconds: float
    header_seconds: float
    idle_seconds: float
    drain_seconds: float
    rate_limit_max: int
    rate_limit_window_seconds: int

    def __repr__(self) -> str:
        return "Settings()"


def read(source: Mapping[str, str] = os.environ) -> Settings:
    """Read and check; raises ValueError with the variable's name and what it should be."""
    home = environment.home(source)
    extra = source.get("SERVICE_PROXY_EXTRA_CA_FILE", "").strip()
    return Settings(
        home=home,
        database_url=environment.url_from_home(source, "proxy"),
        reveal_socket=environment.reveal_socket(source),
        host=source.get("SERVICE_PROXY_HOST", "").strip() or "127.0.0.1",
        port=environment.port(source, "SERVICE_PROXY_PORT", 8080),
        worker=environment.integer(source, "SERVICE_PROXY_WORKER", 0, low=0, high=1023),
        metrics_host=metrics_address.host(source),
        metrics_port=environment.port(source, "SERVICE_METRICS_PORT_PROXY", 3291),
        public_url=_public_url(source),
        aliases=_aliases(ALIASES) | _aliases(source.get("SERVICE_PROXY_ALIASES", "")),
        private_hosts=private_hosts.read(source),
        extra_ca_file=environment.path(source, "SERVICE_PROXY_EXTRA_CA_FILE", "") if extra else None,
        ca_file=environment.path(source, "SERVICE_PROXY_CA_FILE", home / "proxy-ca.pem"),
        ca_key_file=environment.path(source, "SERVICE_PROXY_CA_KEY_FILE", home / "proxy-ca.key"),
        max_body_bytes=environment.integer(source, "SERVICE_PROXY_MAX_BODY_BYTES", 536_870_912, low=0, high=2**40),
        connect_seconds=environment.integer(source, "SERVICE_PROXY_CONNECT_SECONDS", 10, low=1, high=3600),
        header_seconds=environment.integer(source, "SERVICE_PROXY_HEADER_SECONDS", 600, low=1, high=86_400),
        idle_seconds=environment.integer(source, "SERVICE_PROXY_IDLE_SECONDS", 600, low=1, high=86_400),
        drain_seconds=environment.integer(source, "SERVICE_PROXY_DRAIN_SECONDS", 0, high=60),
        rate_limit_max=environment.integer(source, "SERVICE_RATE_LIMIT_MAX", 30_000, low=0, high=10**9),
        rate_limit_window_seconds=environment.integer(source, "SERVICE_RATE_LIMIT_WINDOW_SECONDS", 60, low=1),
    )


def _public_url(source: Mapping[str, str]) -> str:
    name = "SERVICE_PROXY_PUBLIC_URL"
    if not source.get(name, "").strip():
        return ""
    found = environment.url(source, name, "")
    if urlsplit(found).path:
        raise environment.BadSetting(name, "must have no path: aliases and /proxy are at the root of the gateway")
    return found


def _aliases(text: str) -> dict[str, str]:
    try:
        return parse_aliases(text)
    except ValueError as problem:
        raise environment.BadSetting("SERVICE_PROXY_ALIASES", str(problem)) from None

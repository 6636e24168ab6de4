"""The settings that the operator's command reads from the environment."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from custody.kit import environment as read
from custody.kit import metrics_address
from ops import checkout, connections, database_addresses, first_look, places

# In the order in which they start.
PROCESSES = ("signer", "identity", "api", "scheduler", "proxy")
# What Python starts for each of them.
MODULES = {process: process for process in PROCESSES} | {"proxy": "proxy_addon"}


class Settings(msgspec.Struct, frozen=True):
    """The places of things; read once, when the command starts."""

    production: bool
    home: Path
    uid_base: int
    database_url: str | None
    api_host: str
    api_port: int
    api_workers: int
    proxy_host: str
    proxy_port: int
    proxy_workers: int
    proxy_ca_file: Path
    proxy_ca_key_file: Path
    master_key_file: Path
    platform_key_file: Path
    identity_key_file: Path
    # The whole environment: children get from it what `children.environment_for` lets through, no more.
    environment: dict[str, str]

    def __repr__(self) -> str:
        return "Settings()"

    @property
    def metrics_ports(self) -> tuple[tuple[str, str, int], ...]:
        """Variable, host and port of each listener for metrics."""
        found = (
            ("SERVICE_METRICS_PORT_API", 3290),
            ("SERVICE_METRICS_PORT_PROXY", 3291),
            ("SERVICE_METRICS_PORT_SCHEDULER", 3292),
        )
        host = metrics_address.host(self.environment)
        return tuple((name, host, read.port(self.environment, name, default)) for name, default in found)

    @property
    def given_database_urls(self) -> dict[str, str]:
        """The database addresses that the operator set for single processes."""
        named = {process: f"SERVICE_DATABASE_URL_{process.upper()}" for process in PROCESSES}
        return {process: url for process, name in named.items() if (url := self.environment.get(name, "").strip())}

    @property
    def connection_limits(self) -> dict[str, int]:
        """The number of database connections that the role of each process may hold."""
        return connections.limits(self.environment)

    @property
    def api_url(self) -> str:
        """The api's address on this machine."""
        return metrics_address.local_url(self.api_host, self.api_port)

    @property
    def proxy_url(self) -> str:
        """The proxy's address on this machine."""
        return metrics_address.local_url(self.proxy_host, self.proxy_port)

    @property
    def how_to_start(self) -> str:
        """The command that starts everything, for the words of cures."""
        return "`custody up`, as root" if self.production else checkout.START

    @property
    def workers(self) -> dict[str, int]:
        """The number of processes that share the port, for those that can be several."""
        return {"api": self.api_workers, "proxy": self.proxy_workers}


def _addresses(environment: Mapping[str, str]) -> dict[str, str]:
    names = ("SERVICE_DATABASE_URL", *(f"SERVICE_DATABASE_URL_{process.upper()}" for process in PROCESSES))
    found = {}
    for name in names:
        if value := environment.get(name, "").strip():
            # A wrong one is told by the check of the variables, and by who uses it.
            with contextlib.suppress(read.BadSetting):
                found[name] = database_addresses.readable(name, value, environment)
    return found


def load(environment: Mapping[str, str]) -> Settings:
    """Read the operator's settings; a bad one raises BadSetting with the variable's name."""
    home = read.home(environment)
    environment = {**environment, **_addresses(environment), **first_look.following(environment)}
    return Settings(
        production=read.choice(environment, "SERVICE_ENV", ("development", "production")) == "production",
        home=home,
        uid_base=places.uid_base(environment),
        database_url=environment.get("SERVICE_DATABASE_URL", "").strip() or None,
        api_host=read.text(environment, "SERVICE_API_HOST", "127.0.0.1"),
        api_port=read.port(environment, "SERVICE_API_PORT", 3200),
        api_workers=read.integer(environment, "SERVICE_API_WORKERS", 1, low=1, high=64),
        proxy_host=read.text(environment, "SERVICE_PROXY_HOST", "127.0.0.1"),
        proxy_port=read.port(environment, "SERVICE_PROXY_PORT", 8080),
        proxy_workers=read.integer(environment, "SERVICE_PROXY_WORKERS", 1, low=1, high=64),
        proxy_ca_file=read.path(environment, "SERVICE_PROXY_CA_FILE", home / "proxy-ca.pem"),
        proxy_ca_key_file=read.path(environment, "SERVICE_PROXY_CA_KEY_FILE", home / "proxy-ca.key"),
        master_key_file=read.path(environment, "SERVICE_MASTER_KEY_FILE", home / "master.key"),
        platform_key_file=read.path(environment, "SERVICE_PLATFORM_KEY_FILE", home / "platform.key"),
        identity_key_file=read.identity_key_file(environment),
        environment=dict(environment),
    )

"""What the operator's command reads from the environment. Decisions 2."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from custody.kit import environment as read

PROCESSES = ("signer", "api", "scheduler", "proxy")


class Settings(msgspec.Struct, frozen=True):
    """Where things are; read once, when the command starts."""

    production: bool
    home: Path
    database_url: str | None
    api_host: str
    api_port: int
    api_workers: int
    master_key_file: Path
    platform_key_file: Path
    # The whole environment: children get from it what `children.environment_for` lets through, no more.
    environment: dict[str, str]

    @property
    def metrics_ports(self) -> tuple[tuple[str, str, int], ...]:
        """Variable, host and port of each listener for figures; they are on loopback only."""
        found = (("SERVICE_METRICS_PORT_API", 3290), ("SERVICE_METRICS_PORT_SCHEDULER", 3292))
        return tuple((name, "127.0.0.1", read.port(self.environment, name, default)) for name, default in found)

    @property
    def api_url(self) -> str:
        """The api's address on this machine."""
        host = "127.0.0.1" if self.api_host in {"0.0.0.0", "::"} else self.api_host  # noqa: S104 - compared, not bound
        return f"http://{f'[{host}]' if ':' in host else host}:{self.api_port}"


def load(environment: Mapping[str, str]) -> Settings:
    """Read the operator's settings; a bad one raises BadSetting with the variable's name."""
    home = read.home(environment)
    return Settings(
        production=read.choice(environment, "SERVICE_ENV", ("development", "production")) == "production",
        home=home,
        database_url=environment.get("SERVICE_DATABASE_URL", "").strip() or None,
        api_host=read.text(environment, "SERVICE_API_HOST", "127.0.0.1"),
        api_port=read.port(environment, "SERVICE_API_PORT", 3200),
        api_workers=read.integer(environment, "SERVICE_API_WORKERS", 1, low=1, high=64),
        master_key_file=read.path(environment, "SERVICE_MASTER_KEY_FILE", home / "master.key"),
        platform_key_file=read.path(environment, "SERVICE_PLATFORM_KEY_FILE", home / "platform.key"),
        environment=dict(environment),
    )

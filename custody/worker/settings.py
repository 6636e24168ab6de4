"""The settings that every worker reads from its environment, once."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from custody.chains import chains_file
from custody.chains.table import ChainTable
from custody.kit import environment, quota_settings, quotas


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that both workers have."""

    production: bool
    home: Path
    database_url: str
    issuer: str
    peer_uids: dict[str, int]
    scoped_platform_keys: bool
    quotas: quotas.Limits
    pool_size: int
    chains: ChainTable

    def __repr__(self) -> str:
        return "WorkerSettings()"


def read(source: Mapping[str, str], worker: str, *, connections: int) -> WorkerSettings:
    """Read and check; `connections` is the worker's default. Raises ValueError that names the variable."""
    return WorkerSettings(
        production=environment.choice(source, "SERVICE_ENV", ("development", "production")) == "production",
        home=environment.home(source),
        database_url=environment.url_from_home(source, worker),
        issuer=environment.public_url(source),
        peer_uids=environment.peer_uids(source),
        scoped_platform_keys=environment.flag(source, "SERVICE_SCOPED_PLATFORM_KEYS", default=True),
        quotas=quota_settings.load(source),
        pool_size=environment.integer(source, f"SERVICE_{worker.upper()}_CONNECTIONS", connections, low=2, high=64),
        chains=chains_file.load(source),
    )

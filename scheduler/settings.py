"""What the scheduler reads from its environment, once. Decisions 2."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from custody.chains import table
from custody.kit import environment


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler's settings."""

    database_url: str
    sign_socket: Path
    metrics_port: int
    chains: table.ChainTable


def read(source: Mapping[str, str] = os.environ) -> Settings:
    """Read and check; raises ValueError with the variable's name and what it should be."""
    return Settings(
        database_url=environment.url_from_home(source, "scheduler"),
        sign_socket=environment.sign_socket(source),
        metrics_port=environment.port(source, "SERVICE_METRICS_PORT_SCHEDULER", 3292),
        chains=table.load(source),
    )

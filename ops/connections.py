"""The number of database connections that each role may hold: what its processes open, and room for their successors.

Without a limit a process that was taken over can hold every connection of the server, and nothing is signed.
"""

from collections.abc import Mapping
from typing import Final

from custody.kit import environment as read

HOSTS: Final = "SERVICE_DATABASE_HOSTS"
# The pool of each process: the variable that sets it, and what it is without. Two have a fixed one.
POOLS: Final = {
    "signer": ("SERVICE_SIGNER_CONNECTIONS", 8),
    "identity": ("SERVICE_IDENTITY_CONNECTIONS", 6),
    "api": ("SERVICE_API_CONNECTIONS", 8),
    "scheduler": (None, 8),
    "proxy": (None, 3),
}
_WORKERS: Final = {"api": "SERVICE_API_WORKERS", "proxy": "SERVICE_PROXY_WORKERS"}
# One that listens, and one that looks for a pooler as a process starts.
_BESIDE: Final = 2
# `custody doctor`, and the verification of a restored database.
_OPERATOR: Final = 2
# What the embedded server has at least, and keeps for its owner.
_LEAST, _RESERVED = 100, 4


def _of_a_host(environment: Mapping[str, str], process: str) -> int:
    variable, size = POOLS[process]
    pool = read.integer(environment, variable, size, low=1, high=64) if variable else size
    workers = read.integer(environment, _WORKERS[process], 1, low=1, high=64) if process in _WORKERS else 1
    return workers * (pool + _BESIDE)


def limits(environment: Mapping[str, str]) -> dict[str, int]:
    """The limit of each process' role. Each host may start its processes again before the server let go of the old."""
    hosts = read.integer(environment, HOSTS, 1, low=1, high=64)
    return {process: (hosts + 1) * _of_a_host(environment, process) + _OPERATOR for process in POOLS}


BY_DEFAULT: Final = limits({})


def max_connections(environment: Mapping[str, str]) -> int:
    """The `max_connections` of a server on which no role can take another's."""
    return max(_LEAST, sum(limits(environment).values()) + _RESERVED)

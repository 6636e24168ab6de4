"""Addresses of the operator's servers that may carry a password, so a wrong one is never repeated."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from custody.kit.environment import BadSetting

_STORE = "SERVICE_RATE_LIMIT_STORE"
_STORES = ("redis", "rediss", "valkey", "valkeys")


def read(source: Mapping[str, str], name: str, schemes: tuple[str, ...]) -> str:
    """The address of a server; empty where there is none."""
    value = source.get(name, "").strip()
    if value and not _is_server(value, schemes):
        raise BadSetting(name, f"must look like {schemes[0]}://host")
    return value


def rate_limit_store(source: Mapping[str, str]) -> str:
    """Read where requests are counted: `memory`, or the address of a store."""
    value = source.get(_STORE, "").strip() or "memory"
    if value != "memory" and not _is_server(value, _STORES):
        raise BadSetting(_STORE, "must be memory, redis://host:6379 or valkey://host:6379")
    return value


def _is_server(value: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False

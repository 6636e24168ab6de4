"""Every variable of the environment, looked at before anything starts. Decisions 2.

Each process reads its own strictly; this table only brings a mistake to the operator's eyes at once, by its name,
instead of into the log of a process that will not start. A switch for safety that this version cannot keep stops the
start, because to ignore it silently would be a lie; any other that has no effect is named.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from custody.chains import table
from custody.kit import environment as read
from custody.kit.environment import BadSetting

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}

_Reader = Callable[[Mapping[str, str], str], Any]


def _number(low: int, high: int = 2**31 - 1) -> _Reader:
    return lambda environment, name: read.integer(environment, name, low, low=low, high=high)


def _word(*allowed: str) -> _Reader:
    return lambda environment, name: read.choice(environment, name, allowed)


def _port(environment: Mapping[str, str], name: str) -> int:
    return read.port(environment, name, 1)


def _any(environment: Mapping[str, str], name: str) -> str:
    return environment[name]


def _key_file(environment: Mapping[str, str], name: str) -> None:
    folder = read.path(environment, name, "").parent
    if not folder.is_dir():
        raise BadSetting(name, f"the folder {folder} does not exist")


def _public_url(environment: Mapping[str, str], name: str) -> None:
    """Over plain http what is sent can be read on its way; only a first look on this machine may."""
    parts = urlsplit(read.public_url(environment))
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise BadSetting(name, "must be https unless it names this machine (localhost)")


def _rate_limit_store(environment: Mapping[str, str], name: str) -> None:
    if read.text(environment, name, "memory") != "memory":
        raise BadSetting(name, "this version counts in memory only; leave it unset")


def _never(environment: Mapping[str, str], name: str) -> None:
    if read.flag(environment, name, default=False):
        raise BadSetting(name, "this version cannot enforce it yet; leave it unset or false")


_KNOWN: dict[str, _Reader] = {
    "SERVICE_ENV": _word("development", "production"),
    "SERVICE_HOME": _any,
    "SERVICE_DATABASE_URL": _any,
    "SERVICE_DATABASE_URL_API": _any,
    "SERVICE_DATABASE_URL_SIGNER": _any,
    "SERVICE_DATABASE_URL_SCHEDULER": _any,
    "SERVICE_DATABASE_URL_PROXY": _any,
    "SERVICE_API_HOST": _any,
    "SERVICE_API_PORT": _port,
    "SERVICE_API_WORKERS": _number(1, 64),
    "SERVICE_API_CONNECTIONS": _number(1, 64),
    "SERVICE_SIGNER_CONNECTIONS": _number(2, 64),
    "SERVICE_METRICS_PORT_API": _port,
    "SERVICE_METRICS_PORT_SCHEDULER": _port,
    "SERVICE_PUBLIC_URL": _public_url,
    "SERVICE_MASTER_KEY_FILE": _key_file,
    "SERVICE_PLATFORM_KEY_FILE": _key_file,
    "SERVICE_CHAINS_FILE": _any,
    "SERVICE_DEFAULT_CHAIN_ID": _any,
    "SERVICE_EMPTY_POLICY": _word("allow", "deny"),
    "SERVICE_AGENT_POLICY_PUT": _word("tighten", "replace"),
    "SERVICE_RATE_LIMIT_MAX": _number(0),
    "SERVICE_RATE_LIMIT_ANONYMOUS_MAX": _number(0),
    "SERVICE_RATE_LIMIT_WINDOW_SECONDS": _number(1),
    "SERVICE_RATE_LIMIT_STORE": _rate_limit_store,
    "SERVICE_TRUSTED_PROXIES": _any,
    "SERVICE_REQUIRE_REQUEST_EXPIRY": _never,
    "SERVICE_REQUIRE_AUTH_SIGNATURE": _never,
    # A client's, for scripts.
    "SERVICE_KEY": _any,
    "SERVICE_KEY_FILE": _any,
}
_KNOWN_PREFIXES = ("SERVICE_RPC_URL_",)


def check(environment: Mapping[str, str]) -> list[str]:
    """Raise BadSetting for the first wrong value; otherwise name the variables that have no effect."""
    ours = sorted(name for name, value in environment.items() if name.startswith("SERVICE_") and value.strip())
    for name in ours:
        if name in _KNOWN:
            _KNOWN[name](environment, name)
    try:
        table.load(environment)
    except ValueError as problem:
        name = str(problem).split(" ", 1)[0].rstrip(":")
        raise BadSetting(name, str(problem).removeprefix(name).lstrip(": ")) from problem
    return [name for name in ours if name not in _KNOWN and not name.startswith(_KNOWN_PREFIXES)]

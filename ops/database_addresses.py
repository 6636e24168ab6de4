"""Addresses of databases as services hand them out, made into ones that all processes and programs read alike.

An address that asks for the server's certificate to be verified gets the file of authorities that it is verified
against: SERVICE_DATABASE_CA_FILE, or the system's. What libpq knows and asyncpg does not is taken out where it changes
nothing of what is believed; anything else is refused by name.
"""

import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from custody.kit.environment import BadSetting, database_address

CA_FILE: Final = "SERVICE_DATABASE_CA_FILE"
_VERIFIED: Final = {"verify-ca", "verify-full"}
# Read by asyncpg and, as variables or as they are, by the programs of Postgres.
_READ: Final = {
    *("host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs"),
    # Settings of the session, which the server itself reads.
    *("application_name", "options"),
}
# Waiting, keeping alive, balancing, other libraries' own, and ways to encrypt that `sslmode` decides here.
_NEEDLESS: Final = {
    *("connect_timeout", "tcp_user_timeout", "keepalives", "keepalives_idle", "keepalives_interval"),
    *("keepalives_count", "load_balance_hosts", "client_encoding", "fallback_application_name"),
    *("gssencmode", "sslsni", "sslcompression", "channel_binding", "ssl_min_protocol_version"),
    *("pgbouncer", "schema", "connection_limit", "pool_timeout", "pool_mode", "sslaccept", "supa", "workaround"),
}
# A client's certificate and its key.
_CLIENTS: Final = ("sslcert", "sslkey")
_SYSTEMS: Final = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


def readable(name: str, value: str, environment: Mapping[str, str]) -> str:
    """The address in the variable `name`, as all can read it; BadSetting for what cannot be kept of it."""
    parts = urlsplit(database_address(name, value))
    query = dict(parse_qsl(parts.query))
    if unread := sorted(set(query) - _READ - _NEEDLESS):
        raise BadSetting(name, f"{', '.join(unread)} in its query cannot be kept: take it out")
    kept = {key: found for key, found in query.items() if key in _READ}
    _insist_on_pair(name, kept)
    file = environment.get(CA_FILE, "").strip()
    verified = query.get("sslmode") in _VERIFIED
    if file and not verified:
        raise BadSetting(CA_FILE, f"has no effect while {name} does not say sslmode=verify-full")
    if verified and "sslrootcert" not in kept:
        kept["sslrootcert"] = str(Path(file).absolute()) if file else _systems()
    if kept == query:
        return value
    return urlunsplit(parts._replace(query="&".join(f"{key}={quote(found, safe='/')}" for key, found in kept.items())))


def of_process(process: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variable with the address of one process that is started alone, if it is set, with what it can read."""
    name = f"SERVICE_DATABASE_URL_{process.upper()}"
    value = environment.get(name, "").strip()
    return {name: readable(name, value, environment)} if value else {}


def files(url: str) -> list[Path]:
    """The files that an address names, which every process that connects by it reads."""
    query = dict(parse_qsl(urlsplit(url).query))
    return [Path(query[key]).absolute() for key in ("sslrootcert", *_CLIENTS) if key in query]


def _insist_on_pair(name: str, query: Mapping[str, str]) -> None:
    """A client's certificate and its key: both, and who asks can read both files."""
    given = [key for key in _CLIENTS if key in query]
    if len(given) == 1:
        lacking = next(key for key in _CLIENTS if key not in given)
        raise BadSetting(name, f"{given[0]} in its query wants {lacking} beside it: name both files, or neither")
    for key in given:
        if not os.path.isfile(query[key]):
            raise BadSetting(name, f"{key} in its query names {query[key]}: no such file, or it cannot be seen")
        if not os.access(query[key], os.R_OK):
            raise BadSetting(name, f"{key} in its query names {query[key]}: uid {os.geteuid()} cannot read it")


def _systems() -> str:
    for file in (ssl.get_default_verify_paths().cafile, *_SYSTEMS):
        if file and Path(file).is_file():
            return file
    raise BadSetting(CA_FILE, "must name a file with the authority of the database: the system has none here")

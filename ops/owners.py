"""The database as its owner: where it answers, and the programs of Postgres that copy it out and in."""

import os
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from custody.kit.environment import database_address
from ops import checkout, places
from ops.postgres import EmbeddedPostgres, PostgresFailed
from ops.postgres_install import programs
from ops.settings import Settings

_BY_QUERY = {
    "host": "PGHOST",
    "port": "PGPORT",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "options": "PGOPTIONS",
}


_ENCRYPTED = {"require", "verify-ca", "verify-full"}


@asynccontextmanager
async def owner_url(settings: Settings, home: places.Home) -> AsyncIterator[str]:
    """The owner's address; the embedded server is started for as long as it is needed, if it does not run."""
    if settings.database_url is not None:
        yield database_address("SERVICE_DATABASE_URL", settings.database_url)
        return
    owner_file = home.file("db", "owner.url")
    server = EmbeddedPostgres(home.file("postgres"), home.file("log", "postgres.log"), uid_base=home.uid_base)
    try:
        url = await server.start()
    except PostgresFailed:
        # It runs already, under `custody up`.
        if not owner_file.exists():
            raise
        yield owner_file.read_text().strip()
        return
    try:
        places.write_private(owner_file, url + "\n")
        yield url
    finally:
        await server.stop()


def program(name: str, sslmode: str | None = None) -> Path:
    """A program of the embedded Postgres, which is the newest, else one that is installed here.

    The embedded ones are built without TLS, so where a mode asks for it only installed ones will do.
    """
    encrypted = sslmode in _ENCRYPTED
    try:
        if not encrypted and (found := programs() / name).exists():
            return found
    except FileNotFoundError:
        pass
    if (installed := shutil.which(name)) is None:
        cure = "install those of Debian (postgresql-client), which know TLS" if encrypted else checkout.SET_UP
        raise FileNotFoundError(f"{name} is missing; {cure}, or install the Postgres programs")
    return Path(installed)


def environment_for(url: str) -> dict[str, str]:
    """Build a Postgres program's environment: no secret in its arguments, which every user of the machine can read."""
    parts = urlsplit(url)
    query: Mapping[str, str] = dict(parse_qsl(parts.query))
    # Of several hosts each may have a port.
    hosts = [urlsplit(f"//{place}") for place in parts.netloc.rpartition("@")[2].split(",")]
    found = {
        "PATH": os.defpath,
        "LC_ALL": "C",
        "TZ": "UTC",
        "PGHOST": ",".join(host.hostname or "" for host in hosts),
        "PGPORT": ",".join(str(host.port or 5432) for host in hosts) if parts.netloc else "",
        "PGUSER": unquote(parts.username or ""),
        "PGPASSWORD": unquote(parts.password or ""),
        "PGDATABASE": unquote(parts.path.removeprefix("/")),
        "PGCONNECT_TIMEOUT": "10",
    }
    found |= {name: query[key] for key, name in _BY_QUERY.items() if key in query}
    return {name: value for name, value in found.items() if value}

"""Addresses as services hand them out: kept, completed, or refused by name; and a server whose certificate counts."""

import asyncio
import os
import pwd
import shutil
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import msgspec
import pytest

from custody.kit import db
from custody.kit.environment import BadSetting
from ops import database_addresses, owners
from ops.settings import PROCESSES, load
from tests.fixtures.server import free_ports
from tests.outside.certificates import Authority
from tests.outside.processes import PROJECT
from tests.outside.programs import OLDER_POSTGRES, ProgramMissing, installed
from tests.setup.test_older_postgres import running_postgres

NAME = "SERVICE_DATABASE_URL"
PLACE = "postgresql://owner:p%40ss@db.example.com:5432/custody"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("", ""),
        ("?sslmode=require", "?sslmode=require"),
        ("?sslmode=require&channel_binding=require", "?sslmode=require"),
        ("?connect_timeout=10&application_name=psql", "?application_name=psql"),
        ("?options=endpoint%3Dblue-sky&sslmode=require", "?options=endpoint%3Dblue-sky&sslmode=require"),
        ("?pgbouncer=true&connection_limit=1&schema=public", ""),
        ("?sslmode=verify-full&sslrootcert=/etc/ours.crt", "?sslmode=verify-full&sslrootcert=/etc/ours.crt"),
        ("?target_session_attrs=read-write&keepalives=1", "?target_session_attrs=read-write"),
    ],
)
def test_a_needless_parameter_is_taken_out_of_an_address(given: str, kept: str) -> None:
    assert database_addresses.readable(NAME, PLACE + given, {}) == PLACE + kept


def test_an_address_whose_parameter_nobody_reads_is_refused_by_its_name() -> None:
    with pytest.raises(BadSetting, match=r"^SERVICE_DATABASE_URL: service, sslnegotiation in its query cannot be kept"):
        database_addresses.readable(NAME, f"{PLACE}?sslnegotiation=direct&service=x", {})


def test_a_certificate_is_checked_against_the_system_or_the_file_that_is_named(tmp_path: Path) -> None:
    verified = f"{PLACE}?sslmode=verify-full"
    systems = urlsplit(database_addresses.readable(NAME, verified, {})).query.partition("sslrootcert=")[2]
    ssl.create_default_context(cafile=systems)
    named = {database_addresses.CA_FILE: str(tmp_path / "ours.pem")}
    assert database_addresses.readable(NAME, verified, named) == f"{verified}&sslrootcert={tmp_path / 'ours.pem'}"
    with pytest.raises(BadSetting, match="SERVICE_DATABASE_CA_FILE: has no effect while SERVICE_DATABASE_URL"):
        database_addresses.readable(NAME, f"{PLACE}?sslmode=require", named)


class Encrypted(msgspec.Struct, frozen=True):
    """A server that shows a certificate by an authority that no system knows, and its owner without superuser."""

    url: str
    authority: Path
    stranger: Path


@pytest.fixture
def encrypted() -> Iterator[Encrypted]:
    """Debian's server, for the embedded one is built without TLS; with an empty database."""
    try:
        programs = installed(OLDER_POSTGRES).parent
    except ProgramMissing as problem:
        pytest.skip(str(problem))  # other systems have other versions
    folder = Path(tempfile.mkdtemp(prefix="ce-"))
    folder.chmod(0o755)
    (folder / "other").mkdir()
    authority, stranger = Authority(folder), Authority(folder / "other")
    leaf = authority.leaf("database", "localhost")
    leaf.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(leaf, pwd.getpwnam("postgres").pw_uid, -1)
    (folder / "data").mkdir()
    (port,) = free_ports(1)
    try:
        with running_postgres(
            programs, folder / "data", port, ssl="on", ssl_cert_file=str(leaf), ssl_key_file=str(leaf)
        ):
            asyncio.run(_made(f"postgresql://postgres@127.0.0.1:{port}/postgres"))
            url = f"postgresql://managed:p%40ss%2Fw@localhost:{port}/managed?sslmode=verify-full&connect_timeout=10"
            yield Encrypted(url, authority.ca_file, stranger.ca_file)
    finally:
        shutil.rmtree(folder)


async def _made(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE ROLE managed LOGIN CREATEROLE PASSWORD 'p@ss/w'")
    await connection.execute("CREATE DATABASE managed OWNER managed TEMPLATE template0")
    await connection.close()


def _migrate(home: Path, **environment: str) -> tuple[int, str]:
    given = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "SERVICE_HOME": str(home), **environment}
    command = [sys.executable, "-P", "-m", "ops", "migrate"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=given, cwd="/")
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.long
def test_a_database_whose_certificate_is_checked_is_migrated_and_used(encrypted: Encrypted, tmp_path: Path) -> None:
    home = tmp_path / "home"
    given = {NAME: encrypted.url, database_addresses.CA_FILE: str(encrypted.authority)}

    for wrong in ({NAME: encrypted.url}, given | {database_addresses.CA_FILE: str(encrypted.stranger)}):
        status, said = _migrate(home, **wrong)
        assert (status, "Traceback" in said, "certificate" in said.lower()) == (1, False, True), said
    status, said = _migrate(home, **given)
    assert (status, "Traceback" in said) == (0, False), said

    for process in PROCESSES:
        asyncio.run(_used((home / "db" / f"{process}.url").read_text().strip()))
    # And the programs of Postgres, with which backups are made.
    url = load({"SERVICE_HOME": str(home), **given}).database_url
    assert url is not None
    asked = subprocess.run(
        [owners.program("psql", "verify-full"), "-Atc", "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"],
        env=owners.environment_for(url),
        capture_output=True,
        text=True,
        check=True,
    )
    assert asked.stdout.strip() == "t"


async def _used(url: str) -> None:
    pool = await db.open_pool(url, size=1)
    try:
        assert await pool.fetchval("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    finally:
        await pool.close()

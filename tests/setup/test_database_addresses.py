"""Addresses as services hand them out: kept, completed, or refused by name; and a server whose certificate counts."""

import asyncio
import os
import pwd
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import httpx
import msgspec
import pytest

from custody.kit import db
from custody.kit.environment import BadSetting
from ops import database_addresses, owners
from ops.roles import role_of
from ops.settings import PROCESSES, load
from tests.fixtures.eventually import eventually
from tests.fixtures.server import free_ports
from tests.outside import loopback
from tests.outside.certificates import Authority
from tests.outside.processes import PROJECT, die_with
from tests.outside.programs import OLDER_POSTGRES, ProgramMissing, install
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

    port: int
    authority: Path
    stranger: Path
    # Of whom each role has one.
    certificates: dict[str, Path]

    @property
    def url(self) -> str:
        """The owner's address of a database that is empty, as a service would hand it out."""
        return self.of("managed", "p%40ss%2Fw", "managed") + "&connect_timeout=10"

    @property
    def superuser_url(self) -> str:
        """The address at which the test looks on."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def of(self, user: str, password: str, database: str) -> str:
        """The address of a user, with whom the server's certificate counts."""
        return f"postgresql://{user}:{password}@localhost:{self.port}/{database}?sslmode=verify-full"

    def address_with_certificate(self, user: str, password: str, shown: str = "") -> str:
        """That of the database to which none comes without a certificate for their name."""
        file = self.certificates[shown or user]
        return f"{self.of(user, password, 'certified')}&sslcert={file}&sslkey={file}"


@pytest.fixture
def encrypting_server() -> Iterator[Encrypted]:
    """Debian's server, for the embedded one is built without TLS; with two empty databases."""
    try:
        programs = install(OLDER_POSTGRES).parent
    except ProgramMissing as problem:
        pytest.skip(str(problem))  # other systems have other versions
    folder = Path(tempfile.mkdtemp(prefix="ce-"))
    folder.chmod(0o755)
    (folder / "other").mkdir()
    authority, stranger = Authority(folder), Authority(folder / "other")
    leaf = authority.leaf("database", "localhost")
    certificates = {user: authority.leaf(user) for user in ("managed", *map(role_of, PROCESSES))}
    for file in (leaf, *certificates.values()):
        file.chmod(0o600)
    if os.geteuid() == 0:
        os.chown(leaf, pwd.getpwnam("postgres").pw_uid, -1)
    (folder / "data").mkdir()
    who = folder / "hba.conf"
    who.write_text(
        "host postgres postgres 127.0.0.1/32 trust\nlocal postgres postgres trust\n"
        "hostssl certified all 127.0.0.1/32 scram-sha-256 clientcert=verify-full\n"
        "hostssl managed all 127.0.0.1/32 scram-sha-256\n"
    )
    who.chmod(0o644)
    authority.ca_file.chmod(0o644)
    settings = {"ssl": "on", "ssl_cert_file": str(leaf), "ssl_key_file": str(leaf)}
    settings |= {"ssl_ca_file": str(authority.ca_file), "hba_file": str(who)}
    (port,) = free_ports(1)
    try:
        with running_postgres(programs, folder / "data", port, **settings):
            found = Encrypted(port, authority.ca_file, stranger.ca_file, certificates)
            asyncio.run(_make(found.superuser_url))
            yield found
    finally:
        shutil.rmtree(folder)


async def _make(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("CREATE ROLE managed LOGIN CREATEROLE PASSWORD 'p@ss/w'")
    for database in ("managed", "certified"):
        await connection.execute(f"CREATE DATABASE {database} OWNER managed TEMPLATE template0")
    await connection.close()


def _migrate(home: Path, **environment: str) -> tuple[int, str]:
    command = [sys.executable, "-P", "-m", "ops", "migrate"]
    given = _environment(home, **environment)
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=given, cwd="/")
    return ended.returncode, ended.stdout + ended.stderr


def _environment(home: Path, **more: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT), "SERVICE_HOME": str(home), **more}


@pytest.mark.long
def test_a_database_whose_certificate_is_checked_is_migrated_and_used(
    encrypting_server: Encrypted, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    given = {NAME: encrypting_server.url, database_addresses.CA_FILE: str(encrypting_server.authority)}

    for wrong in ({NAME: encrypting_server.url}, given | {database_addresses.CA_FILE: str(encrypting_server.stranger)}):
        status, said = _migrate(home, **wrong)
        assert (status, "Traceback" in said, "certificate" in said.lower()) == (1, False, True), said
    status, said = _migrate(home, **given)
    assert (status, "Traceback" in said) == (0, False), said

    for process in PROCESSES:
        asyncio.run(_use((home / "db" / f"{process}.url").read_text().strip()))
    assert _by_psql({"SERVICE_HOME": str(home), **given}) == "t"


def _by_psql(environment: dict[str, str]) -> str:
    """Tell whether the programs of Postgres that make backups are encrypted on their way as the owner."""
    url = load(environment).database_url
    assert url is not None
    asked = subprocess.run(
        [owners.program("psql", "verify-full"), "-Atc", "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"],
        env=owners.environment_for(url),
        capture_output=True,
        text=True,
        check=True,
    )
    return asked.stdout.strip()


async def _use(url: str) -> None:
    pool = await db.open_pool(url, size=1)
    try:
        assert await pool.fetchval("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    finally:
        await pool.close()


@pytest.mark.long
def test_a_process_alone_checks_the_database_as_its_own_variables_say(
    encrypting_server: Encrypted, open_folder: Path
) -> None:
    home = open_folder / "home"
    named = {database_addresses.CA_FILE: str(encrypting_server.authority)}
    assert _migrate(home, **{NAME: encrypting_server.url}, **named)[0] == 0
    addresses = {}
    for process in PROCESSES:
        file = home / "db" / f"{process}.url"
        addresses[variable(process)] = file.read_text().strip().partition("?")[0] + "?sslmode=verify-full"
        # It has no other way.
        file.unlink()
    # The control: without the file that is named nobody can check it.
    with pytest.raises(Exception, match="certificate"):
        asyncio.run(_use(addresses[variable("api")]))

    with alone(home, **addresses, **named):
        assert asyncio.run(_look(encrypting_server)) == {role_of(process): (True, None) for process in PROCESSES}


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("?sslmode=require", "SERVICE_DATABASE_CA_FILE: has no effect while SERVICE_DATABASE_URL_API does not say"),
        ("?sslmode=verify-full&service=x", "SERVICE_DATABASE_URL_API: service in its query cannot be kept"),
        ("?sslmode=verify-full&sslcert=/x.pem", "sslcert in its query wants sslkey beside it: name both files"),
        ("?sslmode=verify-full&sslcert=/x.pem&sslkey=/x.pem", "names /x.pem: no such file"),
    ],
)
def test_a_process_alone_refuses_an_address_that_it_cannot_keep(tmp_path: Path, address: str, said: str) -> None:
    place = "postgresql://custody_api:pw@localhost:1/custody"
    given = {variable("api"): place + address, database_addresses.CA_FILE: "/etc/hostname"}
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "ops", "api"],
        env=_environment(tmp_path, **given),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
    assert said in ended.stderr
    assert "pw" not in ended.stderr


@pytest.mark.long
def test_a_process_shows_the_certificate_that_its_address_names(
    encrypting_server: Encrypted, open_folder: Path
) -> None:
    home = open_folder / "home"
    named = {database_addresses.CA_FILE: str(encrypting_server.authority)}
    owner = {NAME: encrypting_server.address_with_certificate("managed", "p%40ss%2Fw")}
    addresses = {
        variable(process): encrypting_server.address_with_certificate(role_of(process), "pw") for process in PROCESSES
    }

    status, said = _migrate(home, **owner, **addresses, **named)
    assert (status, "Traceback" in said) == (0, False), said
    for wrong, why in (
        (encrypting_server.of("custody_api", "pw", "certified"), "client certificate"),
        (encrypting_server.address_with_certificate("custody_api", "pw", "custody_proxy"), "authentication failed"),
    ):
        with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match=why):
            asyncio.run(_use(database_addresses.readable(NAME, wrong, named)))

    assert _by_psql({"SERVICE_HOME": str(home), **owner, **named}) == "t"
    with alone(home, **addresses, **named):
        seen = asyncio.run(_look(encrypting_server))
    assert seen == {role_of(process): (True, f"/CN={role_of(process)}") for process in PROCESSES}


def variable(process: str) -> str:
    """That of the address of one process."""
    return f"SERVICE_DATABASE_URL_{process.upper()}"


@contextmanager
def alone(home: Path, **environment: str) -> Iterator[None]:
    """Every process started by its own command, once the api is ready and the proxy takes connections."""
    names = (
        *("SERVICE_API_PORT", "SERVICE_PROXY_PORT"),
        *(f"SERVICE_METRICS_PORT_{process}" for process in ("API", "PROXY", "SCHEDULER")),
    )
    ports = dict(zip(names, map(str, free_ports(len(names))), strict=True))
    for folder in ("run", "run-identity", "identity-key"):
        (home / folder).mkdir(exist_ok=True)
    with ExitStack() as stack:
        log = stack.enter_context((home / "said").open("w"))
        for process in PROCESSES:
            started = subprocess.Popen(
                [sys.executable, "-P", "-m", "ops", process],
                env=_environment(home, **ports, **environment),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
            )
            stack.callback(started.wait, 60)
            stack.callback(started.terminate)

        def ready() -> bool:
            try:
                socket.create_connection(("127.0.0.1", int(ports["SERVICE_PROXY_PORT"])), 5).close()
                return loopback.get(f"http://127.0.0.1:{ports['SERVICE_API_PORT']}/ready").status_code == 200
            except (httpx.HTTPError, OSError):
                return False

        eventually(ready, seconds=90, about=(home / "said").read_text)
        yield


async def _look(encrypted: Encrypted) -> dict[str, tuple[bool, str | None]]:
    """Of each role whether all that it has is encrypted, and the name in the certificates that it showed."""
    connection = await asyncpg.connect(encrypted.superuser_url)
    rows = await connection.fetch(
        "SELECT usename, bool_and(ssl) AS ssl, max(client_dn) AS name FROM pg_stat_ssl"
        " JOIN pg_stat_activity USING (pid) WHERE usename LIKE 'custody%' GROUP BY 1"
    )
    await connection.close()
    return {row["usename"]: (row["ssl"], row["name"]) for row in rows}

"""The database roles: one for each process, and one without login that owns the functions which look across tenants.

Promise P4: no process role owns a table, is a superuser or goes around row-level security.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import asyncpg

from custody.kit.environment import BadSetting
from ops import places
from ops.settings import PROCESSES

DEFINER = "custody_definer"
_ITERATIONS = 4096
# What a process asks before a commit ends in this time; no process cancels a statement (custody/kit/db.py).
_STATEMENT_SECONDS = 30
# The server lets go of a connection whose other end is gone after a minute, not after hours: it counts against the
# role's limit meanwhile, and the process that comes back would get none.
_KEEPALIVES = {"tcp_keepalives_idle": 30, "tcp_keepalives_interval": 10, "tcp_keepalives_count": 3}
# The workers' statements touch a handful of rows by key; on a young table without statistics the planner
# would read it whole, and a plan cached then stays slow.
_SETTINGS = {"signer": "enable_seqscan = off", "identity": "enable_seqscan = off"}
_SHARED = (
    "must be set, or {file} must exist: the database {other} of this server uses the role {role} as well, and a new "
    "password would shut its processes out. Use a server for each deployment; or, if nothing uses {other} any more, "
    "drop it or run REVOKE CONNECT ON DATABASE {other} FROM {role}"
)
_HELD = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1"
_LOWERED = (
    "{role} holds {held} connections and may hold {limit} from now on, so its processes get no new one until enough of "
    "them end. If other machines or larger pools use the database, give this one the same settings "
    "(docs/database.md) and run `custody migrate` again"
)


def role_of(process: str) -> str:
    """The database role of a process."""
    return f"custody_{process}"


def url_for(owner_url: str, process: str, password: str) -> str:
    """The address of one process: the owner's, with another user."""
    parts = urlsplit(owner_url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{role_of(process)}:{quote(password, safe='')}@{place}"))


def scram_verifier(password: str) -> str:
    """Compute what Postgres stores for a password (RFC 5803). Sent instead of it, so no server log ever holds it."""
    salt = secrets.token_bytes(16)  # noqa: TID251 - a salt, not a credential
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    shown = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${_ITERATIONS}:{shown[0]}${shown[1]}:{shown[2]}"


async def prepare(
    connection: asyncpg.Connection,
    owner_url: str,
    home: places.Home,
    given: Mapping[str, str],
    limits: Mapping[str, int],
) -> list[str]:
    """Make the roles that are not there, bound them, and write each process' address into its own file.

    Returns a sentence for each role that may hold fewer connections from now on than it holds at the moment.
    `given` holds addresses the operator set; for those nothing is written. A password that is known is kept: another
    machine may use it too. One that is not known is replaced, unless another database's processes sign in with it.
    """
    await _ensure(connection, DEFINER, "NOLOGIN")
    # An owner who is not a superuser may hand functions only to a role that it is a member of.
    await connection.execute(f"GRANT {DEFINER} TO CURRENT_USER")
    database = await connection.fetchval("SELECT quote_ident(current_database())")
    await connection.execute(f"REVOKE ALL ON DATABASE {database} FROM PUBLIC")
    await connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    for process in PROCESSES:
        role = role_of(process)
        file = home.file("db", f"{process}.url")
        known = given.get(process) or (file.read_text() if file.exists() else None)
        password = _password_in(known, process) or secrets.token_hex(32)  # noqa: TID251 - a database password
        fresh = await _ensure(connection, role, "LOGIN")
        if not fresh and known is None and (other := await elsewhere(connection, role)):
            raise BadSetting(
                f"SERVICE_DATABASE_URL_{process.upper()}", _SHARED.format(role=role, other=other, file=file)
            )
        if fresh or known is None:
            await connection.execute(f"ALTER ROLE {role} PASSWORD '{scram_verifier(password)}'")
        await connection.execute(f"ALTER ROLE {role} SET statement_timeout = '{_STATEMENT_SECONDS}s'")
        for name, seconds in _KEEPALIVES.items():
            await connection.execute(f"ALTER ROLE {role} SET {name} = {seconds}")
        if setting := _SETTINGS.get(process):
            await connection.execute(f"ALTER ROLE {role} SET {setting}")
        await connection.execute(f"GRANT CONNECT ON DATABASE {database} TO {role}")
        if process not in given:
            places.write_private(file, url_for(owner_url, process, password) + "\n", owner=home.uid_of(process))
    lowered = []
    for role, limit in (await wrongly_limited(connection, limits)).items():
        await connection.execute(f"ALTER ROLE {role} CONNECTION LIMIT {limit}")
        if (held := await connection.fetchval(_HELD, role)) > limit:
            lowered.append(_LOWERED.format(role=role, held=held, limit=limit))
    return lowered


async def wrongly_limited(connection: asyncpg.Connection, limits: Mapping[str, int]) -> dict[str, int]:
    """The roles whose connection limit is to be another one, and which.

    A role that another database of the server uses too keeps a limit that is larger: its processes count as well.
    """
    wanted = {role_of(process): limit for process, limit in limits.items()}
    there = await connection.fetch(
        "SELECT rolname, rolconnlimit FROM pg_roles WHERE rolname = ANY ($1) ORDER BY 1", list(wanted)
    )
    found = {}
    for row in there:
        role, limit = row["rolname"], row["rolconnlimit"]
        if limit != wanted[role] and not (
            (limit < 0 or limit > wanted[role]) and await elsewhere(connection, role) is not None
        ):
            found[role] = wanted[role]
    return found


async def elsewhere(connection: asyncpg.Connection, role: str) -> str | None:
    """Another database of this server that the role was let into."""
    found: str | None = await connection.fetchval(
        "SELECT datname FROM pg_database, aclexplode(datacl) AS let JOIN pg_roles ON pg_roles.oid = let.grantee"
        " WHERE rolname = $1 AND privilege_type = 'CONNECT' AND datname <> current_database() ORDER BY 1 LIMIT 1",
        role,
    )
    return found


async def _ensure(connection: asyncpg.Connection, role: str, login: str) -> bool:
    found = await connection.fetchrow("SELECT rolsuper OR rolbypassrls AS above FROM pg_roles WHERE rolname = $1", role)
    if found is None:
        await connection.execute(f"CREATE ROLE {role} {login}")
        return True
    if found["above"]:
        raise PermissionError(f"the role {role} bypasses row-level security; remove SUPERUSER and BYPASSRLS from it")
    return False


def _password_in(url: str | None, process: str) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url.strip())
    if parts.username != role_of(process):
        raise BadSetting(f"SERVICE_DATABASE_URL_{process.upper()}", f"must sign in as {role_of(process)}")
    return unquote(parts.password) if parts.password else None

"""Bring a database up to date: roles, migrations, functions, and one address file for each process.

Everything happens in one transaction under an advisory lock: of several that start at once one works, the others
wait and find nothing to do, and one that is killed leaves nothing half done.
"""

import sys
import warnings
from collections.abc import Collection, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from custody.database import apply
from custody.database.texts import Text, digest, read
from custody.kit.schema_version import NewerDatabase
from custody.migrations import BEFORE, SQUASHED
from ops import connections, places, roles
from ops.settings import PROCESSES

MIGRATIONS = "custody.migrations"
FUNCTIONS = "functions"
_APP = "custody"
# Any fixed number will do; this one spells "custody" in ASCII.
_LOCK = 0x637573746F6479


# The first migration of the history that was squashed before the first release; no database made since has it.
_BEFORE_SQUASH = "0001_foundation"


class TooOldDatabase(RuntimeError):
    """This database is from before the history of migrations began again, and no version upgrades it."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"this {what} was made before 2026-11-23, when the migrations began again, and cannot be upgraded; nothing "
            "was changed. Start the version that made it, move what its wallets hold to wallets of a new installation, "
            "and make tenants, rules and secrets there (docs/recovery.md)"
        )


def refuse_before_squash(what: str, applied: Collection[str]) -> None:
    """TooOldDatabase if these migrations are of the history before."""
    if _BEFORE_SQUASH in applied:
        raise TooOldDatabase(what)


class MigrationFailed(RuntimeError):
    """The database rejected a part of the migration, so nothing of it was done; or nobody heard what became of it."""

    def __init__(self, reason: Exception) -> None:
        said = reason.__cause__ or reason
        if isinstance(said, asyncpg.PostgresError) and not isinstance(said, asyncpg.PostgresConnectionError):
            super().__init__(f"the migration failed and nothing has changed: {said} (docs/recipes.md)")
        else:
            super().__init__(
                f"the connection to the database broke during the migration ({said}); it was done whole or not at all. "
                "Run it again"
            )


async def migrate(
    owner_url: str,
    home: places.Home,
    *,
    given: Mapping[str, str] | None = None,
    limits: Mapping[str, int] | None = None,
    package: str = MIGRATIONS,
    texts: list[Text] | None = None,
) -> list[str]:
    """Apply what is missing and return its names; nothing to do costs four queries.

    Of a database from before 1.0 these are the rest of its own history, and what is noted instead of applied.

    `limits`: how many connections each process' role may hold, if not what the settings' defaults come to.
    """
    given = given or {}
    limits = connections.BY_DEFAULT if limits is None else limits
    texts = read() if texts is None else texts
    if await _up_to_date(owner_url, home, package, texts, given, limits):
        return []
    # Imported late: a start that has nothing to migrate must not pay for the ORM.
    from tortoise import Tortoise  # noqa: PLC0415
    from tortoise.exceptions import BaseORMException  # noqa: PLC0415
    from tortoise.migrations.executor import MigrationExecutor  # noqa: PLC0415
    from tortoise.migrations.schema_editor import AsyncpgSchemaEditor  # noqa: PLC0415
    from tortoise.transactions import in_transaction  # noqa: PLC0415

    lacking: list[str] = []
    lowered: list[str] = []
    app = {"models": [package], "migrations": package, "default_connection": "default"}
    before = app | {"migrations": f"{package}.{BEFORE}"}
    connection = {"engine": "tortoise.backends.asyncpg", "credentials": _credentials(owner_url)}
    with warnings.catch_warnings():
        # Our migrations are SQL and need no models, which the ORM finds odd.
        warnings.filterwarnings("ignore", message=".*has no models")
        await Tortoise.init(config={"connections": {"default": connection}, "apps": {_APP: app}})
    try:
        async with in_transaction("default") as transaction:
            await transaction.execute_query("SELECT pg_advisory_xact_lock($1)", [_LOCK])
            executor = MigrationExecutor(transaction, {_APP: app})
            await executor.recorder.ensure_schema(AsyncpgSchemaEditor(transaction, atomic=False))
            async with transaction.acquire_connection() as raw:
                lowered = await roles.prepare(raw, owner_url, home, given, limits)
                # Another one may have done it all while this one waited for the lock.
                there = await _history_of(raw, package)
                lacking = await _lacking(raw, there, package, texts)
                back = await apply.take_down(raw, texts) if lacking else []
            if not there.isdisjoint(names_before(package)):
                await MigrationExecutor(transaction, {_APP: before}).migrate(direction="forward")
                for name in sorted(set(names(package)) - there):
                    if name <= SQUASHED:
                        await executor.recorder.record_applied(_APP, name)
            await executor.migrate(direction="forward")
            async with transaction.acquire_connection() as raw:
                if lacking:
                    await apply.put_up(raw, texts, back)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, BaseORMException) as problem:
        raise MigrationFailed(problem) from problem
    finally:
        await Tortoise.close_connections()
    for sentence in lowered:
        print(f"custody: {sentence}.", file=sys.stderr, flush=True)
    return lacking


def names(package: str = MIGRATIONS) -> list[str]:
    """Every migration of a package that an empty database takes, in order."""
    return _names(files(package))


def names_before(package: str = MIGRATIONS) -> list[str]:
    """The migrations that only a database takes which has one of them."""
    older = files(package) / BEFORE
    return _names(older) if older.is_dir() else []


def _names(folder: Traversable) -> list[str]:
    return sorted(
        entry.name.removesuffix(".py")
        for entry in folder.iterdir()
        if entry.name.endswith(".py") and not entry.name.startswith("_")
    )


async def missing(owner_url: str, texts: list[Text], package: str = MIGRATIONS) -> list[str]:
    """The migrations that the database does not have, and `functions` if it has other ones than these texts make.

    NewerDatabase or TooOldDatabase if it has a migration that is not in the package.
    """
    connection = await asyncpg.connect(owner_url, timeout=10)
    try:
        return await _lacking(connection, await _history_of(connection, package), package, texts)
    finally:
        await connection.close()


async def _history_of(connection: Any, package: str) -> set[str]:
    there: set[str] = set()
    if await connection.fetchval("SELECT to_regclass('tortoise_migrations') IS NOT NULL"):
        rows = await connection.fetch("SELECT name FROM tortoise_migrations WHERE app = $1", _APP)
        there = {row["name"] for row in rows}
    refuse_before_squash("database", there)
    if unknown := there.difference(names_before(package), names(package)):
        raise NewerDatabase(max(unknown))
    return there


async def _lacking(connection: Any, there: set[str], package: str, texts: list[Text]) -> list[str]:
    before = names_before(package)
    wanted = names(package) if there.isdisjoint(before) else [*before, *names(package)]
    same = await apply.applied_digest(connection) == digest((text.name, text.file) for text in texts)
    return [name for name in wanted if name not in there] + ([] if same else [FUNCTIONS])


async def _up_to_date(
    owner_url: str,
    home: places.Home,
    package: str,
    texts: list[Text],
    given: Mapping[str, str],
    limits: Mapping[str, int],
) -> bool:
    for process in set(PROCESSES) - set(given):
        file = home.file("db", f"{process}.url")
        # Where the server's socket lies can have moved with the folder.
        if not file.exists() or _place(file.read_text().strip()) != _place(owner_url):
            return False
        if (uid := home.uid_of(process)) is not None and file.stat().st_uid != uid:
            return False
    connection = await asyncpg.connect(owner_url, timeout=10)
    try:
        lacking = await _lacking(connection, await _history_of(connection, package), package, texts)
        return not (lacking or await roles.wrongly_limited(connection, limits))
    finally:
        await connection.close()


def _place(url: str) -> tuple[str, str, str]:
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2], parts.path, parts.query


def _credentials(url: str) -> dict[str, Any]:
    """Build what Tortoise asks for; its connections are opened by asyncpg's own reader of addresses, as all others."""

    async def dial(*_args: Any, loop: Any, connection_class: Any, record_class: Any, **_given: Any) -> Any:
        return await asyncpg.connect(url, loop=loop, connection_class=connection_class, record_class=record_class)

    unread = dict.fromkeys(("host", "user", "password", "database"), "")
    return {**unread, "port": 0, "minsize": 1, "maxsize": 1, "connect": dial}

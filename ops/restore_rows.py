"""A backup into an empty database: whole, or as empty as before.

Everything is written in one transaction. Roles and grants are as `custody migrate` makes them, whatever the owner is
called here.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncpg

from ops import backup, owners, places, roles
from ops.backup import RestoreRefused
from ops.migrate import MigrationFailed, migrate, names, names_before, refuse_before_squash
from ops.settings import PROCESSES

_OCCUPIED = (
    "SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace) "
    "OR EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'public'::regnamespace)"
)
_CONNECTED = (
    "SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = current_database() AND usename = ANY ($1) ORDER BY 1"
)
# The old owner may have another name here, so it is left out; what looks across tenants belongs to its own role.
_OWNERS = f"""  -- as the migrations leave them
GRANT CREATE ON SCHEMA public TO {roles.DEFINER};
DO $custody$
DECLARE f text;
BEGIN
  FOR f IN SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef LOOP
    EXECUTE format('ALTER FUNCTION %s OWNER TO {roles.DEFINER}', f);
  END LOOP;
END $custody$;
REVOKE CREATE ON SCHEMA public FROM {roles.DEFINER};
"""  # noqa: S608 - our own names
# The programs that write the script are newer than many a server; this setting is what Postgres has from 17 on, and its
# value the default. It stands in the script's head, far before the first row.
_HEAD_BYTES = 2048
_NEWER = b"\nSET transaction_timeout = 0;\n", b"\n"


async def known_manifest(folder: Path) -> backup.Manifest:
    """Read what the backup in `folder` holds; RestoreRefused if a newer version made it."""
    print(f"Reading {folder}", flush=True)
    manifest = await asyncio.to_thread(backup.read_manifest, folder)
    refuse_before_squash("backup", manifest.migrations)
    if unknown := sorted(set(manifest.migrations).difference(names_before(), names())):
        raise RestoreRefused(
            f"this backup is of a newer version of Custody, with {unknown[-1]}; upgrade this installation"
        )
    return manifest


async def restore_rows(
    url: str,
    home: places.Home,
    folder: Path,
    manifest: backup.Manifest,
    given: Mapping[str, str],
    limits: Mapping[str, int],
) -> None:
    """Restore a backup as the owner at `url`; `given` are database addresses set for single processes."""
    await _prepare(url, home, given, limits)
    print(f"Restoring the state of {manifest.made_at}", flush=True)
    await _copy_in(url, folder / backup.DUMP)
    await _insist_on_counts(url, manifest)
    try:
        applied = await migrate(url, home, given=given, limits=limits)
    except MigrationFailed as problem:
        raise RestoreRefused(f"{problem}. The rows are there as the backup has them, of its older version") from problem
    if applied:
        print(f"Migrated it forward: {', '.join(applied)}.")
    print(f"Restored {sum(manifest.counts.values())} rows.", flush=True)


async def _prepare(url: str, home: places.Home, given: Mapping[str, str], limits: Mapping[str, int]) -> None:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        ours = [roles.role_of(process) for process in PROCESSES]
        if connected := [row["usename"] for row in await connection.fetch(_CONNECTED, ours)]:
            raise RestoreRefused(f"Custody processes use this database ({', '.join(connected)}); stop them first")
        if await connection.fetchval(_OCCUPIED):
            raise RestoreRefused(
                "this database is not empty, and a restore never overwrites data: create an empty one, or choose "
                "another SERVICE_HOME"
            )
        async with connection.transaction():
            await roles.prepare(connection, url, home, given, limits)
    finally:
        await connection.close()


async def _copy_in(url: str, dump: Path) -> None:
    """Everything in one transaction, the owners of functions last: cut off anywhere, the database stays empty."""
    given = owners.environment_for(url)
    read, write = os.pipe()
    try:
        out = await _start("pg_restore", "--no-owner", "--file=-", str(dump), env=given, stdout=write)
    finally:
        os.close(write)
    with os.fdopen(read, "rb") as script:
        # Not --single-transaction: it commits when the input ends, also when it ends because we were killed.
        said = ("--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--no-password", "--file=-")
        into = await _start("psql", *said, env=given, stdin=asyncio.subprocess.PIPE)
        assert into.stdin is not None  # noqa: S101 - asked for just above
        try:
            into.stdin.write(b"BEGIN;\n")
            into.stdin.write((await asyncio.to_thread(script.read, _HEAD_BYTES)).replace(*_NEWER, 1))
            while piece := await asyncio.to_thread(script.read1, 2**20):
                into.stdin.write(piece)
                await into.stdin.drain()
            _, complaint = await out.communicate()
            if out.returncode != 0:
                raise RestoreRefused(f"the backup cannot be read: {backup.first_error(complaint)}")
            # Only now is it known that all of it came.
            into.stdin.write(f"{_OWNERS}COMMIT;\n".encode())
            _, complaint = await into.communicate()
        except (BrokenPipeError, ConnectionResetError):
            _, complaint = await into.communicate()
        finally:
            for process in (out, into):
                if process.returncode is None:
                    process.kill()
                    await process.wait()
    if into.returncode != 0:
        raise RestoreRefused(f"the database rejected it and is still empty: {backup.first_error(complaint)}")


async def _start(program: str, *words: str, env: dict[str, str], **streams: Any) -> asyncio.subprocess.Process:
    given = {"stdin": asyncio.subprocess.DEVNULL, "stdout": asyncio.subprocess.DEVNULL, **streams}
    return await asyncio.create_subprocess_exec(
        owners.program(program, env.get("PGSSLMODE")), *words, env=env, cwd="/", stderr=asyncio.subprocess.PIPE, **given
    )


async def _insist_on_counts(url: str, manifest: backup.Manifest) -> None:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        for table, count in manifest.counts.items():
            # Names of our own manifest, held against the catalogue by being found there.
            quoted = await connection.fetchval("SELECT quote_ident($1)", table)
            found = await connection.fetchval(f"SELECT count(*) FROM {quoted}")  # noqa: S608
            if found != count:
                raise RestoreRefused(f"{table} has {found} rows and not {count}; do not use this database")
    finally:
        await connection.close()

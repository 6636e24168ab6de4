"""`custody restore`: a backup into an empty database, the proof that it opens, and the operator's word that it counts.

The database is whole or as empty as before: everything is written in one transaction. Roles and grants are as
`custody migrate` makes them, whatever the owner is called here. What the signer has seen is not touched, so one that
saw a later state refuses what is older until `--accept`.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncpg

from custody.cli import backup, owners, places, roles
from custody.cli.migrate import migrate, names
from custody.cli.platform_keys import operator
from custody.cli.settings import PROCESSES, Settings
from custody.cli.supervisor import given_urls
from custody.kit import environment
from custody.kit.errors import CustodyError
from custody.protocol.client import InternalFault, SignerClient, asked
from custody.protocol.messages import AcceptRestore

_OCCUPIED = (
    "SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = 'public'::regnamespace) "
    "OR EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'public'::regnamespace)"
)
_CONNECTED = (
    "SELECT DISTINCT usename FROM pg_stat_activity WHERE datname = current_database() AND usename = ANY ($1) ORDER BY 1"
)
# The old owner may have another name here, so his is left out; what looks across tenants belongs to its own role.
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


class RestoreRefused(RuntimeError):
    """Nothing was restored."""


async def run(settings: Settings, chosen: argparse.Namespace) -> int:
    """Do what was asked; 1 where a seal does not hold, 2 where it could not be looked at."""
    if chosen.accept:
        if chosen.folder is not None or chosen.verify:
            print("custody: --accept goes alone, once the signer runs", file=sys.stderr)
            return 2
        return await _accept(settings)
    if chosen.folder is None and not chosen.verify:
        print("custody: name the backup's folder, or --verify, or --accept", file=sys.stderr)
        return 2
    if chosen.folder is not None:
        places.insist_on_owner(settings.home)
        home = places.open_home(settings.home)
        return await _restore(settings, home, chosen.folder.absolute(), verify=chosen.verify)
    # A look makes nothing, least of all a database.
    home = places.found_home(settings.home)
    if settings.database_url is None and not home.file("postgres").is_dir():
        raise RestoreRefused(f"there is no database in {home.path}; set SERVICE_HOME or SERVICE_DATABASE_URL")
    async with owners.owner_url(settings, home):
        return await _verify(settings, home)


async def _restore(settings: Settings, home: places.Home, folder: Path, *, verify: bool) -> int:
    print(f"Reading {folder}", flush=True)
    manifest = await asyncio.to_thread(backup.read_manifest, folder)
    if unknown := sorted(set(manifest.migrations) - set(names())):
        raise RestoreRefused(f"this backup is of a newer version of Custody, which knows {unknown[-1]}; bring ours up")
    lock = places.Lock(home.file("lock"))
    if not lock.take():
        raise RestoreRefused(f"custody runs in {home.path}; stop it first")
    try:
        async with owners.owner_url(settings, home) as url:
            await _prepare(url, home, given_urls(settings))
            print(f"Restoring what was there on {manifest.made_at}", flush=True)
            await _copy_in(url, folder / backup.DUMP)
            await _insist_on_counts(url, manifest)
            applied = await migrate(url, home, given=given_urls(settings))
            if applied:
                print(f"Migrated it forward: {', '.join(applied)}.")
            print(f"Restored {sum(manifest.counts.values())} rows.", flush=True)
            code = await _verify(settings, home) if verify else 0
    finally:
        lock.release()
    if code == 0:
        print(
            "Start it now. If its signer saw a later state, it refuses what is older until `custody restore --accept`."
        )
    return code


async def _prepare(url: str, home: places.Home, given: Mapping[str, str]) -> None:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        ours = [roles.role_of(process) for process in PROCESSES]
        if connected := [row["usename"] for row in await connection.fetch(_CONNECTED, ours)]:
            raise RestoreRefused(f"processes of ours use this database ({', '.join(connected)}); stop them first")
        if await connection.fetchval(_OCCUPIED):
            raise RestoreRefused(
                "this database is not empty, and nothing is ever restored over what is there: make an empty one, or "
                "choose another SERVICE_HOME"
            )
        async with connection.transaction():
            await roles.prepare(connection, url, home, given)
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
        raise RestoreRefused(
            f"the database did not take it, and is as empty as before: {backup.first_error(complaint)}"
        )


async def _start(program: str, *words: str, env: dict[str, str], **streams: Any) -> asyncio.subprocess.Process:
    given = {"stdin": asyncio.subprocess.DEVNULL, "stdout": asyncio.subprocess.DEVNULL, **streams}
    return await asyncio.create_subprocess_exec(
        owners.program(program), *words, env=env, cwd="/", stderr=asyncio.subprocess.PIPE, **given
    )


async def _insist_on_counts(url: str, manifest: backup.Manifest) -> None:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        for table, count in manifest.counts.items():
            # Names of our own manifest, held against the catalogue by being found there.
            quoted = await connection.fetchval("SELECT quote_ident($1)", table)
            found = await connection.fetchval(f"SELECT count(*) FROM {quoted}")  # noqa: S608
            if found != count:
                raise RestoreRefused(f"{table} has {found} rows and not {count}; this database is not to be used")
    finally:
        await connection.close()


async def _verify(settings: Settings, home: places.Home) -> int:
    """In a process of its own: no key is ever in this one."""
    print("Opening every sealed value and checking every seal", flush=True)
    given = {
        **settings.environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "SERVICE_HOME": str(home.path),
        "SERVICE_MASTER_KEY_FILE": str(settings.master_key_file.absolute()),
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "signer.verify", env=given, cwd="/", stdin=asyncio.subprocess.DEVNULL
    )
    return await process.wait()


async def _accept(settings: Settings) -> int:
    signer = SignerClient(str(environment.sign_socket(settings.environment)), "operator")
    try:
        data = await asked(signer, AcceptRestore(), operator(settings))
    except CustodyError as problem:
        print(f"custody: {problem.message}", file=sys.stderr)
        return 1
    except InternalFault as problem:
        print(f"custody: {problem} Its log says more.", file=sys.stderr)
        return 1
    finally:
        await signer.close()
    print(f"Accepted: the rules of {data['agents']} agents and {len(data['logs'])} audit logs as they are now.")
    for name in [*data["named"], *(f"the log of {log}" for log in data["logs"])]:
        print(f"  {name}")
    for name in data["refused"]:
        print(f"  NOT the log of {name}: its newest checkpoint is not one that this service signed; docs/audit.md")
    print("What was decided between the backup and its restoring is lost; look at it before anything is signed.")
    return 1 if data["refused"] else 0

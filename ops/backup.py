"""`custody backup DIR`: the whole database of one moment, with what is needed to know it again. Never the master key.

DIR appears in one step when everything in it is on disk. DIR and the master key together give access to every wallet;
keep them apart. What the signer has seen (`signer/heads.log`, `signer/audit.log`) is not in it: those files detect an
older database, and copies restored together with it would detect nothing.
"""

import asyncio
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import asyncpg
import msgspec

from custody.kit import clock, key_head
from custody.kit.key_head import Head, MalformedHead
from custody.kit.tasks import leave_to_caller, spawn
from custody.version import VERSION
from ops import owners, places
from ops.holders import read_head, read_sealed
from ops.settings import Settings

FORMAT = 1
DUMP, MANIFEST, SEALED_KEY = "database.dump", "manifest.json", "master.key.sealed"
_SAY_SECONDS = 5.0
_TABLES = (
    "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' ORDER BY 1"
)
_MIGRATIONS = "SELECT name FROM tortoise_migrations WHERE app = 'custody' ORDER BY name"
_KEYS = (
    "SELECT version, encode(fingerprint, 'hex') AS fingerprint FROM key_versions "
    "WHERE begun_at IS NOT NULL AND retired_at IS NULL ORDER BY version"
)


class KeyVersion(msgspec.Struct, frozen=True):
    """A version of the master key that the backup cannot be read without."""

    version: int
    fingerprint: str


class Manifest(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The description of a backup, beside it as JSON."""

    format: int
    made_at: str
    custody: str
    postgres: str
    migrations: list[str]
    counts: dict[str, int]
    key_versions: list[KeyVersion]
    master_key: str
    sha256: str
    size: int
    # Kinds and names of those who open the master key file, where it is sealed.
    holders: list[str] = []


class BackupRefused(RuntimeError):
    """The backup was not made."""


class RestoreRefused(RuntimeError):
    """Nothing was restored."""


async def run(settings: Settings, folder: Path, *, with_sealed_key: bool = False) -> int:
    """Make it, and say where the master key lies, which is not in it."""
    folder = folder.absolute()
    if folder.exists() or folder.is_symlink():
        raise BackupRefused(f"{folder} already exists, and a backup never overwrites another: name a new folder")
    if not folder.parent.is_dir():
        raise BackupRefused(f"no such folder: {folder.parent}")
    sealed = _read_sealed(settings) if with_sealed_key else None
    # Beside its place, so that one that was cut off is never taken for a whole one.
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        async with owners.owner_url(settings, _home(settings)) as url:
            manifest = await _copy_out(settings, url, draft)
        places.write_private(draft / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)).decode() + "\n")
        if sealed is not None:
            places.write_private(draft / SEALED_KEY, sealed)
        _sync(draft)
        draft.rename(folder)
        _sync(folder.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    print(f"The backup is in {folder}: {manifest.size / 2**20:.1f} MiB, {sum(manifest.counts.values())} rows.")
    if not manifest.key_versions:
        print("Nothing is sealed in it yet, so no master key is needed to read it.")
        return 0
    needed = ", ".join(str(key.version) for key in manifest.key_versions)
    if sealed is not None:
        print(f"It holds the sealed master key file (version {needed}), opened by {', '.join(manifest.holders)} alone.")
        print("Keep what opens it in another place: the recovery key, the shares, the account of the KMS.")
        return 0
    print(f"It can be read with the master key alone, {manifest.master_key} (version {needed}), which is not in it.")
    if manifest.holders:
        print(f"That file is sealed: {', '.join(manifest.holders)} can open it.")
    print("Keep a copy of that file in another place: backup and key together give access to every wallet.")
    return 0


def _read_sealed(settings: Settings) -> str:
    """The sealed master key file; never a plain one, which with the backup would give access to every wallet."""
    try:
        # Read once: what is looked at is what is kept, though somebody has the file plain again just now.
        content = read_sealed(settings.master_key_file)
        head = None if content is None else key_head.split(content)[0]
    except (OSError, MalformedHead) as problem:
        raise BackupRefused(f"{settings.master_key_file} cannot be read: {problem}") from None
    if content is None or head is None:
        raise BackupRefused(
            f"{settings.master_key_file} is not sealed, and the plain master key goes into no backup: seal it with "
            "`custody keys lock`, or leave out --with-sealed-key"
        )
    return content.decode("ascii", "replace")


def _head_of(settings: Settings) -> Head | None:
    try:
        return read_head(settings.master_key_file)
    except (OSError, MalformedHead):
        return None


def _home(settings: Settings) -> places.Home:
    home = places.found_home(settings.home, settings.uid_base)
    if settings.database_url is None and not home.file("postgres").is_dir():
        raise BackupRefused(f"no database in {home.path}; set SERVICE_HOME or SERVICE_DATABASE_URL")
    return home


async def _copy_out(settings: Settings, url: str, draft: Path) -> Manifest:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        # One snapshot for the counts and the dump: what the manifest says is what is in it.
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            if not await connection.fetchval("SELECT to_regclass('key_versions') IS NOT NULL"):
                raise BackupRefused("this database is of an older version, or empty; run `custody migrate` first")
            snapshot = await connection.fetchval("SELECT pg_export_snapshot()")
            tables = [row["relname"] for row in await connection.fetch(_TABLES)]
            # Names of the catalogue.
            counts = {t: await connection.fetchval(f'SELECT count(*) FROM "{t}"') for t in tables}  # noqa: S608
            await _dump(url, snapshot, draft / DUMP)
            return Manifest(
                format=FORMAT,
                made_at=clock.iso(clock.now()),
                custody=VERSION,
                postgres=await connection.fetchval("SHOW server_version"),
                migrations=[row["name"] for row in await connection.fetch(_MIGRATIONS)],
                counts=counts,
                key_versions=[KeyVersion(**row) for row in await connection.fetch(_KEYS)],
                master_key=str(settings.master_key_file.absolute()),
                sha256=await asyncio.to_thread(sha256_of, draft / DUMP),
                size=(draft / DUMP).stat().st_size,
                holders=[f"{one.kind} {one.name}" for one in head.holders] if (head := _head_of(settings)) else [],
            )
    finally:
        await connection.close()


async def _dump(url: str, snapshot: str, file: Path) -> None:
    said = ["--format=custom", f"--snapshot={snapshot}", "--lock-wait-timeout=30s", "--no-password", f"--file={file}"]
    environment = owners.environment_for(url)
    process = await asyncio.create_subprocess_exec(
        owners.program("pg_dump", environment.get("PGSSLMODE")),
        *said,
        env=environment,
        umask=0o077,
        cwd="/",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    ended = spawn(process.communicate(), "pg_dump", on_failure=leave_to_caller)
    try:
        while not ended.done():
            await asyncio.wait({ended}, timeout=_SAY_SECONDS)
            if not ended.done() and file.exists():
                print(f"  {file.stat().st_size / 2**20:.0f} MiB so far", flush=True)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    _, complaint = ended.result()
    if process.returncode != 0:
        raise BackupRefused(f"pg_dump failed: {first_error(complaint)}")


def sha256_of(file: Path) -> str:
    """The hash of a file of any size."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def first_error(complaint: bytes) -> str:
    """The first line of a complaint that says what went wrong; the lines below it can hold rows."""
    lines = complaint.decode(errors="replace").splitlines()
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "it gave no reason")


def read_manifest(folder: Path) -> Manifest:
    """Read a backup's description, its dump found to be the one it speaks of."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise BackupRefused(f"{folder} is not a backup: it has no {MANIFEST}") from None
    except msgspec.DecodeError as problem:
        raise BackupRefused(f"{folder / MANIFEST} was not written by `custody backup`: {problem}") from None
    if manifest.format != FORMAT:
        raise BackupRefused(f"this version of Custody cannot read backups of format {manifest.format}")
    dump = folder / DUMP
    if not dump.is_file() or dump.stat().st_size != manifest.size or sha256_of(dump) != manifest.sha256:
        raise BackupRefused(f"{dump} is not the file that was backed up: it was truncated or changed")
    return manifest


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

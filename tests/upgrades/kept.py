"""Databases as earlier versions left them: what is kept of each, and how one is put into a server."""

import hashlib
import lzma
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ops import owners

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "kept"
_FOLDED = b"-- folded\n"
_APPLIED = re.compile(rb"(?<=\nCOPY public\.applied_sql )(.*?\n)(.*?)(?=\n\\\.\n)", re.DOTALL)
_ESCAPE = re.compile(rb"\\.|\n")
# The nights in this folder are none that an item waited: it has a day from now, as when it was made.
_WAITS = b"UPDATE public.approvals SET expires_at = now() + interval '1 day' WHERE status = 'pending';\n"
# A key that everybody knows: nothing but these rows is ever sealed with it.
MASTER_KEY = f"1 {'42' * 32}\n"


class Kept(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Facts that one must know of a kept database to use what is in it."""

    revision: str
    # Of the migrations and functions that made it.
    state: str
    tables: list[str]
    # Tables without a row, which nothing fills.
    empty: list[str]
    tenant: str
    tenant_key: str
    agent: str
    address: str
    waiting: str
    app: str
    app_secret: str
    platform_key: str


def names() -> list[str]:
    """Every kept database, the oldest first."""
    return sorted(file.stem for file in FOLDER.glob("*.json"))


def facts_of(name: str) -> Kept:
    """Read the facts of one."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Kept)


def write(name: str, kept: Kept, dump: bytes) -> None:
    """Keep one."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
    (FOLDER / f"{name}.sql.xz").write_bytes(lzma.compress(_FOLDED + fold(dump), preset=9 | lzma.PRESET_EXTREME))


def restore(name: str, url: str) -> None:
    """Put one into an empty database, as its owner."""
    ended = subprocess.run(
        [owners.program("psql"), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction"],
        env=owners.environment_for(url),
        input=_dump_of(name) + b"\n" + _WAITS,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()


def fold(dump: bytes) -> bytes:
    """Write the lines of functions in `applied_sql` as the functions themselves have them; again, and it is undone.

    Each function is in a dump twice, and in the table a new line is two characters: so both take room.
    """
    return _APPLIED.sub(lambda found: found[1] + _ESCAPE.sub(_swap, found[2]), dump, count=1)


def _swap(found: re.Match[bytes]) -> bytes:
    return {b"\\n": b"\n", b"\n": b"\\n"}.get(found[0], found[0])


def _dump_of(name: str) -> bytes:
    stored = lzma.decompress((FOLDER / f"{name}.sql.xz").read_bytes())
    return fold(stored.removeprefix(_FOLDED)) if stored.startswith(_FOLDED) else stored


def state(root: Path = ROOT) -> str:
    """One word for the migrations and the functions of a tree: another one is another database."""
    return digest(file for folder in ("migrations", "database") for file in (root / "custody" / folder).rglob("*.sql"))


def digest(files: Iterable[Path]) -> str:
    """The hash of files with their names, wherever they lie."""
    parts = sorted((file.name, file.read_bytes()) for file in files)
    return hashlib.sha256(b"".join(name.encode() + content for name, content in parts)).hexdigest()

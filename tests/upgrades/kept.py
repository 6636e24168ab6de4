"""Databases as earlier versions left them: what is kept of each, and how one is put into a server."""

import hashlib
import lzma
import subprocess
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ops import owners

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "kept"
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


def known(name: str) -> Kept:
    """Read the facts of one."""
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Kept)


def write(name: str, kept: Kept, dump: bytes) -> None:
    """Keep one."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
    (FOLDER / f"{name}.sql.xz").write_bytes(lzma.compress(dump, preset=9 | lzma.PRESET_EXTREME))


def restore(name: str, url: str) -> None:
    """Put one into an empty database, as its owner."""
    ended = subprocess.run(
        [owners.program("psql"), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction"],
        env=owners.environment_for(url),
        input=lzma.decompress((FOLDER / f"{name}.sql.xz").read_bytes()),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()


def state(root: Path = ROOT) -> str:
    """One word for the migrations and the functions of a tree: another one is another database."""
    return digest(file for folder in ("migrations", "database") for file in (root / "custody" / folder).rglob("*.sql"))


def digest(files: Iterable[Path]) -> str:
    """The hash of files with their names, wherever they lie."""
    parts = sorted((file.name, file.read_bytes()) for file in files)
    return hashlib.sha256(b"".join(name.encode() + content for name, content in parts)).hexdigest()

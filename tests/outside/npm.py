"""Installs programs of npm once, from the lock file of a folder, without running anybody's install script."""

import fcntl
import shutil
import subprocess
from pathlib import Path


def missing() -> str | None:
    """Why programs of npm cannot run here, or None."""
    absent = [program for program in ("node", "npm") if shutil.which(program) is None]
    return f"{' and '.join(absent)} not found: install Node.js 20 or newer" if absent else None


def install(folder: Path) -> None:
    """Install what the folder's lock file names, unless that has been done; parallel workers wait for each other."""
    lock = folder / "package-lock.json"
    # npm writes this last, so it is there only after a complete install.
    done = folder / "node_modules" / ".package-lock.json"
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if done.exists() and done.stat().st_mtime >= lock.stat().st_mtime:
            return
        command = [shutil.which("npm") or "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)

"""Installs the JavaScript judges once, from the lock file, without running anybody's install script."""

import fcntl
import shutil
import subprocess
from pathlib import Path

JUDGES = Path(__file__).parent
ANVIL = JUDGES / "node_modules" / ".bin" / "anvil"
# npm writes this last, so it is there only after a complete install.
_INSTALLED = JUDGES / "node_modules" / ".package-lock.json"
_LOCK = JUDGES / "package-lock.json"


def missing() -> str | None:
    """Why the judges cannot run here, or None."""
    absent = [program for program in ("node", "npm") if shutil.which(program) is None]
    return f"{' and '.join(absent)} not found: install Node.js 20 or newer to run the judges" if absent else None


def install() -> None:
    """Install what the lock file names, unless that has been done; parallel workers wait for each other."""
    with _LOCK.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _INSTALLED.exists() and _INSTALLED.stat().st_mtime >= _LOCK.stat().st_mtime:
            return
        npm = shutil.which("npm")
        assert npm
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=JUDGES, check=True, capture_output=True, timeout=300)

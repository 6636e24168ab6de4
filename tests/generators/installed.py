"""Foreign generators, each as its lock file has it, installed once; the product depends on none of them."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

from tests.outside.processes import PROJECT

HERE = Path(__file__).parent
NODE = HERE / "node_modules" / ".bin"
# Apart from our environment, whose packages would otherwise have to agree with theirs.
PYTHON = PROJECT / "build" / "generators" / "bin"


def missing() -> str | None:
    """Why the generators for JavaScript cannot run here, or None."""
    absent = [program for program in ("node", "npm") if shutil.which(program) is None]
    return f"{' and '.join(absent)} not found: install Node.js 20 to run the generators" if absent else None


def install_node() -> None:
    """Install what package-lock.json names, without running anybody's install script."""
    npm = shutil.which("npm")
    assert npm
    _once(
        HERE / "package-lock.json",
        HERE / "node_modules" / ".package-lock.json",
        [[npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]],
    )


def install_python() -> None:
    """Install what requirements.lock names into an environment of its own."""
    lock, done = HERE / "requirements.lock", PYTHON.parent / "done"
    made = [sys.executable, "-m", "venv", "--clear", str(PYTHON.parent)]
    _once(lock, done, [made, [str(PYTHON / "pip"), "install", "--quiet", "--require-hashes", "-r", str(lock)]])


def _once(lock: Path, done: Path, commands: list[list[str]]) -> None:
    """Run commands unless what they leave behind is newer than the lock; parallel workers wait for each other."""
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if done.exists() and done.stat().st_mtime >= lock.stat().st_mtime:
            return
        for command in commands:
            subprocess.run(command, cwd=HERE, check=True, capture_output=True, timeout=300)
        done.touch()

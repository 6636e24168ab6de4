"""Foreign generators, each as its lock file has it, installed once; the product depends on none of them."""

import fcntl
import subprocess
import sys
from pathlib import Path

from tests.outside import npm
from tests.outside.npm import missing
from tests.outside.processes import PROJECT

__all__ = ["NODE", "PYTHON", "install_node", "install_python", "missing"]

HERE = Path(__file__).parent
NODE = HERE / "node_modules" / ".bin"
# Apart from our environment, whose packages would otherwise have to agree with theirs.
PYTHON = PROJECT / "build" / "generators" / "bin"


def install_node() -> None:
    """Install what package-lock.json names."""
    npm.install(HERE)


def install_python() -> None:
    """Install what requirements.lock names into an environment of its own."""
    lock, done = HERE / "requirements.lock", PYTHON.parent / "done"
    commands = [
        [sys.executable, "-m", "venv", "--clear", str(PYTHON.parent)],
        [str(PYTHON / "pip"), "install", "--quiet", "--require-hashes", "-r", str(lock)],
    ]
    with lock.open() as held:
        # Parallel workers wait for the one that installs.
        fcntl.flock(held, fcntl.LOCK_EX)
        if done.exists() and done.stat().st_mtime >= lock.stat().st_mtime:
            return
        for command in commands:
            subprocess.run(command, cwd=HERE, check=True, capture_output=True, timeout=300)
        done.touch()

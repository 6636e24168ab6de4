"""Installs foreign packages for Python once, from the lock file of a folder, apart from our environment.

Our packages would otherwise have to agree with theirs.
"""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

from tests.outside.processes import PROJECT


def folder_of(name: str) -> Path:
    """The folder of programs of the environment with this name."""
    return PROJECT / "build" / name / "bin"


def install(folder: Path, name: str) -> Path:
    """Install what the folder's requirements.lock names; give the interpreter. Parallel workers wait for each other."""
    lock, python = folder / "requirements.lock", folder_of(name) / "python"
    environment, done = str(python.parents[1]), python.parents[1] / "done"
    given = ["--quiet", "--require-hashes", "-r", str(lock)]
    commands = [[sys.executable, "-m", "venv", "--clear", environment], [str(python), "-m", "pip", "install", *given]]
    if uv := shutil.which("uv"):
        commands = [
            [uv, "venv", "--quiet", "--clear", "--python", sys.executable, environment],
            [uv, "pip", "install", "--python", str(python), *given],
        ]
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not done.exists() or done.stat().st_mtime < lock.stat().st_mtime:
            for command in commands:
                subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
            done.touch()
    return python

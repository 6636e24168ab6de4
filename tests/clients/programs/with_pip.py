"""pip with an index of its own."""

import subprocess
import sys
from pathlib import Path

from steps import BASE, KEY, run, size_and_digest

INDEX = f"{BASE.replace('://', f'://agent:{KEY}@') if KEY else BASE}/simple/"


class Failed(Exception):
    """pip ended with a status that is not 0."""


def download() -> object:
    command = [sys.executable, "-m", "pip", "install", "-q", "--isolated", "--no-input", "--no-deps", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--index-url", INDEX, "--target", "target", "tools"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise Failed(done.stderr[-400:])
    return size_and_digest(Path("target/tools/file").read_bytes())


run({"download": download})

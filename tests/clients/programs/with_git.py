"""git over smart HTTP."""

import subprocess
from pathlib import Path

from steps import BASE, KEY, UPLOADED, run, size_and_digest

# In an address git sends user and password only after it was asked for them.
URL = f"{BASE.replace('://', f'://agent:{KEY}@') if KEY else BASE}/o/r.git"


class Failed(Exception):
    """git ended with a status that is not 0."""


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise Failed(done.stderr)
    return done.stdout


def call() -> str:
    branches = {line.rpartition("/")[2] for line in git("ls-remote", "--heads", URL).splitlines()}
    return " ".join(name for name in ("one", "two", "three") if name in branches)


def download() -> object:
    git("clone", "-q", URL, "clone")
    return size_and_digest(Path("clone/file").read_bytes())


def upload() -> object:
    """Push a commit, and look at it in a fresh clone."""
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    git("clone", "-q", URL, "work")
    Path("work/up").write_bytes(UPLOADED)
    git("-C", "work", "checkout", "-q", "-B", "a/b")
    git("-C", "work", "add", "up")
    git("-C", "work", *who, "commit", "-q", "-m", "m")
    git("-C", "work", "push", "-q", "-f", "origin", "a/b")
    git("clone", "-q", "-b", "a/b", URL, "again")
    return size_and_digest(Path("again/up").read_bytes())


run({"call": call, "download": download, "upload": upload})

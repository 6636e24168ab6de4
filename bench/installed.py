"""The sources that a deployment runs: this tree's, or another revision's, checked out while it is measured."""

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ops.settings import MODULES

PROJECT = Path(__file__).parents[1]
_LOCK = "requirements.lock"
_STARTED = ("signer", "identity", "api")


class Tree(msgspec.Struct, frozen=True):
    """Sources, and the interpreter that has the packages they are locked to."""

    path: Path
    python: Path
    revision: str

    @property
    def modules(self) -> dict[str, str]:
        """The module that Python starts for each process; older revisions have fewer."""
        return {name: module for name, module in MODULES.items() if (self.path / module / "__main__.py").exists()}

    @property
    def started(self) -> tuple[str, ...]:
        """The processes that answer requests, in the order in which they start."""
        return tuple(name for name in _STARTED if name in self.modules)

    def migrate(self, owner_url: str, home: Path) -> None:
        """Bring a database up to date as this revision does, and write each process' address below `home`."""
        # Where the command was before it had a package of its own.
        command = "ops" if (self.path / "ops").is_dir() else "custody.cli"
        given = {"PYTHONPATH": str(self.path), "SERVICE_HOME": str(home), "SERVICE_DATABASE_URL": owner_url}
        given["SERVICE_DATABASE_HOSTS"] = "2"
        done = subprocess.run(
            [self.python, "-P", "-m", command, "migrate"],
            env=os.environ | given,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{self.revision} does not migrate: {(done.stderr or done.stdout)[-2000:]}")


@functools.cache
def here() -> Tree:
    """This tree as it is; `+` behind the revision says that it has changes that are not committed."""
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return Tree(PROJECT, Path(sys.executable), _name("HEAD") + ("+" if changed else ""))


@contextmanager
def checked_out(revision: str) -> Iterator[Tree]:
    """Another revision in a worktree of its own; with packages of its own where it is locked to others."""
    name = _name(revision)
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        path = Path(folder, "tree")
        _git("worktree", "add", "--quiet", "--detach", str(path), name)
        try:
            python = Path(sys.executable)
            if (path / _LOCK).read_bytes() != (PROJECT / _LOCK).read_bytes():
                subprocess.run([path / "scripts" / "set-up", "--quiet"], check=True)
                python = path / ".venv" / "bin" / "python"
            yield Tree(path, python, name)
        finally:
            _git("worktree", "remove", "--force", str(path))


def _name(revision: str) -> str:
    """A release's name, or the beginning of the commit's."""
    tags = _git("tag", "--points-at", revision).split()
    return tags[0] if tags else _git("rev-parse", "--short", "--verify", f"{revision}^{{commit}}")


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", PROJECT, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()

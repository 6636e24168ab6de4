"""Programs that no wheel brings: the ones on PATH, or Debian's, where these tests may install packages."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

# A browser is a hundred megabytes; a mirror that does not answer at all is given up much earlier.
_LONGEST_SECONDS = 600
_APT = ("apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::http::Timeout=30")
# Nobody reads the manual here, and to index what it gained takes as long as the rest of an installation.
_NO_MANUAL = ("-o", "DPkg::Options::=--path-exclude=/usr/share/man/*")
_POLICY = Path("/usr/sbin/policy-rc.d")
_NO_DAEMONS = "#!/bin/sh\nexit 101\n"


class Program(msgspec.Struct, frozen=True):
    """A program's name on PATH, and the Debian packages that bring it, the best first."""

    commands: tuple[str, ...]
    packages: tuple[str, ...]


class ProgramMissing(RuntimeError):
    """A program of the tests is not here and could not be installed; the message says what to install."""


CHROMIUM = Program(("chromium", "chromium-browser", "google-chrome"), ("chromium",))
# Debian keeps it off the PATH, beside those of other versions.
OLDER_POSTGRES = Program(("/usr/lib/postgresql/15/bin/initdb",), ("postgresql-15",))
# Signs for pysaml2, which knows no library that does.
XMLSEC = Program(("xmlsec1",), ("xmlsec1",))
NGINX = Program(("nginx", "/usr/sbin/nginx"), ("nginx-light", "nginx"))
DEBOOTSTRAP = Program(("debootstrap", "/usr/sbin/debootstrap"), ("debootstrap",))
POOLER = Program(("pgbouncer", "/usr/sbin/pgbouncer"), ("pgbouncer",))
KEY_VALUE_STORE = Program(("valkey-server", "redis-server"), ("valkey-server", "redis-server"))
PROMETHEUS, PROMTOOL = Program(("prometheus",), ("prometheus",)), Program(("promtool",), ("prometheus",))


def install(program: Program) -> Path:
    """Find the program; root on Debian gets it installed, and parallel workers wait for the one that does it."""
    if found := _find(program):
        return found
    why = _cannot_install()
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not why and not _find(program):
            why = _install(program)
    if found := _find(program):
        return found
    raise ProgramMissing(f"{program.commands[-1]} is missing: apt-get install {program.packages[-1]} ({why})")


def _find(program: Program) -> Path | None:
    return next((Path(path) for command in program.commands if (path := shutil.which(command))), None)


def _cannot_install() -> str:
    if shutil.which("apt-get") is None:
        return "there is no apt-get here to do it"
    return "" if os.geteuid() == 0 else "only root can do it"


def _install(program: Program) -> str:
    """Give what went wrong, or nothing."""
    said = ""
    # The index may be empty, or so old that the mirror has other versions by now.
    for fresh in (False, True):
        if fresh:
            said = _apt("update")
        if package := next(filter(_knows, program.packages), None):
            said = _apt("install", "--no-install-recommends", *_NO_MANUAL, package)
            if not said:
                return ""
    return said or "no package source has it"


def _knows(package: str) -> bool:
    asked = subprocess.run(["apt-cache", "show", package], capture_output=True, timeout=60, check=False)
    return asked.returncode == 0 and bool(asked.stdout)


def _apt(*what: str) -> str:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _without_daemons():
        done = subprocess.run(
            [*_APT, *what],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LONGEST_SECONDS,
            check=False,
        )
    lines = done.stderr.strip().splitlines() or [f"apt-get ended with {done.returncode}"]
    return lines[-1] if done.returncode else ""


@contextmanager
def _without_daemons() -> Iterator[None]:
    """A package of a server starts it at once; the tests start their own."""
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text(_NO_DAEMONS)
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink()

"""A bare Debian in a folder, as images begin with: from the mirror that apt uses here, and kept for later runs."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from tests.outside.programs import DEBOOTSTRAP, ProgramMissing, install

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "custody-tests"
_LONGEST_SECONDS = 900
# What no step of an image looks at.
_NOT_NEEDED = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale")


def bare_debian() -> Path:
    """The folder; nobody may write into it. ProgramMissing where this machine cannot make one."""
    if os.geteuid() != 0:
        raise ProgramMissing("only root can make a root folder of Debian")
    suite, mirror = _source()
    program = install(DEBOOTSTRAP)
    _CACHE.mkdir(parents=True, exist_ok=True)
    kept = _CACHE / f"{suite}-{os.uname().machine}"
    with (_CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _make(program, suite, mirror, kept)
    return kept


def _source() -> tuple[str, str]:
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    suite = release.get("VERSION_CODENAME", "").strip('"')
    if shutil.which("apt-get") is None:
        raise ProgramMissing("there is no apt-get here that knows a mirror")
    asked = ["apt-get", "indextargets", "--format", "$(CODENAME) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"]
    said = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    mirrors = [line.split()[2] for line in said if line.split()[:2] == [suite, "main"]]
    if not mirrors:
        raise ProgramMissing(f"apt knows no mirror of {suite}")
    return suite, mirrors[0]


def _make(program: Path, suite: str, mirror: str, kept: Path) -> None:
    draft = kept.with_name(f".{kept.name}")
    shutil.rmtree(draft, ignore_errors=True)
    done = subprocess.run(
        [program, "--variant=minbase", suite, draft, mirror],
        capture_output=True,
        text=True,
        timeout=_LONGEST_SECONDS,
        check=False,
    )
    if done.returncode:
        raise ProgramMissing(f"debootstrap: {done.stdout.strip().splitlines()[-1:] or done.stderr}")
    for name in _NOT_NEEDED:
        shutil.rmtree(draft / name, ignore_errors=True)
    draft.rename(kept)

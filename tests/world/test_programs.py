"""Programs that the tests need from Debian: installed once with the rights for it, and named where they are missing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.outside.processes import PROJECT
from tests.outside.programs import Program, ProgramMissing, install

NOTHING = Program(("no-such-program",), ("no-such-package",))
BOTH = Program(("better", "usual"), ("better-package", "usual-package"))
ASK = f"from tests.outside.programs import *; print(install(Program({BOTH.commands}, {BOTH.packages})))"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root installs packages")
# They know one package, after an update, and write down what they were asked and whether daemons may start.
APT_GET = """#!/bin/sh
for last; do :; done
echo "$last" >>{0}/asked
/usr/sbin/policy-rc.d; echo "$?" >>{0}/daemons
case $* in *update*) touch {0}/index ;; *install*) echo '#!/bin/sh' >{0}/usual; chmod 755 {0}/usual ;; esac
"""
APT_CACHE = """#!/bin/sh
[ -e {0}/index ] && [ "$2" = usual-package ] && echo "Package: $2"
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder where programs are."""
    for name in ("sh", "touch", "chmod"):
        (tmp_path / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def add(path: Path, name: str, text: str) -> None:
    (path / name).write_text(text.format(path))
    (path / name).chmod(0o755)


def test_the_best_program_on_the_path_is_taken(path: Path) -> None:
    add(path, "usual", "")
    assert install(BOTH) == path / "usual"

    add(path, "better", "")
    assert install(BOTH) == path / "better"


def test_a_missing_program_is_named_with_its_package(path: Path) -> None:
    with pytest.raises(ProgramMissing, match="no-such-program is missing: apt-get install no-such-package"):
        install(NOTHING)


@as_root
def test_a_package_that_no_source_has_is_named_too(path: Path) -> None:
    add(path, "apt-get", APT_GET)
    add(path, "apt-cache", APT_CACHE)

    with pytest.raises(ProgramMissing, match="no package source has it"):
        install(NOTHING)


@as_root
def test_one_worker_installs_without_a_daemon_and_the_others_wait(path: Path) -> None:
    add(path, "apt-get", APT_GET)
    add(path, "apt-cache", APT_CACHE)
    ask = [sys.executable, "-c", ASK]

    workers = [subprocess.Popen(ask, cwd=PROJECT, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [worker.communicate(timeout=120)[0] for worker in workers]

    assert said == [f"{path}/usual\n"] * 3
    assert (path / "asked").read_text().split() == ["update", "usual-package"]
    assert (path / "daemons").read_text().split() == ["101", "101"]

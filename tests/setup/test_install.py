"""`pip install .` gives a command that works anywhere: packages, SQL, pages and styles come with it."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.fixtures.imports import PACKAGES
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.long

_STATEMENTS = "from ops.migrate import names; import custody; print(len(names()), custody.__file__)"


class Installed:
    """An environment into which a copy of the checkout was installed; other packages are those of the checkout."""

    def __init__(self, folder: Path) -> None:
        source = folder / "source"
        for name in PACKAGES:
            shutil.copytree(PROJECT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(PROJECT / name, source / name)
        self.home = folder / "home"
        self.venv = folder / "venv"
        self._succeed(sys.executable, "-m", "venv", str(self.venv))
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.packages = self.venv / "lib" / version / "site-packages"
        (self.packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        offline = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
        self._succeed(str(self.venv / "bin/python"), "-m", "pip", "install", *offline, str(source))

    def run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one of its programs, far from the checkout."""
        environment = {"PATH": "/usr/bin:/bin", "SERVICE_HOME": str(self.home), "HOME": str(self.home)}
        command = [str(self.venv / "bin" / program), *words]
        return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)

    def _succeed(self, *command: str) -> None:
        answer = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"))


def test_the_command_explains_itself(installed: Installed) -> None:
    answer = installed.run("custody", "--help")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "doctor" in answer.stdout


def test_the_command_prints_the_contract(installed: Installed) -> None:
    answer = installed.run("custody", "openapi")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == (PROJECT / "openapi.json").read_text()


def test_the_doctor_says_what_is_missing(installed: Installed) -> None:
    answer = installed.run("custody", "doctor")
    assert answer.returncode in (0, 1), answer.stderr
    assert "Traceback" not in answer.stdout + answer.stderr
    assert "ok     python: " in answer.stdout


def test_the_console_explains_itself(installed: Installed) -> None:
    answer = installed.run("custody", "console", "--help")
    assert answer.returncode == 0, answer.stderr
    assert "--web" in answer.stdout


def test_the_installation_is_whole_and_is_what_runs(installed: Installed) -> None:
    answer = installed.run("python", "-P", "-c", _STATEMENTS)
    assert answer.returncode == 0, answer.stderr
    migrations, place = answer.stdout.split()
    assert int(migrations) > 0
    assert Path(place).is_relative_to(installed.packages)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_of_a_package_is_installed(installed: Installed, package: str) -> None:
    files = {file.relative_to(PROJECT) for file in (PROJECT / package).rglob("*") if file.is_file()}
    wanted = {file for file in files if file.suffix not in {".pyc", ".md"}}
    assert {file for file in wanted if not (installed.packages / file).is_file()} == set()

"""A wheel gives a command that works anywhere: packages, SQL, pages, styles and the commit come with it."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import httpx
import pytest

from custody.version import VERSION
from tests.fixtures.eventually import eventually
from tests.fixtures.imports import PACKAGES
from tests.fixtures.server import START_SECONDS, STOP_SECONDS, free_ports
from tests.outside.processes import PROJECT, die_with

pytestmark = pytest.mark.long

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_PORTS = (
    *("SERVICE_API_PORT", "SERVICE_PROXY_PORT"),
    *(f"SERVICE_METRICS_PORT_{one}" for one in ("API", "PROXY", "SCHEDULER")),
)
_STATEMENTS = "from ops.migrate import names; import custody; print(len(names()), custody.__file__)"


class Installed:
    """An environment with the wheel of a copy of the checkout; other packages are those of the checkout."""

    def __init__(self, folder: Path) -> None:
        source = folder / "source"
        for name in PACKAGES:
            shutil.copytree(PROJECT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "setup.py", "README.md"):
            shutil.copy(PROJECT / name, source / name)
        (source / ".git").mkdir()
        (source / ".git/HEAD").write_text(f"{COMMIT}\n")
        self.home = folder / "home"
        self.venv = folder / "venv"
        self._succeed(sys.executable, "-m", "venv", str(self.venv))
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.packages = self.venv / "lib" / version / "site-packages"
        (self.packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
        offline = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check")
        pip = (str(self.venv / "bin/python"), "-m", "pip")
        self._succeed(*pip, "wheel", *offline, "--wheel-dir", str(folder), str(source))
        # Nothing of the checkout is left when the wheel is installed.
        shutil.rmtree(source)
        [wheel] = folder.glob("custody-*.whl")
        self._succeed(*pip, "install", *offline, str(wheel))

    def run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one of its programs, far from the checkout."""
        environment = {"PATH": "/usr/bin:/bin", "SERVICE_HOME": str(self.home), "HOME": str(self.home)}
        command = [str(self.venv / "bin" / program), *words]
        return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False)

    def _succeed(self, *command: str) -> None:
        answer = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"))


def test_the_command_explains_itself(installation: Installed) -> None:
    answer = installation.run("custody", "--help")
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "doctor" in answer.stdout


def test_the_command_prints_the_contract(installation: Installed) -> None:
    answer = installation.run("custody", "openapi")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == (PROJECT / "openapi.json").read_text()


def test_the_command_names_the_commit_that_the_wheel_is_of(installation: Installed) -> None:
    answer = installation.run("custody", "--version")
    assert answer.stdout == f"custody {VERSION}, commit {COMMIT}\n"


def test_everything_starts_from_the_wheel_and_stops(installation: Installed, tmp_path: Path) -> None:
    ports = dict(zip(_PORTS, map(str, free_ports(len(_PORTS))), strict=True))
    log = tmp_path / "up.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [installation.venv / "bin/custody", "up", "--no-demo"],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **ports},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
        )

    def ready() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            answer = httpx.get(f"http://127.0.0.1:{ports['SERVICE_API_PORT']}/ready", trust_env=False)
        except httpx.TransportError:
            return False
        return answer.status_code == 200

    try:
        eventually(ready, seconds=START_SECONDS, about=log.read_text)
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_SECONDS) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()
    # In the folder where it was typed, as in a checkout.
    assert (tmp_path / ".custody/master.key").exists()


def test_the_doctor_says_what_is_missing(installation: Installed) -> None:
    answer = installation.run("custody", "doctor")
    assert answer.returncode in (0, 1), answer.stderr
    assert "Traceback" not in answer.stdout + answer.stderr
    assert "ok     python: " in answer.stdout
    # No Makefile is there, and no script.
    assert "start it with `custody up`" in answer.stdout
    assert "make run" not in answer.stdout
    assert "scripts/" not in answer.stdout


def test_the_console_explains_itself(installation: Installed) -> None:
    answer = installation.run("custody", "console", "--help")
    assert answer.returncode == 0, answer.stderr
    assert "--web" in answer.stdout


def test_the_installation_is_whole_and_is_what_runs(installation: Installed) -> None:
    answer = installation.run("python", "-P", "-c", _STATEMENTS)
    assert answer.returncode == 0, answer.stderr
    migrations, place = answer.stdout.split()
    assert int(migrations) > 0
    assert Path(place).is_relative_to(installation.packages)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_of_a_package_is_installed(installation: Installed, package: str) -> None:
    files = {file.relative_to(PROJECT) for file in (PROJECT / package).rglob("*") if file.is_file()}
    wanted = {file for file in files if file.suffix not in {".pyc", ".md"}}
    assert {file for file in wanted if not (installation.packages / file).is_file()} == set()

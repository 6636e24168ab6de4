"""Each lock installs as it is installed: wheels by their hashes, for every Python and machine that is promised.

Wheels for other Pythons and machines are chosen by their tags, so no such machine is needed.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.fixtures.images import stages
from tests.fixtures.imports import canonical, pins, pythons
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.long

IMAGES = ("api", "identity", "migrate", "proxy", "scheduler", "signer")
IN_IMAGES = (PROJECT / ".python-version").read_text().strip()
# Lock and name of what is published as source alone, as the Dockerfile builds it.
BUILT = {tuple(rest.split()[1:]) for stage in stages().values() for rest in stage.all("RUN") if "image-wheel" in rest}
# From glibc 2.28 on, which Debian 10 has.
_TAGS = ("manylinux1", "manylinux2010", "manylinux2014", *(f"manylinux_2_{minor}" for minor in range(5, 29)))
_QUIET = ("--quiet", "--disable-pip-version-check", "--no-input")


class Wheels:
    """Downloads, by Python and machine, made once for this module."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        subprocess.run([sys.executable, "-m", "venv", folder / "pip"], check=True)
        self.download = cache(self._download)

    def folder(self, version: str, machine: str) -> Path:
        """Where the wheels for such a machine lie."""
        return self._folder / f"{version}-{machine}"

    def _download(self, version: str, machine: str, locks: tuple[str, ...]) -> str:
        """Fetch what locks name for such a machine; what pip complained of, or nothing."""
        file = self._folder / f"{version}-{machine}.txt"
        file.write_text("".join(sorted(_wanted(version, machine, locks))))
        wheels = ("--no-deps", "--only-binary=:all:", "--require-hashes", "--implementation=cp")
        tags = [f"--platform={tag}_{machine}" for tag in _TAGS]
        abis = [f"--abi={abi}" for abi in (f"cp{version.replace('.', '')}", "abi3", "none")]
        command = [self._folder / "pip/bin/python", "-m", "pip", "download", *_QUIET, *wheels, *tags, *abis]
        whither = (f"--python-version={version}", "--dest", self.folder(version, machine), "--requirement", file)
        done = subprocess.run([*command, *whither], cwd="/", capture_output=True, text=True, timeout=900, check=False)
        return done.stderr if done.returncode else ""


def _wanted(version: str, machine: str, locks: tuple[str, ...]) -> set[str]:
    """The lines of locks that count on such a machine; pip itself would ask what counts on this one."""
    linux = {"sys_platform": "linux", "os_name": "posix", "platform_system": "Linux", "platform_machine": machine}
    python = {"python_version": version, "python_full_version": f"{version}.0"}
    found, built = set(), {name for _, name in BUILT}
    for lock in locks:
        for pin, hashes in pins(PROJECT / lock).items():
            marker = Requirement(marked(lock)[pin]).marker
            if canonical(pin.split("==")[0]) not in built and (marker is None or marker.evaluate(linux | python)):
                found.add(f"{pin} {' '.join(f'--hash={one}' for one in hashes)}\n")
    return found


@cache
def marked(lock: str) -> dict[str, str]:
    """Each requirement of a lock with its marker, by what is pinned."""
    lines = (line.rstrip(" \\") for line in (PROJECT / lock).read_text().splitlines())
    return {line.split()[0]: line for line in lines if re.match(r"[A-Za-z0-9]", line)}


def images(version: str, machine: str) -> tuple[str, str, tuple[str, ...]]:
    """All locks of images, for such a machine."""
    return version, machine, tuple(f"locks/{name}.lock" for name in IMAGES)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return Wheels(tmp_path_factory.mktemp("wheels"))


@pytest.mark.parametrize("version", pythons())
def test_a_checkout_has_wheels_for_every_python_that_is_promised(wheels: Wheels, version: str) -> None:
    assert wheels.download(version, "x86_64", ("requirements.lock",)) == ""


def test_images_have_wheels_for_both_machines(wheels: Wheels) -> None:
    assert wheels.download(*images(IN_IMAGES, "aarch64")) == ""
    # And x86-64, for every Python: what the checkout has, with the same hashes.
    x86_64 = [_wanted(IN_IMAGES, "x86_64", locks) for locks in (images("", "")[2], ("requirements.lock",))]
    assert x86_64[0] <= x86_64[1]


def test_the_first_python_beyond_the_promise_lacks_a_wheel(wheels: Wheels) -> None:
    """The control; once it installs, promise it."""
    major, minor = pythons()[-1].split(".")

    said = wheels.download(f"{major}.{int(minor) + 1}", "x86_64", ("locks/signer.lock",))

    assert "No matching distribution found for coincurve" in said


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the stages do that build from source: the folder with their wheels."""
    folder = _checkout(tmp_path_factory.mktemp("built"))
    for lock, name in BUILT:
        _script(folder, "image-wheel", lock, name)
    return folder / "wheels"


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_installs_its_lock_offline_after_the_download(
    wheels: Wheels, built: Path, tmp_path: Path, name: str
) -> None:
    version, machine = f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine()
    if machine == "x86_64":
        assert wheels.download(version, machine, ("requirements.lock",)) == ""
    elif wheels.download(*images(version, machine)):
        pytest.skip(f"images have Python {IN_IMAGES}, and this is {version} on {machine}")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels.folder(version, machine))}
    folder = _checkout(tmp_path)
    taken = [one for one in built.glob("*.whl") if (name, one.name.split("-")[0]) in BUILT]
    if taken:
        # The control: without it nothing is installed from a source.
        assert "No matching distribution found" in _script(folder, "image-packages", name, succeeds=False, **offline)
        shutil.copytree(built, folder / "wheels", ignore=lambda _, names: [one for one in names if "whl" not in one])

    _script(folder, "image-packages", name, **offline)

    found = {canonical(one.name.split("-")[0]) for one in folder.glob(".venv/lib/*/site-packages/*.dist-info")}
    assert found == {canonical(pin.split("==")[0]) for pin in _pinned(version, machine, name)}


def _pinned(version: str, machine: str, name: str) -> set[str]:
    wanted = {line.split()[0] for line in _wanted(version, machine, (f"locks/{name}.lock",))}
    return wanted | {pin for lock, built in BUILT if lock == name for pin in [f"{built}=="]}


def _checkout(folder: Path) -> Path:
    """What the first stage of the Dockerfile copies, and the locks."""
    for name in ("scripts", "locks"):
        shutil.copytree(PROJECT / name, folder / name)
    shutil.copy(PROJECT / ".python-version", folder)
    return folder


def _script(folder: Path, script: str, *words: str, succeeds: bool = True, **given: str) -> str:
    """Run one as an image does, which has no uv; what it complained of."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "LD_"))}
    environment = {**kept, "PATH": "/usr/bin:/bin", "HOME": str(folder), "PROJECT_PYTHON": sys.executable, **given}
    done = subprocess.run(
        [folder / "scripts" / script, *words], env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert (done.returncode == 0) is succeeds, done.stdout + done.stderr
    return done.stderr

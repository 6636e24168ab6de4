"""Each lock installs as it is installed: wheels by their hashes, for every Python and machine that is promised.

Wheels for other Pythons and machines are chosen by their tags, so no such machine is needed.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.imports import canonical, pythons
from tests.fixtures.wheels import BUILT, IN_IMAGES, Wheels, images, wanted_lines
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return Wheels(tmp_path_factory.mktemp("wheels"))


@pytest.mark.parametrize("version", pythons())
def test_a_checkout_has_wheels_for_every_python_that_is_promised(wheels: Wheels, version: str) -> None:
    assert wheels.download(version, "x86_64", ("requirements.lock",)) == ""


def test_images_have_wheels_for_both_machines(wheels: Wheels) -> None:
    assert wheels.download(*images(IN_IMAGES, "aarch64")) == ""
    # And x86-64, for every Python: what the checkout has, with the same hashes.
    x86_64 = [wanted_lines(IN_IMAGES, "x86_64", locks) for locks in (images("", "")[2], ("requirements.lock",))]
    assert x86_64[0] <= x86_64[1]


@pytest.mark.parametrize("version", pythons())
@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_openers_have_wheels_for_every_python_and_both_machines(wheels: Wheels, version: str, machine: str) -> None:
    locks = tuple(f"locks/{file.name}" for file in sorted((PROJECT / "locks").glob("opener*.lock")))
    assert "locks/opener-gcp.lock" in locks
    assert wheels.download(version, machine, locks) == ""


def test_the_first_python_beyond_the_promise_lacks_a_wheel(wheels: Wheels) -> None:
    """The control; once it installs, promise it."""
    major, minor = pythons()[-1].split(".")

    said = wheels.download(f"{major}.{int(minor) + 1}", "x86_64", ("locks/signer.lock",))

    assert "No matching distribution found for coincurve" in said


@pytest.fixture(scope="module")
def wheel_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheels that the stages build from source."""
    folder = _checkout(tmp_path_factory.mktemp("built"))
    for lock, name in BUILT:
        _script(folder, "image-wheel", lock, name)
    return folder / "wheels"


# The others are installed where whole images are built.
@pytest.mark.parametrize("name", sorted({lock for lock, _ in BUILT}))
def test_an_image_installs_its_lock_offline_after_the_download(
    wheels: Wheels, wheel_folder: Path, tmp_path: Path, name: str
) -> None:
    version, machine = f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine()
    if machine == "x86_64":
        assert wheels.download(version, machine, ("requirements.lock",)) == ""
    elif wheels.download(*images(version, machine)):
        pytest.skip(f"images have Python {IN_IMAGES}, and this is {version} on {machine}")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels.folder(version, machine))}
    folder = _checkout(tmp_path)
    taken = [one for one in wheel_folder.glob("*.whl") if (name, one.name.split("-")[0]) in BUILT]
    if taken:
        # The control: without it nothing is installed from a source.
        assert "No matching distribution found" in _script(folder, "image-packages", name, succeeds=False, **offline)
        shutil.copytree(
            wheel_folder, folder / "wheels", ignore=lambda _, names: [one for one in names if "whl" not in one]
        )

    _script(folder, "image-packages", name, **offline)

    found = {canonical(one.name.split("-")[0]) for one in folder.glob(".venv/lib/*/site-packages/*.dist-info")}
    assert found == {canonical(pin.split("==")[0]) for pin in _pins(version, machine, name)}


def _pins(version: str, machine: str, name: str) -> set[str]:
    lines = wanted_lines(version, machine, (f"locks/{name}.lock",))
    return {line.split()[0] for line in lines} | {f"{built}==" for lock, built in BUILT if lock == name}


def _checkout(folder: Path) -> Path:
    """Copy what the first stage of the Dockerfile copies, and the locks."""
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

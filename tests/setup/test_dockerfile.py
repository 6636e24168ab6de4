"""Needs of the Dockerfile are there and work, as far as a machine without a container engine can tell.

Each COPY is made into a folder, and what is in that folder is what runs; `test_images.py` builds whole images.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ops import healthy, places
from ops.settings import MODULES, PROCESSES
from tests.fixtures.images import Stage, stages
from tests.fixtures.imports import canonical, pins
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.long

STAGES = stages()
IGNORED = (PROJECT / ".dockerignore").read_text().splitlines()
# Everything that is not in the lock of the image is hidden, whether something needs it or only asks for it.
_IMPORT = """
import importlib, importlib.metadata, re, sys
locked, modules = set(sys.argv[1].split()), sys.argv[2].split()
of = importlib.metadata.packages_distributions()
class Hidden:
    def find_spec(self, name, *_):
        names = {re.sub(r"[-_.]+", "-", found).lower() for found in of.get(name.split(".")[0], [])}
        if names and not names & locked:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Hidden())
for module in modules:
    importlib.import_module(module)
print(sys.modules["custody"].__file__)
"""
# What is started in each image; the last two of `migrate` are what its library loads by name.
STARTED = {process: (f"{MODULES[process]}.__main__", "ops.main", "ops.healthy") for process in PROCESSES}
STARTED["signer"] += ("signer.verify", "ops.keys", "ops.restore")
STARTED["migrate"] = (
    *("ops.main", "ops.migrate", "ops.backup", "ops.restore", "ops.restore_rows"),
    *("tortoise.migrations.executor", "tortoise.backends.asyncpg"),
)
STARTED["opener"] = ("openers.waiting", "openers.kinds.people", "openers.kinds.transit", "ops.main", "ops.unlock")
# A package of each lock that the image cannot start without.
NEEDED = {
    "signer": "coincurve",
    "identity": "webauthn",
    "api": "sanic",
    "scheduler": "apscheduler",
    "proxy": "mitmproxy",
    "migrate": "tortoise-orm",
    "opener": "shamir-mnemonic",
}
# The kinds of holder whose packages an image may have; it has one of them.
KINDS = ("aws", "azure", "gcp", "people", "pkcs11")


def packages_of(target: str) -> set[str]:
    """The packages in the image of a target."""
    lock = "opener-people" if target == "opener" else target
    return {canonical(pin.split("==")[0]) for pin in pins(PROJECT / f"locks/{lock}.lock")}


def copies(stage: Stage) -> list[list[str]]:
    """List what is copied from the checkout, sources first, the place last."""
    return [rest.split() for rest in stage.all("COPY") if not rest.startswith("--from")]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with what is copied into the image of each target."""
    found = {target: tmp_path_factory.mktemp(target) for target in STARTED}
    for target, folder in found.items():
        for *sources, place in [*copies(STAGES["runtime"]), *copies(STAGES[target])]:
            for source in sources:
                shutil.copytree(PROJECT / source, folder / place, ignore=shutil.ignore_patterns("__pycache__"))
    return found


def inside(image: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python as the image would, from its own sources."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(image), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd="/", env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "source", [source for stage in STAGES.values() for *many, _ in copies(stage) for source in many]
)
def test_copied_files_exist_and_are_not_ignored(source: str) -> None:
    assert (PROJECT / source).exists()
    assert f"!{source.rstrip('/')}" in IGNORED


def test_nothing_else_gets_into_an_image() -> None:
    copied = {source.rstrip("/") for stage in STAGES.values() for *many, _ in copies(stage) for source in many}

    assert IGNORED[1] == "*"
    assert {line[1:] for line in IGNORED if line.startswith("!")} == copied


@pytest.mark.parametrize("target", STARTED)
def test_an_image_starts_with_the_packages_of_its_own_lock(images: dict[str, Path], target: str) -> None:
    image = images[target]
    compiled = [rest for stage in ("runtime", target) for rest in STAGES[stage].all("RUN") if "compileall" in rest]
    folders = [folder for rest in compiled for folder in rest.split(" -o 1 ")[1].split()]
    modules = " ".join(STARTED[target])

    answer = inside(image, "-P", "-c", _IMPORT, " ".join(packages_of(target)), modules)

    assert answer.returncode == 0, answer.stderr
    assert Path(answer.stdout.strip()).is_relative_to(image)
    assert sorted(folders) == sorted(folder.name for folder in image.iterdir())
    # The control: a package of the lock that is hidden is missed.
    hidden = NEEDED[target]
    lacking = inside(image, "-P", "-c", _IMPORT, " ".join(packages_of(target) - {hidden}), modules)
    assert (lacking.returncode, "ModuleNotFoundError" in lacking.stderr) == (1, True)


@pytest.mark.parametrize("target", ["migrate", *PROCESSES])
def test_an_image_takes_its_packages_from_the_stage_of_its_own_lock(target: str) -> None:
    packages = STAGES[f"{target}-packages"]
    assert packages.all("COPY")[-1] == f"locks/{target}.lock locks/"
    assert packages.all("RUN") == [f"scripts/image-packages {target}"]
    taken = [rest for rest in STAGES[target].all("COPY") if rest.startswith("--from")]
    assert taken == [f"--from={target}-packages /srv/custody/.venv .venv"]


def test_an_opener_takes_the_packages_of_the_kind_that_is_asked_for() -> None:
    packages = STAGES["opener-packages"]
    assert packages.all("COPY")[-1].split() == [*(f"locks/opener-{kind}.lock" for kind in KINDS), "locks/"]
    assert sorted(path.stem for path in (PROJECT / "locks").glob("opener-*")) == [f"opener-{kind}" for kind in KINDS]
    assert (packages.all("ARG"), packages.all("RUN")) == (["KIND=people"], ["scripts/image-packages opener-$KIND"])
    assert STAGES["opener"].all("COPY")[0] == "--from=opener-packages /srv/custody/.venv .venv"


def test_an_opener_runs_as_the_signer_does_and_is_asked_whether_the_key_is_there(images: dict[str, Path]) -> None:
    stage = STAGES["opener"]
    python, *words = stage.entrypoint
    assert (stage.built_on, stage.user, stage.command) == ("runtime", STAGES["signer"].user, [])
    assert (python, words) == ("/srv/custody/.venv/bin/python", ["-P", "-m", "openers.waiting"])
    assert stage.healthcheck == [*stage.entrypoint, "check"]
    for asked in (words, [*words, "check"]):
        answer = inside(images["opener"], *asked)
        assert (answer.returncode, "Traceback" in answer.stderr) == (os.EX_CONFIG, False)
        assert answer.stderr.startswith("SERVICE_MASTER_KEY_")
    # And people bring their shares in it.
    assert inside(images["opener"], "-P", "-m", "ops", "unlock", "--help").returncode == 0


def test_packages_are_installed_by_the_script_that_sets_up_a_checkout(tmp_path: Path) -> None:
    packages = STAGES["signer-packages"]
    for *sources, place in [*copies(STAGES["packages"]), *copies(packages)]:
        for source in sources:
            (tmp_path / place).mkdir(exist_ok=True)
            shutil.copy(PROJECT / source, tmp_path / place)
    # Downloading is not tried; that nothing but the lock is asked for, and by its hashes, is.
    (tmp_path / "locks/signer.lock").write_text("no-such-package-of-ours==1.0 --hash=sha256:" + "0" * 64 + "\n")
    pip = tmp_path / "asked"
    # It says which Python it is, and only notes the rest: nothing of this machine may be linked or uninstalled.
    python, uv = tmp_path / "python", tmp_path / "uv"
    python.write_text(
        f"#!/bin/sh\ncase $* in *sysconfig*) echo {tmp_path}/.venv/lib; exit;; esac\n"
        f'case $1 in -I) exec {sys.executable} "$@";; esac\necho "$@" >>{pip}\n'
    )
    python.chmod(0o755)
    uv.write_text(
        f"#!/bin/sh\ncase $1 in venv) mkdir -p .venv/bin .venv/lib; cp {python} .venv/bin/python;; esac\n"
        f'echo "$@" >>{pip}\n'
    )
    uv.chmod(0o755)

    answer = subprocess.run(
        ["sh", "-c", packages.all("RUN")[0]],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "UV": str(uv), "HOME": str(tmp_path), "PROJECT_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / ".venv/lib/custody-project.pth").read_text() == f"{tmp_path}\n"
    *_, installed, uninstalled, compiled = pip.read_text().splitlines()
    assert installed.endswith("--require-hashes -r locks/signer.lock")
    assert (uninstalled, compiled) == (
        "-m pip uninstall --quiet --yes pip",
        "-m compileall -q -o 0 -o 1 .venv/lib",
    )


@pytest.mark.parametrize("process", PROCESSES)
def test_each_process_has_a_target_with_its_own_uid_and_a_health_check(images: dict[str, Path], process: str) -> None:
    stage, uid = STAGES[process], places.UIDS[process]

    assert (stage.built_on, stage.user, stage.command) == ("runtime", f"{uid}:{uid}", [process])
    assert stage.healthcheck[1:] == ["-P", "-m", "ops.healthy", process]
    assert process in healthy.CHECKS
    # Nothing runs here, so it is asked and says no.
    answer = inside(images[process], *stage.healthcheck[1:])
    assert (answer.returncode, answer.stderr != "", "Traceback" in answer.stderr) == (1, True, False)


@pytest.mark.parametrize("target", ["migrate", *PROCESSES])
def test_the_entry_point_is_the_command_of_the_set_up_and_knows_the_target(
    images: dict[str, Path], target: str
) -> None:
    stage = STAGES[target]
    assert stage.entrypoint == ["/srv/custody/.venv/bin/custody"]
    assert '"$venv/bin/custody"' in (PROJECT / "scripts/set-up").read_text()

    answer = inside(images[target], "-P", "-m", "ops", *stage.command, "--help")

    assert answer.returncode == 0, answer.stderr


def test_no_stage_has_a_secret_in_its_environment_or_runs_as_root_but_the_one_that_must() -> None:
    named = {name for stage in STAGES.values() for name in stage.environment}
    last = [stage for stage in STAGES.values() if stage.command]

    assert not [name for name in named if re.search(r"PASSWORD|TOKEN|SECRET|DATABASE_URL|_KEY$", name)]
    assert [stage.name for stage in last if stage.user in {"", "0:0"}] == ["migrate"]

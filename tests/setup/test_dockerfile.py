"""What the Dockerfile needs is there and works, as far as a machine without a container engine can tell. Design 10.

Images are not built here. Each COPY is made into a folder, and what is in that folder is what runs.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from custody.cli import healthy, places
from custody.cli.settings import PROCESSES
from tests.fixtures.images import Stage, stages
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.long

STAGES = stages()
IGNORED = (PROJECT / ".dockerignore").read_text().splitlines()
# Everything that is not in the runtime lock is hidden, whether something needs it or only asks for it.
_IMPORT = """
import importlib.metadata, re, sys
locked = set(sys.argv[1].split())
of = importlib.metadata.packages_distributions()
class Hidden:
    def find_spec(self, name, *_):
        names = {re.sub(r"[-_.]+", "-", found).lower() for found in of.get(name.split(".")[0], [])}
        if names and not names & locked:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Hidden())
import api.__main__, custody.cli.main, custody.cli.migrate, custody.cli.healthy, proxy_addon.__main__
import scheduler.__main__, signer.__main__, tortoise.migrations.executor, tortoise.backends.asyncpg
print(custody.__file__)
"""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lock: str) -> dict[str, list[str]]:
    """Each pinned requirement with its hashes."""
    found: dict[str, list[str]] = {}
    for line in (PROJECT / lock).read_text().splitlines():
        if match := re.match(r"([A-Za-z0-9._-]+==\S+)", line):
            last = found.setdefault(match[1], [])
        else:
            last += re.findall(r"--hash=(\S+)", line)
    return found


def copies(stage: Stage) -> list[list[str]]:
    """What is copied from the checkout, sources first, the place last."""
    return [rest.split() for rest in stage.all("COPY") if not rest.startswith("--from")]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the runtime stage copies, with our own packages, which are those of the lock."""
    folder = tmp_path_factory.mktemp("image")
    for *sources, place in copies(STAGES["runtime"]):
        for source in sources:
            shutil.copytree(PROJECT / source, folder / place, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def inside(image: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python as the image would, from its own sources."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(image), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd="/", env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "source", [source for stage in STAGES.values() for *many, _ in copies(stage) for source in many]
)
def test_what_is_copied_is_there_and_not_ignored(source: str) -> None:
    assert (PROJECT / source).exists()
    assert f"!{source.rstrip('/')}" in IGNORED


def test_nothing_else_gets_into_an_image() -> None:
    copied = {source.rstrip("/") for stage in STAGES.values() for *many, _ in copies(stage) for source in many}

    assert IGNORED[1] == "*"
    assert {line[1:] for line in IGNORED if line.startswith("!")} == copied


def test_the_sources_in_the_image_compile_and_import_with_the_packages_of_the_runtime_lock(image: Path) -> None:
    (compiled,) = [rest for rest in STAGES["runtime"].all("RUN") if "compileall" in rest]
    folders = compiled.split(" -o 1 ")[1].split()

    locked = {canonical(pin.split("==")[0]) for pin in pins("requirements.runtime.lock")}

    answer = inside(image, "-P", "-c", _IMPORT, " ".join(locked))

    assert answer.returncode == 0, answer.stderr
    assert Path(answer.stdout.strip()).is_relative_to(image)
    assert sorted(folders) == sorted(folder.name for folder in image.iterdir())
    # The control: a package of the lock that is hidden is missed.
    lacking = inside(image, "-P", "-c", _IMPORT, " ".join(locked - {"sanic"}))
    assert (lacking.returncode, "ModuleNotFoundError: sanic" in lacking.stderr) == (1, True)


def test_the_runtime_lock_is_the_lock_without_what_only_development_needs() -> None:
    whole, runtime = pins("requirements.lock"), pins("requirements.runtime.lock")

    assert {pin: whole.get(pin) for pin in runtime} == runtime
    assert all(hashes for hashes in runtime.values())
    assert not {"pytest", "ruff", "mypy"} & {pin.split("==")[0] for pin in runtime}
    assert "pytest" in {pin.split("==")[0] for pin in whole}


def test_packages_are_installed_by_the_script_that_sets_up_a_checkout(tmp_path: Path) -> None:
    packages = STAGES["packages"]
    for *sources, place in copies(packages):
        for source in sources:
            (tmp_path / place).mkdir(exist_ok=True)
            shutil.copy(PROJECT / source, tmp_path / place)
    command = packages.all("RUN")[0].split(" && ")[0].replace("/usr/local/bin/python3", sys.executable)
    # Downloading is not tried; that nothing but the lock is asked for, and by its hashes, is.
    (tmp_path / "requirements.runtime.lock").write_text("no-such-package-of-ours==1.0 --hash=sha256:" + "0" * 64 + "\n")
    pip = tmp_path / "asked"
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\ncase $1 in venv) mkdir -p .venv/bin; ln -sf {sys.executable} .venv/bin/python;; esac\n'
                  f'echo "$@" >>{pip}\n')  # fmt: skip
    uv.chmod(0o755)

    answer = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "UV": str(uv), "HOME": str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert answer.returncode == 0, answer.stderr
    assert pip.read_text().splitlines()[-1].endswith("--require-hashes -r requirements.runtime.lock")


@pytest.mark.parametrize("process", PROCESSES)
def test_each_process_has_a_target_with_its_own_uid_and_a_health_check(image: Path, process: str) -> None:
    stage, uid = STAGES[process], places.UIDS[process]

    assert (stage.built_on, stage.user, stage.command) == ("runtime", f"{uid}:{uid}", [process])
    assert stage.healthcheck[1:] == ["-P", "-m", "custody.cli.healthy", process]
    assert process in healthy.CHECKS
    # Nothing runs here, so it is asked and says no.
    answer = inside(image, *stage.healthcheck[1:])
    assert (answer.returncode, answer.stderr != "", "Traceback" in answer.stderr) == (1, True, False)


@pytest.mark.parametrize("target", ["migrate", *PROCESSES])
def test_the_entry_point_is_the_command_of_the_set_up_and_knows_the_target(image: Path, target: str) -> None:
    stage = STAGES[target]
    assert stage.entrypoint == ["/srv/custody/.venv/bin/custody"]
    assert '"$venv/bin/custody"' in (PROJECT / "scripts/set-up").read_text()

    answer = inside(image, "-P", "-m", "custody.cli", *stage.command, "--help")

    assert answer.returncode == 0, answer.stderr


def test_no_stage_has_a_secret_in_its_environment_or_runs_as_root_but_the_one_that_must() -> None:
    named = {name for stage in STAGES.values() for name in stage.environment}
    last = [stage for stage in STAGES.values() if stage.command]

    assert not [name for name in named if re.search(r"PASSWORD|TOKEN|SECRET|DATABASE_URL|_KEY$", name)]
    assert [stage.name for stage in last if stage.user in {"", "0:0"}] == ["migrate"]

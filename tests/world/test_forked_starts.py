"""A process that tests fork begins, refuses and ends as one that an interpreter was started for."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ops.settings import MODULES
from tests.fixtures.eventually import eventually
from tests.fixtures.starts import Forked, Process, start
from tests.outside.proc import is_over
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every start is real")

FORKED = (*MODULES.values(), "tests.outside.hostile_scheduler", "tests.outside.rebinding_proxy")
ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "PYTHONPATH": str(PROJECT),
    "PYTHONWARNINGS": "error::ResourceWarning",
    "SERVICE_HOME": "/nowhere",
}
# It says what it found, and stays.
LOOK = "tests.outside.first_look"
# A process of the tests that will be killed: it says whom it forked.
PARENT = f"""
import signal
from tests.world.test_forked_starts import ENVIRONMENT, LOOK, start
with open({os.devnull!r}, "wb") as nobody:
    print(start(LOOK, "signer", environment=ENVIRONMENT, output=nobody, after="signer").pid, flush=True)
signal.pause()
"""


@contextmanager
def looking(file: Path, *, module: str = "signer", really: bool = False) -> Iterator[tuple[Process, dict[str, Any]]]:
    """A process that looked around, and what it saw."""
    with file.open("wb") as output:
        process = start(LOOK, module, environment=ENVIRONMENT, output=output, really=really, after=module)

    def read_output() -> str:
        assert process.poll() is None, file.read_text()
        return file.read_text()

    try:
        yield process, msgspec.json.decode(eventually(read_output, lambda text: text.endswith("}\n"), 90))
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("module", FORKED)
def test_a_forked_process_finds_what_a_started_one_finds(module: str, tmp_path: Path) -> None:
    with (
        looking(tmp_path / "forked", module=module) as (one, forked),
        looking(tmp_path / "started", module=module, really=True) as (other, started),
    ):
        assert (type(one), type(other)) == (Forked, subprocess.Popen)
        assert f"{module}.settings" in started["found"]["modules"] or module.startswith("tests.")
        assert forked["found"] == started["found"]


@pytest.mark.parametrize("module", MODULES.values())
def test_a_forked_process_refuses_as_a_started_one_does(module: str, tmp_path: Path) -> None:
    ended = []
    for name, really in (("forked", False), ("started", True)):
        with (tmp_path / name).open("wb") as output:
            process = start(module, environment=ENVIRONMENT, output=output, really=really)
        ended.append((process.wait(90), (tmp_path / name).read_text()))

    assert ended[0] == ended[1]
    assert ended[0][0] == os.EX_CONFIG
    assert "SERVICE_DATABASE_URL" in ended[0][1]


def test_two_forked_processes_draw_different_numbers(tmp_path: Path) -> None:
    with looking(tmp_path / "one") as (_, one), looking(tmp_path / "other") as (_, other):
        assert one["drawn"] != other["drawn"]


@pytest.mark.parametrize("really", [False, True], ids=["forked", "started"])
def test_a_process_is_waited_for_and_killed(tmp_path: Path, really: bool) -> None:
    with looking(tmp_path / "said", really=really) as (process, _):
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0)
        assert (process.poll(), process.returncode) == (None, None)

        process.terminate()
        assert process.wait(90) == -signal.SIGTERM
        assert (process.poll(), process.returncode) == (-signal.SIGTERM, -signal.SIGTERM)
        # The process that has its number now, if any, is left alone.
        process.kill()
        assert process.wait() == -signal.SIGTERM


def test_a_forked_process_dies_with_the_tests() -> None:
    command, given = [sys.executable, "-P", "-c", PARENT], {**ENVIRONMENT, "PYTEST_VERSION": pytest.__version__}
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, env=given) as parent:
        pid = int(parent.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        parent.kill()
    eventually(lambda: is_over(pid))

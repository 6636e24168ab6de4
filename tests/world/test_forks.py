"""Workers that are forked run each test once, and tell of it what pytest would tell."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.forks import files_of
from tests.outside.processes import PROJECT

FIRST = """
import os, signal, pytest

@pytest.fixture(scope="session")
def ends_badly():
    yield
    raise ValueError("of the session")

@pytest.fixture(scope="module")
def pid_of_module(): return os.getpid()

def test_says_what_it_is_given(worker_id, tmp_path):
    assert os.environ["PYTEST_XDIST_WORKER"] == worker_id
    assert tmp_path.parents[0].name == f"popen-{worker_id}"
    (tmp_path.parents[1] / "shared").open("x").close()

def test_fails(pid_of_module):
    print("said " + "by it")
    os.system("echo said by its process")
    assert pid_of_module == 0

def test_dies(): os.kill(os.getpid(), signal.SIGKILL)

def test_comes_after_it(ends_badly): pass

@pytest.mark.xfail(strict=True)
def test_is_the_last(): assert False
"""
SECOND = """
import pytest, time

def test_is_left_out(): pytest.skip("why not")

def test_finds_the_folder_of_the_run(tmp_path):
    deadline = time.monotonic() + 60
    while not (tmp_path.parents[1] / "shared").exists():
        assert time.monotonic() < deadline

@pytest.mark.parametrize("number", range(20))
def test_passes(number): print("not to be seen")
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "TEST_"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.fixtures.forks", "-p", "no:cacheprovider", *options, folder],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "test_first.py").write_text(FIRST)
    (tmp_path / "test_second.py").write_text(SECOND)
    return tmp_path


def test_each_test_is_run_once_and_one_in_which_a_worker_dies_has_failed(folder: Path) -> None:
    done = run(folder, "--forks", "2", "-rA")

    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"2 failed, 23 passed, 1 skipped, 1 xfailed,.* 1 error in", done.stdout)
    assert re.search(r"FAILED test_first.py::test_dies - worker gw\d ended with -9", done.stdout)
    assert "PASSED test_first.py::test_comes_after_it" in done.stdout
    assert re.search(r"ERROR test_first.py::test_is_the_last - ValueError: of the session", done.stdout)
    failure = done.stdout.split("___ test_fails ___")[1].split("___ test_dies ___")[0]
    assert "said by it\nsaid by its process" in failure
    assert "not to be seen" not in failure


def test_after_as_many_failures_as_are_wanted_no_other_test_begins(folder: Path) -> None:
    done = run(folder, "--forks", "1", "-x")

    assert done.returncode == 1, done.stdout + done.stderr
    assert "stopping after 1 failures" in done.stdout
    assert re.search(r"1 failed, 1 passed(, \d warnings?)? in", done.stdout)


def test_a_module_that_cannot_be_collected_is_told_as_without_workers(folder: Path) -> None:
    (folder / "test_third.py").write_text("import nothing_of_that_name")

    done = run(folder, "--forks", "2")

    assert done.returncode == 2, done.stdout + done.stderr
    assert "Interrupted: 1 error during collection" in done.stdout


def test_the_tests_of_a_file_are_handed_out_together() -> None:
    tests = ["a::1", "a::2", "b::1", "c::1", "c::2", "c::3"]

    assert list(files_of(tests)) == [range(2), range(2, 3), range(3, 6)]
    assert list(files_of([])) == []

"""scripts/set-up chooses an interpreter by running it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SET_UP = Path(__file__).parents[2] / "scripts" / "set-up"
ORDINARY = "/usr/bin:/bin"


@pytest.fixture
def candidates(tmp_path: Path) -> Path:
    """A folder of interpreters that stands first on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def put(folder: Path, name: str, script: str) -> Path:
    """Write an executable file."""
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


def says(version: str, path: Path) -> str:
    """An interpreter that fits and names itself."""
    return f'case "$*" in *version_info*) echo "{version} {path}";; esac'


def pick(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Ask the script which interpreter it would use, on a machine that has only these."""
    environment = {"PATH": f"{folder}:{ORDINARY}", "HOME": str(folder), "RUNNER_TOOL_CACHE": str(folder), **variables}
    return subprocess.run([SET_UP, "--pick"], env=environment, capture_output=True, text=True, check=False)


def test_a_command_that_refuses_to_run_is_passed_over(candidates: Path) -> None:
    put(candidates, "python3.13", "echo 'not installed here' >&2; exit 127")
    good = put(candidates, "python3.12", says("3.12", candidates / "python3.12"))

    assert pick(candidates).stdout.strip() == str(good)


def test_the_version_the_project_names_wins_over_an_earlier_one(candidates: Path) -> None:
    put(candidates, "python3.12", says("3.12", candidates / "python3.12"))
    wanted = put(candidates, "python3", says("3.13", candidates / "python3"))

    assert pick(candidates).stdout.strip() == str(wanted)


def test_an_interpreter_of_a_version_manager_is_found(candidates: Path) -> None:
    folder = candidates / ".pyenv" / "versions" / "3.13.9" / "bin"
    folder.mkdir(parents=True)
    put(candidates, "python3", "exit 1")
    good = put(folder, "python3", says("3.13", folder / "python3"))

    assert pick(candidates).stdout.strip() == str(good)


def test_a_named_interpreter_that_does_not_fit_is_an_error_that_names_the_variable(candidates: Path) -> None:
    old = put(candidates, "old", "exit 1")

    answer = pick(candidates, PROJECT_PYTHON=str(old))

    assert answer.returncode == 1
    assert "PROJECT_PYTHON" in answer.stderr


def test_a_real_interpreter_is_taken_when_named(candidates: Path) -> None:
    answer = pick(candidates, PROJECT_PYTHON=sys.executable)

    assert os.path.samefile(answer.stdout.strip(), sys.executable)

"""The laws find what was wrong once: each fault is put back in a copy of the package, and searched for."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.execution.faults import FAULTS, Change, Fault, Gone, copy_project, put_back
from tests.execution.search import Found

KNOWN_SEED = 27


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package as it is."""
    root = tmp_path_factory.mktemp("package")
    copy_project(root)
    return root


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_was_mended_is_found_again(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    copy_project(tmp_path)
    put_back(fault, tmp_path)

    found = _search(tmp_path, fault.kind, fault.within)

    assert found.law is not None, f"{fault.says}: not found in {found.cases} cases"
    print(f"{fault.says}: found after {found.cases} cases, by law {found.law}")


def test_a_copy_without_a_fault_has_none(copy: Path) -> None:
    assert _search(copy, "evm", 100).law is None


def test_a_fault_whose_text_is_gone_is_told(copy: Path) -> None:
    with pytest.raises(Gone):
        put_back(Fault("gone", "evm", (Change("custody/policies/judge.py", "no such line", ""),), 1), copy)


def test_a_fault_whose_text_stands_deeper_is_told(copy: Path) -> None:
    deeper = Change(
        "custody/policies/coverage.py", "    if not rule.enabled:\n", "    if not rule.enabled:\n    return\n"
    )
    with pytest.raises(Gone):
        put_back(Fault("deeper", "evm", (deeper,), 1), copy)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_still_has_its_text(name: str, tmp_path: Path) -> None:
    # Says in a second, beside every change, what the search would say after minutes.
    copy_project(tmp_path)
    put_back(FAULTS[name], tmp_path)


def _search(root: Path, kind: str, most: int) -> Found:
    command = [sys.executable, "-P", "-m", "tests.execution.search", kind, str(most)]
    run = subprocess.run(
        command,
        cwd=root,
        # The cases that are known to find each fault, also in a run whose order is drawn.
        env=os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1", "TEST_SEED": str(KNOWN_SEED)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    found = msgspec.json.decode(run.stdout, type=Found)
    assert found.package == str(root / "custody"), "the copy was not what was searched"
    return found

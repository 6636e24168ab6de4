"""custody/ holds what several processes believe: what only one of them runs stands in that process' own package."""

from functools import cache
from pathlib import Path

import pytest

from tests.fixtures.imports import PACKAGES, PROJECT, ROOT, closure, modules_of

PROCESSES = [package for package in PACKAGES if package != "custody"]
# Codecs and rules have their room with their like, even where one process asks them.
PURE = tuple(f"custody/{area}/" for area in ("chains", "policies", "credentials", "payments", "receipts", "audit"))
# The command applies functions when it migrates, and other processes read their texts' digest: one area.
TOGETHER = {"custody/database/apply.py", "custody/database/dependents.py"}
# Small things of the kit that wait for a room of their own. These may only become fewer.
OF_THE_API = {f"custody/kit/{name}.py" for name in ("alone", "field_names", "models", "spreadsheet", "validation")}


@cache
def users() -> dict[str, set[str]]:
    """Find which processes reach a file of custody."""
    found: dict[str, set[str]] = {}
    for process in PROCESSES:
        for file in closure(modules_of(process)):
            found.setdefault(file.relative_to(ROOT).as_posix(), set()).add(process)
    return found


def alone() -> dict[str, str]:
    """Files of custody that one process reaches, and which."""
    return {
        file: next(iter(processes))
        for file, processes in users().items()
        if file.startswith("custody/") and len(processes) == 1 and not file.endswith("__init__.py")
    }


def test_a_file_of_one_process_stands_in_its_package() -> None:
    astray = {file: process for file, process in alone().items() if not file.startswith(PURE)}

    assert astray.keys() - TOGETHER == OF_THE_API


@pytest.mark.parametrize("area", ["api/areas", "scheduler", "identity", "signer"])
def test_a_process_has_areas_that_no_other_reaches(area: str) -> None:
    process = Path(area).parts[0]
    inside = {file: found for file, found in users().items() if file.startswith(f"{area}/")}

    assert inside
    assert {file for file, found in inside.items() if found - {process, "ops"}} == set()


def test_a_module_that_went_astray_would_be_found() -> None:
    assert users()["api/areas/agents/store.py"] == {"api"}
    assert users()["custody/policies/judge.py"] >= {"api", "signer"}


def test_every_module_of_the_signer_stands_on_one_of_its_floors() -> None:
    (floors,) = [one["layers"] for one in PROJECT["tool"]["importlinter"]["contracts"] if "five floors" in one["name"]]
    named = [module for floor in floors for module in floor.replace(":", " ").split()]

    modules = [one for one in modules_of("signer") if not (ROOT / one.replace(".", "/")).is_dir()]

    assert {one: [name for name in named if f"{one}.".startswith(f"{name}.")] for one in modules} == {
        one: [name] for one in modules for name in named if f"{one}.".startswith(f"{name}.")
    }

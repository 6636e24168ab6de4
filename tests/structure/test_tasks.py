"""Tasks begin in one place of the service and one of the console, so that none is lost and none fails in silence."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
PLACES = {ROOT / "custody/kit/tasks.py", ROOT / "console/tasks.py", ROOT / "console/work.py"}


def find_begun(file: Path) -> list[str]:
    """The calls in a file that begin a task, but for those of a task group."""
    source = file.read_text()
    if not any(word in source for word in ("create_task", "ensure_future", "Task", "run_worker")):
        return []
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    texts = [ast.unparse(call) for call in calls]
    starters = (".create_task", ".ensure_future", "asyncio.Task", "ensure_future", "create_task", ".run_worker")
    return [text for text in texts if text.endswith(starters) and text != "tasks.create_task"]


@pytest.mark.parametrize("package", PACKAGES)
def test_tasks_are_started_only_by_spawn(package: str) -> None:
    files = [file for file in (ROOT / package).rglob("*.py") if file not in PLACES]
    assert {str(file): calls for file in files if (calls := find_begun(file))} == {}


def test_a_task_begun_by_hand_is_found(tmp_path: Path) -> None:
    file = tmp_path / "sample.py"
    file.write_text(
        "asyncio.get_running_loop().create_task(f())\nasyncio.Task(f(), loop=x)\nasync_to(f)\na.run_worker(f())\n"
    )
    assert find_begun(file) == ["asyncio.get_running_loop().create_task", "asyncio.Task", "a.run_worker"]

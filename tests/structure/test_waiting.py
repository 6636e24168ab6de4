"""Tests wait in one way: no test sleeps for a time that somebody guessed."""

import ast
from pathlib import Path

from tests.fixtures.imports import python_files

TESTS = Path(__file__).parents[1]
# The wait itself, and small servers and programs whose part it is to be slow.
SLOW = {
    "fixtures/eventually.py",
    "outside/hostile_receiver.py",
    "outside/odd_api.py",
    "outside/smtp_server.py",
    "outside/upstream_answers.py",
    # One scheduler is killed each second, whatever the second held; clients pause before they ask again.
    "scheduler/replicas.py",
    "promises/load.py",
    "paths/newcomer.py",
}


def sleeps(file: Path) -> list[str]:
    """Calls that wait for a time, but for a turn of the event loop and for what never ends by itself."""
    if "sleep" not in (source := file.read_text()):
        return []
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    waits = [call for call in calls if ast.unparse(call.func) in ("time.sleep", "asyncio.sleep")]
    return [ast.unparse(call) for call in waits if ast.unparse(call.args[0]) not in ("0", "60")]


def test_no_test_sleeps() -> None:
    files = {str(file.relative_to(TESTS)): file for file in python_files(TESTS)}
    assert {name: found for name, file in files.items() if (found := sleeps(file)) and name not in SLOW} == {}
    assert {name for name in SLOW if not sleeps(files[name])} == set()

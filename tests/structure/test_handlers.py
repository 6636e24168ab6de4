"""A handler that comes after one of a wider kind never runs: TimeoutError is an OSError."""

import ast
import builtins

import pytest

from tests.fixtures.imports import PACKAGES
from tests.outside.processes import PROJECT

# Ours, by what they contain.
_TUPLES = {"DatabaseAway": (OSError, TimeoutError)}


def find_hidden(source: str) -> list[str]:
    """The handlers that stand behind a wider one, by line and name."""
    found = []
    if source.count("except") < 2:
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Try):
            before: tuple[type, ...] = ()
            for handler in node.handlers:
                kinds = _kinds(handler.type)
                found += [f"{handler.lineno}: {kind.__name__}" for kind in kinds if issubclass(kind, before)]
                before += kinds
    return found


def _kinds(node: ast.expr | None) -> tuple[type, ...]:
    if isinstance(node, ast.Tuple):
        return tuple(kind for one in node.elts for kind in _kinds(one))
    if isinstance(node, ast.Starred):
        return _kinds(node.value)
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if name in _TUPLES:
        return _TUPLES[name]
    kind = getattr(builtins, name, None)
    return (kind,) if isinstance(kind, type) and isinstance(node, ast.Name) else ()


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_no_handler_stands_behind_a_wider_one(package: str) -> None:
    files = sorted((PROJECT / package).rglob("*.py"))
    assert {str(file): hidden for file in files if (hidden := find_hidden(file.read_text()))} == {}


def test_a_handler_behind_a_wider_one_is_seen() -> None:
    source = "try:\n    f()\nexcept (OSError, BadFrame):\n    g()\nexcept TimeoutError:\n    h()\n"
    assert find_hidden(source) == ["5: TimeoutError"]
    assert find_hidden(source.replace("(OSError, BadFrame)", "(*db.DatabaseAway, ValueError)")) == ["5: TimeoutError"]
    assert find_hidden("try:\n    f()\nexcept TimeoutError:\n    g()\nexcept OSError:\n    h()\n") == []

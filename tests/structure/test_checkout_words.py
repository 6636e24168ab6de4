"""Messages send readers to `make` or to a script only through ops/checkout.py: an installed wheel has neither."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops import checkout
from tests.structure.test_plain_words import CODE, ROOT

TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
# What other tests install and build there, perhaps just now.
MADE = {"node_modules", "dist"}
SENT = re.compile(rf"\bmake ({'|'.join(TARGETS)})\b|\bscripts/[a-z]")


def docstrings(tree: ast.AST) -> Iterator[ast.AST]:
    """Find what developers read, in a checkout; that of a class is a message, where the class is a refusal."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str()) as text), *_]:
                    yield text


def messages(file: Path) -> Iterator[tuple[int, str]]:
    """Every text of a module that a reader of its output may meet; of other files every line."""
    if file.suffix != ".py":
        yield from enumerate(file.read_text().splitlines(), 1)
        return
    tree = ast.parse(file.read_text())
    told = set(docstrings(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in told:
            yield node.lineno, node.value


@pytest.mark.parametrize("folder", CODE)
def test_messages_name_no_command_of_a_checkout(folder: str) -> None:
    kinds = {".py", ".html", ".js", ".sql"}
    files = [one for one in (ROOT / folder).rglob("*.*") if one.suffix in kinds and "node_modules" not in one.parts]
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text}"
        for file in files
        if file != Path(checkout.__file__) and not MADE.intersection(file.parts)
        for line, text in messages(file)
        if SENT.search(text)
    ]

    assert found == []


def test_a_checkout_names_its_own_commands() -> None:
    assert SENT.search(checkout.START)
    assert SENT.search(checkout.SET_UP)

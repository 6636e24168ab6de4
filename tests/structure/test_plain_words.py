"""Documents, messages, docstrings and tests use the words of CONTRIBUTING's list, not the private ones beside them."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.fixtures.each import each
from tests.fixtures.imports import python_files

ROOT = Path(__file__).parents[2]
PAGES = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("sdk/*/README.md")]
TESTS = ("tests", "bench")
CODE = (
    "api",
    "console",
    "custody",
    "identity",
    "mcp_server",
    "ops",
    "proxy_addon",
    "scheduler",
    "sdk",
    "signer",
    "tenant_command",
    "words",
)
PRIVATE = re.compile(r"\b(anew|whoever|thereby|himself|of ours|he|him|his|stor(?:y|ies))\b", re.IGNORECASE)
# A name that says neither which thing is tested nor who calls it.
NAMELESS = re.compile(r"\s*(?:async )?def test_(?:what|who|whoever|whose|which|nobody)_")
# Where such a word is right: the list itself, and the history of changes.
ALLOWED = {"CHANGELOG.md", "CONTRIBUTING.md"}


def prose(page: Path) -> str:
    """A page without its code."""
    return re.sub(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", " ", page.read_text(), flags=re.DOTALL)


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """Every text of a module that is a sentence: messages and docstrings."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, re.sub(r"`[^`]*`", " ", node.value)


def words_of(file: Path) -> Iterator[tuple[int, str]]:
    """Docstrings, comments and names of functions. A test's other texts may be what a stranger sends."""
    source = file.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name.replace("_", " ")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            yield getattr(node, "lineno", 1), re.sub(r"`[^`]*`", " ", ast.get_docstring(node) or "")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def test_the_list_forbids_what_this_test_looks_for() -> None:
    listed = (ROOT / "CONTRIBUTING.md").read_text().split("## The words we use", 1)[1]
    assert PRIVATE.search("the signer is told anew")
    assert {word.lower() for word in PRIVATE.findall(listed)} >= {"anew", "whoever", "he", "of ours", "story"}


@each("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_written_in_plain_words(page: Path) -> None:
    if page.name not in ALLOWED:
        assert PRIVATE.findall(prose(page)) == []


@each("folder", CODE)
def test_messages_and_docstrings_are_written_in_plain_words(folder: str) -> None:
    files = python_files(ROOT / folder)
    found = [
        f"{file.relative_to(ROOT)}:{line} {word[0]}"
        for file in files
        for line, text in texts(file)
        for word in PRIVATE.finditer(text)
    ]
    assert found == []


@each("folder", TESTS)
def test_tests_speak_in_plain_words(folder: str) -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line} {word[0]}"
        for file in python_files(ROOT / folder)
        for line, text in words_of(file)
        for word in PRIVATE.finditer(text)
    ]
    assert found == []


def test_a_tests_name_begins_with_the_thing_that_acts() -> None:
    names = [
        f"{file.relative_to(ROOT)}:{number} {line.strip()}"
        for file in python_files(ROOT / "tests")
        if file.name.startswith("test_")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if NAMELESS.match(line)
    ]
    assert names == []

"""Docstrings and the contract begin with a verb or a noun, functions are named by one: the exceptions only fall."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.imports import python_files

ROOT = Path(__file__).parents[2]
# Docstrings that begin with a relative clause, and functions named by a bare participle. Neither figure may rise.
BOUNDS = {
    "api": (0, 0),
    "custody": (3, 1),  # The three are of migrations from before 1.0, which never change.
    "signer": (0, 0),
    "identity": (0, 0),
    "scheduler": (0, 0),
    "proxy_addon": (0, 0),
    "console": (0, 0),
    "mcp_server": (0, 0),
    "tenant_command": (0, 0),
    "words": (0, 0),
    "ops": (0, 0),
    "openers": (0, 0),
    "tests": (0, 0),
    "bench": (0, 0),
    "sdk": (0, 0),
}

CLAUSE = r"(?:What|Whether|How|Who|Whom|Whose|Which|Where|When)\b"
DOCSTRING = re.compile(rf'^\s*"""{CLAUSE}', re.MULTILINE)
# A property is read as a field is, and may be named as one.
FUNCTION = re.compile(r"(?<!property\n)^ *(?:async )?def _*([a-z]+)[(\[]", re.MULTILINE)
IRREGULAR = (
    "told|shown|held|kept|said|found|made|sent|bound|built|left|lost|met|done|gone|known|drawn|grown|shrunk|spent|sold|"
    "paid|heard|meant|begun|torn|worn|sworn|thrown|stuck|bent|rebuilt|withheld|understood|undone"
)
PARTICIPLE = re.compile(rf"{IRREGULAR}|\w+(?:ed|en)")
# End as participles do, and are none.
VERBS_AND_NOUNS = re.compile(
    "need|seed|feed|deed|speed|breed|embed|bleed|proceed|exceed|succeed|open|listen|token|screen|children|happen|harden|"
    "freshen|shorten|tighten|loosen|widen|lengthen|strengthen|flatten|straighten|siren|between|seven|ten"
)


def counted_in(source: str) -> tuple[int, int]:
    """The docstrings and the names of functions that break the law."""
    names = [
        name for name in FUNCTION.findall(source) if PARTICIPLE.fullmatch(name) and not VERBS_AND_NOUNS.fullmatch(name)
    ]
    return len(DOCSTRING.findall(source)), len(names)


def descriptions(node: object) -> Iterator[str]:
    """Every text of the contract that explains something."""
    if isinstance(node, dict):
        yield from (text for key, text in node.items() if key in ("description", "summary") and isinstance(text, str))
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from descriptions(child)


def test_the_law_knows_a_clause_and_a_participle() -> None:
    assert counted_in('    """Whether it works."""\n') == (1, 0)
    assert counted_in('    """Say whether it works."""\n') == (0, 0)
    assert counted_in("def _told(a: int)\nasync def encoded(\ndef need(\ndef read(\ndef told_of(\n") == (0, 2)
    assert counted_in("def _kept[T](a: T)\nasync def read[T: int](\ndef kept_of[T](\n") == (0, 1)
    assert counted_in("    @property\n    def frozen(self) -> bool:\n") == (0, 0)


@pytest.mark.parametrize("package", BOUNDS)
def test_a_package_keeps_to_its_bounds(package: str) -> None:
    ours = python_files(ROOT / package)
    found = [counted_in(file.read_text()) for file in ours]
    figures = tuple(sum(column) for column in zip(*found, strict=True))
    most = BOUNDS[package]
    assert all(now <= then for now, then in zip(figures, most, strict=True)), f"{package}: {figures} is above {most}"
    assert figures == most, f"well done: lower the bounds of {package} to {figures}"


def test_no_sentence_of_the_contract_begins_with_a_clause() -> None:
    sentences = {
        sentence
        for text in descriptions(json.loads((ROOT / "openapi.json").read_text()))
        for sentence in re.split(r"(?<=[.!?:])\s+|\n\s*\n|\n- ", text)
        if re.match(CLAUSE, sentence)
    }
    assert sentences == set()

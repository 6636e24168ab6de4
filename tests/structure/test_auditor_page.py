"""signer/README.md tells an auditor what to read: its files, sizes, promises and libraries are those of the tree."""

import re

import pytest

from tests.fixtures.imports import PROJECT, ROOT

PAGE = (ROOT / "signer/README.md").read_text()
THREATS = (ROOT / "docs/threats.md").read_text()
# A page that is wrong by less than this still says how long the reading takes.
TOLERANCE = 0.1


def table(heading: str) -> list[list[str]]:
    """The cells of the first table below a heading."""
    lines = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")][1:]


ORDER = table("One EVM order, from the socket to the commit")


@pytest.mark.parametrize("row", ORDER, ids=lambda row: row[0])
def test_a_step_says_how_much_is_read(row: list[str]) -> None:
    files = [ROOT / name for name in re.findall(r"`([^`]+)`", row[1])]

    lines = sum(len(file.read_text().splitlines()) for file in files)

    assert abs(lines - int(row[2])) <= TOLERANCE * lines, f"{row[0]}: {lines} lines"


@pytest.mark.parametrize("row", ORDER, ids=lambda row: row[0])
def test_a_promise_of_a_step_exists_and_is_tried(row: list[str]) -> None:
    promises, tests = re.findall(r"\bP\d\b", row[3]), re.findall(r"`([^`]+)`", row[3])

    assert promises
    assert tests
    assert [promise for promise in promises if f"| {promise} |" not in THREATS] == []
    assert [name for name in tests if not (ROOT / name).exists()] == []


def test_the_steps_speak_of_every_promise_about_orders() -> None:
    # Of the others, P8 is about events.
    assert set(re.findall(r"\bP\d\b", str(ORDER))) == {f"P{number}" for number in range(1, 10)} - {"P8"}


def test_the_libraries_are_those_that_the_signer_is_given() -> None:
    assert {row[0] for row in table("What it depends on")} == set(PROJECT["dependency-groups"]["signer"])

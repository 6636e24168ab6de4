"""docs/operate.md: every command on it exists, and its tables are those of the newest line of figures."""

import re
from importlib.util import find_spec

import pytest

from bench import figures, works
from bench.installed import PROJECT

PAGE = figures.PAGE.read_text()


def test_every_command_on_the_page_exists() -> None:
    targets = re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    made, modules = set(re.findall(r"`make ([a-z-]+)", PAGE)), set(re.findall(r"-m (bench[\w.]*)", PAGE))

    assert {"bench", "bench-compare", "bench-figures"} <= made <= set(targets)
    assert modules
    assert [name for name in modules if find_spec(name) is None] == []


def test_its_tables_are_those_of_the_newest_figures() -> None:
    assert figures.with_figures(PAGE, figures.newest()) == PAGE
    assert f"| {works.WORKS[0].says} |" in PAGE


def test_a_revision_has_one_line_and_every_column() -> None:
    lines = figures.read_lines()

    assert figures.FILE.read_text().splitlines()[0].split(",") == list(figures.COLUMNS)
    assert len({line["revision"].rstrip("+") for line in lines}) == len(lines)


@pytest.mark.parametrize("revision", ["1.0", "1.0+"])
def test_another_line_of_a_revision_replaces_its_first(
    revision: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FILE", tmp_path / "figures.csv")
    for line in ({"revision": "0.9"}, {"revision": "1.0", "cores": "2"}, {"revision": revision, "cores": "4"}):
        figures.keep(line)

    assert [(line["revision"], line["cores"]) for line in figures.read_lines()] == [("0.9", ""), (revision, "4")]

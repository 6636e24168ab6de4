"""The list of survivors of `make mutants` is well-formed, names lines that stand, and does not grow."""

import re

import pytest

from tests.mutants.drawn import ROOT, files
from tests.mutants.survivors import CLASSES, LIST, Survivor, lines_of, read

TEXT = LIST.read_text()
ENTRIES = read(TEXT)
# It may only go down: a new line in the judge comes with the test that holds it.
# 39 of it came with the files that docs/decisions/0138 names, 9 with those of 0147.
MOST = 243


def squeeze(text: str) -> str:
    """Lines as the list has them, whatever their indentation."""
    return " ".join(text.split())


@pytest.mark.parametrize("file", sorted({entry.name[0] for entry in ENTRIES}) or [files()[0]])
def test_every_entry_names_lines_that_stand(file: str) -> None:
    assert file in files()
    source = (ROOT / file).read_text()
    gone = [lines_of(e.name) for e in ENTRIES if e.name[0] == file and squeeze(e.name[2]) not in squeeze(source)]
    assert gone == []
    places = {entry.name[1].rpartition(".")[2] for entry in ENTRIES if entry.name[0] == file} - {"-"}
    assert [place for place in places if not re.search(rf"(?:def|class) {place}\b", source)] == []


def test_every_entry_has_a_class_and_a_reason_and_stands_once() -> None:
    assert {entry.kind for entry in ENTRIES} <= set(CLASSES)
    assert all(len(entry.why) > 10 for entry in ENTRIES)
    names = [entry.name for entry in ENTRIES]
    assert sorted(set(names)) == sorted(names)
    assert [name[0] for name in names] == sorted(name[0] for name in names)


def test_the_list_does_not_grow() -> None:
    assert len(ENTRIES) <= MOST


def test_an_entry_without_a_class_is_no_entry() -> None:
    entry = Survivor(("a.py", "f", "x < 1", "x <= 1", 2), "equivalent", "x is even.")
    assert read(f"# A comment.\n\n{lines_of(entry.name)}\n  {entry.kind}: {entry.why}\n") == [entry]
    with pytest.raises(ValueError, match="well-formed"):
        read(lines_of(entry.name))

"""The list of the mutants that no pure test notices: each with its class and the reason why none needs to."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.mutants.drawn import Mutant

LIST = Path(__file__).with_name("survivors.txt")
# `text`: what a person reads. `equivalent`: no input tells the two apart. `stricter`: it can only ask or refuse more.
CLASSES = ("text", "equivalent", "stricter")
_BLOCK = re.compile(
    r"(?P<file>\S+) (?P<where>\S+)(?: #(?P<same>\d+))?\n"
    r"  - (?P<before>.*)\n  \+ (?P<after>.*)\n  (?P<kind>\w+): (?P<why>.+)"
)

type Name = tuple[str, str, str, str, int]


class Survivor(NamedTuple):
    """One entry: the name of the mutant, its class, and why it may live."""

    name: Name
    kind: str
    why: str


def read(text: str) -> list[Survivor]:
    """The entries of a list, in its order."""
    found = []
    for block in text.split("\n\n"):
        entry = "\n".join(line for line in block.splitlines() if line and not line.startswith("#"))
        if not entry:
            continue
        match = _BLOCK.fullmatch(entry)
        if match is None:
            raise ValueError(f"this entry is not well-formed:\n{entry}")
        name = (match["file"], match["where"], match["before"], match["after"], int(match["same"] or 1))
        found.append(Survivor(name, match["kind"], match["why"]))
    return found


def lines_of(name: Name) -> str:
    """The lines of an entry, without its class."""
    file, where, before, after, same = name
    return f"{file} {where}{f' #{same}' if same > 1 else ''}\n  - {before}\n  + {after}"


def new(survived: Iterable[Mutant], listed: Iterable[Survivor]) -> list[Mutant]:
    """Those that are on no list."""
    names = {entry.name for entry in listed}
    return [mutant for mutant in survived if mutant.name not in names]

"""docs/limits.md lists every bound: its figures are held against the code, and the code's bounds against the page."""

import ast
import importlib
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.fixtures.each import each

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/limits.md").read_text()
SETTINGS = (ROOT / "docs/environment.md").read_text()
PROCESSES = ("custody", "openers", "ops", "signer", "identity", "api", "scheduler", "proxy_addon")
# A bound of what strangers cause bears one of these words; times, formats and pages of our own jobs do not.
BOUND = re.compile(r"_?(?:MAX|MOST|LARGEST|LONGEST)(?:_|$)|.*_(?:AT_ONCE|PER_HOUR|PER_MINUTE)$|AT_ONCE$")
# The largest figure of a format, which nobody chose.
OF_A_FORMAT = {
    "MAX_PORT",
    "_MAX_PORT",
    "MAX_UINT256",
    "MAX_UINT64",
    "MAX_NONCE",
    "MAX_COMPUTE_UNITS",
    "_LARGEST",
    "_MOST",
    "_MOST_DECIMALS",
    "_LARGEST_CONTROL",
    "MAX_CHAIN_ID",
    "MAX_MONEY",
}
# What an operator runs by hand, or plays with: no stranger reaches it.
BY_HAND = ("ops/",)
UNITS = {
    "": 1,
    "B": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "s": 1,
    "min": 60,
    "h": 3600,
    "days": 86_400,
}


def rows() -> Iterator[tuple[str, str, str]]:
    """Bound, default and place of each row; the last cell is for people."""
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[2] != "Set by":
            assert len(cells) == 4, line
            assert cells[3], f"{cells[0]}: what the caller gets is not said"
            yield cells[0], cells[1], cells[2]


ROWS = list(rows())


def amount(said: str) -> float:
    """A figure as people write it, in bytes or seconds where it has a unit: `64 KiB`, `10 min`, `30,000`."""
    number, _, unit = said.partition(" ")
    return float(number.replace(",", "")) * UNITS[unit]


def in_code(place: str) -> float:
    """The figure of a constant `module.NAME`, or of `module.NAME[key]`."""
    place, _, key = place.removesuffix("]").partition("[")
    module, _, name = place.rpartition(".")
    found: Any = getattr(importlib.import_module(module), name)
    found = found[key] if key else found
    return found.total_seconds() if isinstance(found, timedelta) else float(found)


def in_settings(variable: str) -> float:
    """The default that docs/environment.md gives, which the settings' own tests hold against the code."""
    for line in SETTINGS.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if variable in (names := re.findall(r"`(\w+)`", cells[0])):
            return float(re.findall(r"`([\d_]+)`", cells[1])[names.index(variable)])
    raise AssertionError(f"{variable} is not in docs/environment.md")


@each(("bound", "said", "places"), ROWS, ids=[row[0] for row in ROWS])
def test_a_bound_is_what_the_code_says(bound: str, said: str, places: str) -> None:
    named = re.findall(r"`([\w.\[\]]+)`", places)

    assert named, f"{bound}: nothing sets it"
    for place in named:
        assert amount(said) == (in_settings(place) if place.startswith("SERVICE_") else in_code(place))


def bounds_in(file: Path) -> Iterator[str]:
    """The names of the constants of a module that bound something."""
    for statement in ast.parse(file.read_text()).body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = value.elts if isinstance(value, ast.Tuple) else [value]
            for name, one in zip(names, values * len(names) if len(values) == 1 else values, strict=False):
                text = isinstance(one, ast.Dict | ast.DictComp) or (
                    isinstance(one, ast.Constant) and isinstance(one.value, str)
                )
                if isinstance(name, ast.Name) and BOUND.match(name.id) and name.id not in OF_A_FORMAT and not text:
                    yield name.id


def bounds() -> list[str]:
    """Every bound of the product as `module.NAME`."""
    found = []
    for process in PROCESSES:
        for file in sorted((ROOT / process).rglob("*.py")):
            place = file.relative_to(ROOT)
            if place.as_posix().startswith(BY_HAND):
                continue
            module = ".".join(place.with_suffix("").parts).removesuffix(".__init__")
            found += [f"{module}.{name}" for name in bounds_in(file)]
    return found


def test_every_bound_of_the_code_is_on_the_page() -> None:
    listed = {place.partition("[")[0] for _, _, places in ROWS for place in re.findall(r"`([\w.\[\]]+)`", places)}
    missing = sorted(set(bounds()) - listed)

    assert len(ROWS) > 60
    assert not missing

"""One version everywhere: of the service, its contract, its clients, and the changelog's newest release."""

import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from custody.version import VERSION
from tests.fixtures.each import each
from tests.outside.processes import PROJECT
from tests.structure import versions

# What says a version as a value of its own: `version = "..."`, `"version": "..."`, `VERSION: Final = "..."`.
SAID = re.compile(rf"""^\s*(?:export const )?"?version"?(?:: Final)? ?[=:] ?"{re.escape(VERSION)}\"""", re.IGNORECASE)
FOLDERS = (
    "api",
    "custody",
    "mcp_server",
    "tenant_command",
    "ops",
    "console",
    "words",
    "sdk/python",
    "sdk/typescript/src",
)
CHANGELOG = (PROJECT / "CHANGELOG.md").read_text()


def sayers() -> Iterator[Path]:
    """Every file that may say it."""
    yield from (PROJECT / "sdk/typescript").glob("*.json")
    yield PROJECT / "pyproject.toml"
    for folder in FOLDERS:
        for kind in ("py", "ts", "toml"):
            yield from (PROJECT / folder).rglob(f"*.{kind}")


@each("file", versions.PLACES)
def test_every_place_has_the_one_version(file: str) -> None:
    assert versions.read(file) == {VERSION}


def test_the_contract_has_it_and_what_is_made_of_the_contract() -> None:
    assert {json.loads((PROJECT / file).read_text())["info"]["version"] for file in versions.MADE} == {VERSION}


def test_no_other_place_says_it() -> None:
    found = {
        str(file.relative_to(PROJECT))
        for file in sayers()
        if any(SAID.match(line) for line in file.read_text().splitlines())
    }

    assert found == {file for file in versions.PLACES if not file.startswith("api/")}


def test_the_newest_release_of_the_changelog_is_this_one() -> None:
    headings = re.findall(r"^## \[(.+?)\](?: - (.+))?$", CHANGELOG, re.MULTILINE)
    (first, no_day), (newest, day), *_ = headings

    assert (first, no_day) == ("Unreleased", "")
    assert newest == VERSION
    assert date.fromisoformat(day) >= date(2026, 11, 30)


def test_a_move_changes_each_place_and_nothing_else() -> None:
    for file in versions.PLACES:
        before, after = (PROJECT / file).read_text(), versions.change(file, "12.34.56")
        changed = [pair for pair in zip(before.splitlines(), after.splitlines(), strict=True) if pair[0] != pair[1]]
        assert len(changed) == len(versions.PLACES[file]), file
        assert all(new.replace("12.34.56", VERSION) == old for old, new in changed), file

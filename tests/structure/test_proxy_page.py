"""docs/proxy.md says what the proxy does: its limits and its statuses are held against the code."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy_addon import refuse, settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/proxy.md").read_text()
DEFAULTS = settings.read({"SERVICE_DATABASE_URL_PROXY": "postgresql://proxy@localhost/custody"})
# The time of a window has no row of its own.
FIELDS = {
    "SERVICE_RATE_LIMIT_MAX": "rate_limit_max", "SERVICE_PROXY_MAX_BODY_BYTES": "max_body_bytes",
    "SERVICE_PROXY_CONNECT_SECONDS": "connect_seconds", "SERVICE_PROXY_HEADER_SECONDS": "header_seconds",
    "SERVICE_PROXY_IDLE_SECONDS": "idle_seconds",
}  # fmt: skip


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def set_by(place: str) -> float:
    """The number that a limit is set by: a default of a setting, or a constant of a module."""
    if place.startswith("SERVICE_"):
        return float(getattr(DEFAULTS, FIELDS[place]))
    module, _, name = place.rpartition(".")
    prefix = "" if module.startswith("custody.") else "proxy_addon."
    return float(getattr(importlib.import_module(prefix + module), name))


def limits() -> Iterator[tuple[str, float, str]]:
    for what, value, places in rows("Limits"):
        if named := re.findall(r"`([\w.]+)`", places):
            yield what, float(value.split()[0]), named[0]


@pytest.mark.parametrize(("what", "value", "place"), [*limits()])
def test_a_limit_is_what_the_code_says(what: str, value: float, place: str) -> None:
    assert set_by(place) == value


def test_every_refusal_that_is_used_stands_on_the_page_with_its_status() -> None:
    listed = {(status, code) for statuses, codes in map(tuple, rows("Statuses"))
              for status in re.findall(r"\d{3}", statuses) for code in re.findall(r"`([a-z_]+)`", codes)}  # fmt: skip
    code = "".join(file.read_text() for file in (ROOT / "proxy_addon").rglob("*.py"))
    used = {
        (str(refusal.status), refusal.code)
        for name, refusal in vars(refuse).items()
        if isinstance(refusal, refuse.Refusal) and f"refuse.{name}" in code
    }

    assert len(used) > 12
    assert used - listed == set()

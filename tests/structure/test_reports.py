"""Workers tell all that somebody reads of a test, and nothing else."""

from typing import Any

import pytest

from tests.fixtures.reports import is_read

QUICK = {"when": "setup", "outcome": "passed", "duration": 0.001, "sections": [], "user_properties": []}


@pytest.mark.parametrize(
    "told",
    [
        {"when": "call"},
        {"outcome": "failed"},
        {"outcome": "failed", "when": "teardown"},
        {"outcome": "skipped"},
        {"duration": 0.005},
        {"sections": [["Captured log setup", "text"]]},
        {"user_properties": [["name", "value"]]},
    ],
    ids=str,
)
def test_a_report_that_somebody_reads_is_told(told: dict[str, Any]) -> None:
    assert is_read(QUICK | told)


def test_fixtures_that_came_and_went_quickly_are_not_told() -> None:
    assert not is_read(QUICK)
    assert not is_read(QUICK | {"when": "teardown"})

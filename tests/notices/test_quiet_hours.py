"""Quiet hours end once, on the nights on which a clock is changed too."""

from datetime import UTC, datetime, timedelta

import pytest

from ops import places
from tests.fixtures.deployments import database_apart, owner_of
from tests.fixtures.postgres import Database

UNTIL = """
SELECT t AS at, quiet_until(t, $3::text::time, $4::text::time, $5) AS until,
       quiet_until(quiet_until(t, $3::text::time, $4::text::time, $5), $3::text::time, $4::text::time, $5) AS again
  FROM generate_series($1::timestamptz, $2::timestamptz, '10 minutes') t"""
BERLIN = "Europe/Berlin"


@pytest.fixture(scope="module")
def alone(postgres_home: places.Home, worker_id: str) -> Database:
    """A database without processes."""
    return database_apart(postgres_home, f"{worker_id}_quiet")


@pytest.mark.parametrize(
    "night", [datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 10, 24, 12, tzinfo=UTC)], ids=str
)
@pytest.mark.parametrize(
    ("start", "end"), [("22:00", "07:00"), ("22:00", "02:30"), ("02:15", "02:45"), ("01:00", "03:00")]
)
async def test_a_held_message_is_due_at_one_moment_that_is_not_quiet(
    alone: Database, night: datetime, start: str, end: str
) -> None:
    async with owner_of(alone) as owner:
        rows = await owner.fetch(UNTIL, night, night + timedelta(days=1), start, end, BERLIN)

    assert all(timedelta() <= row["until"] - row["at"] <= timedelta(hours=11) for row in rows)
    assert [row["at"] for row in rows if row["again"] != row["until"]] == []


async def test_quiet_hours_end_at_their_end_in_their_own_zone(alone: Database) -> None:
    async with owner_of(alone) as owner:
        moment = datetime(2026, 7, 1, 21, tzinfo=UTC)
        [[held], [free], [unknown]] = [
            [await owner.fetchval("SELECT quiet_until($1, '22:00', '07:00', $2)", moment, zone)]
            for zone in (BERLIN, "America/New_York", "Mars/Base")
        ]

    assert (held, free, unknown) == (datetime(2026, 7, 2, 5, tzinfo=UTC), moment, moment)

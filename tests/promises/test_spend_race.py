"""P1: whatever the number of clients, exactly the limit is signed; and without the guard this would be noticed."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from custody.cli import places
from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import database_apart, deployed, owner_of, partner_of
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.promises.races import UNITS, Race, race

GUARD = "AND ledger_version = p_ledger_version"
BEGIN = "BEGIN\n  PERFORM set_config"
# Both builds meet here, between what was judged and what is written: the guard alone is the difference. Who is alone,
# because the other was refused meanwhile, goes on after two seconds.
MEET = """BEGIN
  PERFORM pg_advisory_xact_lock_shared(4711, hashtext(p_tenant || ' ' || p_agent));
  FOR _ IN 1..400 LOOP
    EXIT WHEN (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 4711
                  AND objid::text = (hashtext(p_tenant || ' ' || p_agent)::bigint & 4294967295)::text) >= 2;
    PERFORM pg_sleep(0.005);
  END LOOP;
  PERFORM set_config"""


@pytest.fixture(scope="module")
def one(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment of this file's own."""
    with deployed(database_apart(postgres_home, f"{worker_id}_race")) as service:
        yield service


@pytest.fixture(scope="module")
def pair(one: Service) -> Iterator[list[Service]]:
    """Two signers with their apis on one database: no queue in a process keeps their orders apart."""
    with _partner(one) as other:
        yield [one, other]


@pytest.fixture
def meeting_pair(postgres_home: places.Home, worker_id: str) -> Iterator[list[Service]]:
    """The same, and two orders of an agent that are judged meet before they are written."""
    with _pair_on(database_apart(postgres_home, f"{worker_id}_meet"), {BEGIN: MEET}) as services:
        yield services


@pytest.fixture
def unguarded_pair(postgres_home: places.Home, worker_id: str) -> Iterator[list[Service]]:
    """They meet too, but the write does not compare the ledger's version, and no unique index raises the alarm."""
    database = database_apart(postgres_home, f"{worker_id}_unguarded")
    asyncio.run(_execute(database, "ALTER TABLE nonces DROP CONSTRAINT nonces_pkey"))
    with _pair_on(database, {BEGIN: MEET, GUARD: ""}) as services:
        yield services


@pytest.mark.parametrize(
    ("way", "clients"),
    [
        ("plain", 2), ("plain", 64), ("approved", 32), ("mixed", 32),
        *(pytest.param(*one, marks=pytest.mark.long) for one in (
            ("plain", 8), ("plain", 32), ("approved", 2), ("approved", 8), ("approved", 64), ("mixed", 2), ("mixed", 8),
            ("mixed", 64),
        )),
    ],
)  # fmt: skip
async def test_exactly_the_limit_is_signed(one: Service, way: str, clients: int) -> None:
    came_to = await _race(way, [one], clients)

    assert came_to.units == [UNITS]
    assert came_to.violations == []
    assert set(came_to.outcomes) == {"200", "403"}


@pytest.mark.parametrize(
    "way", ["mixed", *(pytest.param(way, marks=pytest.mark.long) for way in ("plain", "approved"))]
)
async def test_two_signers_together_sign_exactly_the_limit(pair: list[Service], way: str) -> None:
    came_to = await _race(way, pair, 32)

    assert came_to.units == [UNITS]
    assert came_to.violations == []
    assert set(came_to.outcomes) == {"200", "403"}


async def test_of_two_orders_at_once_only_one_fits_the_limit(meeting_pair: list[Service]) -> None:
    came_to = await _race("pairs", meeting_pair, 2)

    assert came_to.units == [60] * 10
    assert came_to.violations == []
    assert came_to.outcomes == {"200": 10, "403": 10}


async def test_without_the_guard_the_oracle_sees_the_overspend(unguarded_pair: list[Service]) -> None:
    came_to = await _race("pairs", unguarded_pair, 2)

    # Of both halves: five of them were told their nonces.
    assert came_to.units.count(120) > 5
    # Where the nonces were told, both can be mined; where not, two signatures share one.
    assert [text for text in came_to.violations if text.startswith("P1:") and "signed 120" in text]
    assert [text for text in came_to.violations if text.startswith("P2:")]


async def _race(way: str, services: list[Service], clients: int) -> Race:
    async with owner_of(services[0].database) as owner:
        with new_tenant(services[0]) as tenant:
            came_to = await race(way, services, tenant, clients, owner)
    print(f"{way}, {clients} clients, {len(services)} signers: {came_to}")
    return came_to


@contextmanager
def _pair_on(database: Database, changes: dict[str, str]) -> Iterator[list[Service]]:
    asyncio.run(_change_sign_write(database, changes))
    with deployed(database) as one, _partner(one) as other:
        yield [one, other]


def _partner(one: Service) -> AbstractContextManager[Service]:
    """Both under one address, so that the tokens of the one are good at the other."""
    return partner_of(one, SERVICE_PUBLIC_URL=f"http://localhost:{one.port}")


async def _change_sign_write(database: Database, changes: dict[str, str]) -> None:
    async with owner_of(database) as owner:
        text = await owner.fetchval("SELECT pg_get_functiondef('sign_write'::regproc)")
        for old, new in changes.items():
            assert text.count(old) == 1, f"sign_write no longer says {old!r} once"
            text = text.replace(old, new)
        await owner.execute(text)


async def _execute(database: Database, statement: str) -> None:
    async with owner_of(database) as owner:
        await owner.execute(statement)

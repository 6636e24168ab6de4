"""P1: whatever the number of clients, exactly the limit is signed; and without the guard this would be noticed."""

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from custody.database.texts import read
from ops import places
from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import database_apart, deploy, owner_of, partner_of
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.promises.budget_races import KINDS, race_kinds, race_two
from tests.promises.budget_races import came_to as sums
from tests.promises.oracle import Limit, violations
from tests.promises.races import DOLLARS, TOKEN, UNITS, Race, race
from tests.routes.orders import TOKEN_CONTRACT

# Both orders of an agent meet here, between what was judged and what is written: its row is found and not yet locked.
# Other writes to the row pass. One order that is alone goes on after two seconds; nobody meets twice, so what is judged
# again after a meeting waits for nobody.
MEET = """
CREATE TABLE met (tenant text, agent text);
CREATE FUNCTION meet(p_tenant text, p_agent text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE v_place bigint := hashtext(p_tenant || ' ' || p_agent)::bigint & 4294967295;
BEGIN
  IF current_query() NOT LIKE '%sign_write%'
     OR EXISTS (SELECT FROM met WHERE tenant = p_tenant AND agent = p_agent)
     OR EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = 4711 AND objid::bigint = v_place
                   AND pid = pg_backend_pid()) THEN RETURN true; END IF;
  PERFORM pg_advisory_xact_lock_shared(4711, hashtext(p_tenant || ' ' || p_agent));
  FOR _ IN 1..200 LOOP
    -- The other one may have been here, gone on and committed since the last look.
    EXIT WHEN EXISTS (SELECT FROM met WHERE tenant = p_tenant AND agent = p_agent);
    IF (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = 4711
           AND objid::bigint = v_place) >= 2 THEN
      INSERT INTO met VALUES (p_tenant, p_agent);
      EXIT;
    END IF;
    PERFORM pg_sleep(0.01);
  END LOOP;
  RETURN true;
END $$;
CREATE POLICY meet ON agents AS RESTRICTIVE FOR UPDATE TO custody_signer USING (meet(tenant_id, id))
"""
NO_MEETING = "DROP POLICY meet ON agents; DROP FUNCTION meet; DROP TABLE met"
# The write compares the ledger's version with the one that was read: if it never moves, the comparison holds for ever.
STILL = """
CREATE FUNCTION still() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.ledger_version := OLD.ledger_version; RETURN NEW; END $$;
CREATE TRIGGER still BEFORE UPDATE ON agents FOR EACH ROW EXECUTE FUNCTION still();
ALTER TABLE nonces DROP CONSTRAINT nonces_pkey
"""
# What signers acknowledged meanwhile is behind what the rows say once they move again: no later look finds them behind.
MOVING = """
DROP TRIGGER still ON agents;
DROP FUNCTION still;
UPDATE agents SET ledger_version = ledger_version + 1000;
TRUNCATE nonces;
ALTER TABLE nonces ADD PRIMARY KEY (tenant_id, address, chain_id, nonce)
"""
# Each order takes its time, so that the last of many waits for longer than the api does.
SLOW = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.2); RETURN NEW; END $$;
CREATE TRIGGER slow BEFORE INSERT ON transactions FOR EACH ROW EXECUTE FUNCTION slow()
"""
NOT_SLOW = "DROP TRIGGER slow ON transactions; DROP FUNCTION slow"
# An hour that ends when half of the dollars are spent.
CLOCK = """
CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = public AS $$
  SELECT timestamptz '{begin}' + CASE WHEN sum(amount) >= 50 THEN interval '1 minute' ELSE interval '0' END
    FROM spend WHERE asset = 'usd' $$
"""
NO_CLOCK = """
CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() $$
"""


# As the operator names the token: one unit is worth a millionth of a dollar where a whole one is worth a dollar.
CHAINS = f'[[chains]]\nid = 10\ntokens = [{{address = "{TOKEN_CONTRACT}", symbol = "USDX", decimals = 6}}]\n'


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The operator's prices and tokens: a smallest unit is worth so many millionths of a dollar."""
    folder = tmp_path_factory.mktemp("prices")
    places_of = {TOKEN: 6}
    whole = {asset: worth * 10 ** (places_of.get(asset, 18) - 6) for asset, worth in DOLLARS.items()}
    (folder / "prices.toml").write_text("".join(f'"{asset}" = "{worth}"\n' for asset, worth in whole.items()))
    (folder / "chains.toml").write_text(CHAINS)
    return {f"SERVICE_{name.upper()}_FILE": str(folder / f"{name}.toml") for name in ("prices", "chains")}


@pytest.fixture(scope="module")
def one(postgres_home: places.Home, worker_id: str, prices: dict[str, str]) -> Iterator[Service]:
    """A deployment of this file's own."""
    with deploy(database_apart(postgres_home, f"{worker_id}_race"), **prices) as service:
        yield service


@pytest.fixture(scope="module")
def pair(one: Service, prices: dict[str, str]) -> Iterator[list[Service]]:
    """Two signers with their apis on one database: no queue in a process keeps their orders apart."""
    with _partner(one, prices) as other:
        yield [one, other]


@pytest.fixture
def full_hour(one: Service) -> Iterator[Service]:
    """An hour ends while orders are signed."""
    begin = (datetime.now(UTC) + timedelta(minutes=1)).replace(minute=59, second=30, microsecond=0)
    asyncio.run(_execute(one.database, "DELETE FROM spend WHERE asset = 'usd'"))
    with _changing(one.database, CLOCK.format(begin=begin.isoformat()), NO_CLOCK):
        yield one


@pytest.fixture
def slow(one: Service) -> Iterator[Service]:
    """Many clients of one agent wait for longer than the api waits for the signer, as on a busy machine."""
    with _changing(one.database, SLOW, NOT_SLOW):
        yield one


@pytest.fixture
def meeting_pair(pair: list[Service]) -> Iterator[list[Service]]:
    """The same, and two orders of an agent that are judged meet before they are written."""
    with _changing(pair[0].database, MEET, NO_MEETING):
        yield pair


@pytest.fixture
def unguarded_pair(meeting_pair: list[Service]) -> Iterator[list[Service]]:
    """They meet too, but the ledger's version says nothing, and no unique index raises the alarm."""
    looks = next(text.sql for text in read() if text.name == "agents_behind").replace(
        "CREATE ", "CREATE OR REPLACE ", 1
    )
    # A version that does not rise would be taken for a database that went back.
    blind = f"{looks.partition('$$')[0]}$$ SELECT 0::bigint $$;"
    with _changing(meeting_pair[0].database, STILL + ";" + blind, MOVING + ";" + looks):
        yield meeting_pair


@pytest.mark.parametrize(
    ("way", "clients"),
    [
        ("plain", 2),
        ("plain", 64),
        ("approved", 32),
        ("mixed", 32),
        *(
            pytest.param(*one, marks=pytest.mark.long)
            for one in (
                ("plain", 8),
                ("plain", 32),
                ("approved", 2),
                ("approved", 8),
                ("approved", 64),
                ("mixed", 2),
                ("mixed", 8),
                ("mixed", 64),
            )
        ),
    ],
)
async def test_exactly_the_limit_is_signed(one: Service, way: str, clients: int) -> None:
    came_to = await _race(way, [one], clients)

    assert came_to.units == [UNITS]
    assert came_to.violations == []
    assert set(came_to.outcomes) == {"200", "403"}


@pytest.mark.long
async def test_clients_that_repeat_what_nobody_knows_spend_exactly_the_limit(slow: Service) -> None:
    came_to = await _race("plain", [slow], 64)

    assert came_to.repeated > 0
    assert came_to.units == [UNITS]
    assert came_to.violations == []
    assert came_to.outcomes == {"200": UNITS, "403": 30}


@pytest.mark.parametrize(
    "way", ["mixed", *(pytest.param(way, marks=pytest.mark.long) for way in ("plain", "approved"))]
)
async def test_two_signers_together_sign_exactly_the_limit(pair: list[Service], way: str) -> None:
    came_to = await _race(way, pair, 32)

    assert came_to.units == [UNITS]
    assert came_to.violations == []
    assert set(came_to.outcomes) == {"200", "403"}


@pytest.mark.parametrize("clients", [32, pytest.param(8, marks=pytest.mark.long)])
async def test_the_coin_of_a_chain_and_all_coins_come_to_exactly_their_limits(one: Service, clients: int) -> None:
    came_to = await _race("chains", [one], clients)

    # Half of it on each chain: nothing of one was counted to the other, and four that came late found no room.
    assert came_to.units == [2 * UNITS]
    assert came_to.violations == []
    assert came_to.outcomes == {"200": 2 * UNITS, "403": 34}


@pytest.mark.long
async def test_two_signers_keep_the_limits_of_a_chain_and_of_all(pair: list[Service]) -> None:
    came_to = await _race("chains", pair, 32)

    assert (came_to.units, came_to.violations) == ([2 * UNITS], [])


async def test_sixty_four_clients_spend_exactly_the_dollars_over_a_full_hour(full_hour: Service) -> None:
    came_to = await _race("dollars", [full_hour], 64)
    async with owner_of(full_hour.database) as owner:
        hours = await owner.fetchval("SELECT count(DISTINCT hour) FROM spend WHERE asset = 'usd' AND amount > 0")

    assert came_to.units == [UNITS]
    assert came_to.violations == []
    assert set(came_to.outcomes) == {"200", "403"}
    assert hours == 2


async def test_signatures_calls_and_payments_spend_exactly_the_dollars_over_a_full_hour(full_hour: Service) -> None:
    async with owner_of(full_hour.database) as owner:
        with new_tenant(full_hour) as tenant:
            agent = await race_kinds([full_hour], tenant, 64)
            came_to = await sums(owner, agent)
            found = await violations(owner, [tenant.id], [Limit(agent.id, UNITS, "usd")], DOLLARS)
            hours = await owner.fetchval("SELECT count(DISTINCT hour) FROM spend WHERE asset = 'usd' AND amount > 0")

    assert all(came_to[kind] > 0 for kind in KINDS), came_to
    assert sum(came_to.values()) == UNITS
    assert found == []
    assert hours == 2


TWO_KINDS = [*itertools.combinations(KINDS, 2), ("payment", "payment")]


@pytest.mark.parametrize("kinds", TWO_KINDS)
async def test_of_two_kinds_at_once_only_one_fits_the_budget(
    meeting_pair: list[Service], kinds: tuple[str, str]
) -> None:
    assert await _race_two(meeting_pair, kinds, times=3) == [60] * 3


@pytest.mark.parametrize("kinds", TWO_KINDS)
async def test_without_the_guard_both_kinds_pass(unguarded_pair: list[Service], kinds: tuple[str, str]) -> None:
    assert 120 in await _race_two(unguarded_pair, kinds, times=5)


async def _race_two(services: list[Service], kinds: tuple[str, str], times: int) -> list[int]:
    async with owner_of(services[0].database) as owner:
        with new_tenant(services[0]) as tenant:
            found = []
            for _ in range(times):
                came_to = await sums(owner, await race_two(services, tenant, kinds))
                found.append(sum(came_to.values()))
            return found


@pytest.mark.parametrize("way", ["pairs", "pairs of a chain", "pairs of dollars", "pairs for life"])
async def test_of_two_orders_at_once_only_one_fits_the_limit(meeting_pair: list[Service], way: str) -> None:
    came_to = await _race(way, meeting_pair, 2)

    assert came_to.units == [60] * 10
    assert came_to.violations == []
    assert came_to.outcomes == {"200": 10, "403": 10}


@pytest.mark.parametrize(
    ("way", "asset"),
    [
        ("pairs", "evm:native"),
        ("pairs of a chain", "evm:137:native"),
        ("pairs of dollars", "usd"),
        ("pairs for life", "evm:native"),
    ],
)
async def test_without_the_guard_the_oracle_sees_the_overspend(
    unguarded_pair: list[Service], way: str, asset: str
) -> None:
    came_to = await _race(way, unguarded_pair, 2)

    # Of both halves: five of them were told their nonces.
    assert came_to.units.count(120) > 5
    # Where the nonces were told, both can be mined; where not, two signatures share one.
    assert [text for text in came_to.violations if text.startswith("P1:") and f"signed 120 {asset}" in text]
    assert [text for text in came_to.violations if text.startswith("P2:")]


async def _race(way: str, services: list[Service], clients: int) -> Race:
    async with owner_of(services[0].database) as owner:
        with new_tenant(services[0]) as tenant:
            came_to = await race(way, services, tenant, clients, owner)
    print(f"{way}, {clients} clients, {len(services)} signers: {came_to}")
    return came_to


@contextmanager
def _changing(database: Database, change: str, undo: str) -> Iterator[None]:
    asyncio.run(_execute(database, change))
    try:
        yield
    finally:
        asyncio.run(_execute(database, undo))


def _partner(one: Service, prices: dict[str, str]) -> AbstractContextManager[Service]:
    """Both under one address, so that the tokens of the one are good at the other."""
    return partner_of(one, SERVICE_PUBLIC_URL=f"http://localhost:{one.port}", **prices)


async def _execute(database: Database, statement: str) -> None:
    async with owner_of(database) as owner:
        await owner.execute(statement)

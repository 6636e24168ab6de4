"""Behind a pooler that forgets prepared statements no process starts, and each says what to do."""

import uuid
from collections.abc import Iterator

import pytest

from custody.kit import poolers
from custody.kit.poolers import Pooler
from ops import doctor_database, places
from ops.settings import MODULES, PROCESSES, load
from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.outside.pgbouncer import KEEPS_STATEMENTS, running_pgbouncer, version


@pytest.fixture
def forgetful(database: Database) -> Iterator[Database]:
    """The database by way of transaction mode, as PgBouncer does it until it is told to keep statements."""
    with running_pgbouncer(database.urls, mode="transaction") as urls:
        yield Database(database.owner_url, urls)


@pytest.mark.parametrize("process", PROCESSES)
def test_a_process_behind_a_forgetful_pooler_refuses_with_the_cure(forgetful: Database, process: str) -> None:
    code, said = Service(forgetful, {}).run_to_end(MODULES[process])

    assert code == 1
    assert "forgets prepared statements between transactions" in said
    assert "max_prepared_statements = 500 in PgBouncer 1.21 or newer" in said
    assert "Traceback" not in said


async def test_poolers_are_told_apart(database: Database, forgetful: Database) -> None:
    with running_pgbouncer(database.urls, mode="session") as session:
        found = [await poolers.find_pooler(urls["api"]) for urls in (database.urls, forgetful.urls, session)]

    assert found == [Pooler.NONE, Pooler.FORGETFUL, Pooler.SESSION]


async def test_a_forgetful_pooler_is_found_while_others_use_it(forgetful: Database) -> None:
    """Settings that others left on the server's connections do not hide it."""
    assert [await poolers.find_pooler(forgetful.urls["api"]) for _ in range(20)] == [Pooler.FORGETFUL] * 20


async def test_the_doctor_names_the_processes_and_the_cure(forgetful: Database) -> None:
    urls = {f"SERVICE_DATABASE_URL_{process.upper()}": url for process, url in forgetful.urls.items()}

    said = await doctor_database.poolers(load({"SERVICE_HOME": "/nonexistent", **urls}))

    assert said.found == f"one between Postgres and {', '.join(PROCESSES)} forgets prepared statements"
    assert "max_prepared_statements" in str(said.cure)


@pytest.fixture
def apart(postgres_home: places.Home, worker_id: str) -> Database:
    """A database without keys: a deployment makes its own."""
    return database_apart(postgres_home, f"{worker_id}_pooled_{uuid.uuid4().hex[:8]}")


def _signs(database: Database) -> None:
    with deploy(database) as service, new_tenant(service) as tenant:
        agent = tenant.agent()
        assert [agent.sign().status_code for _ in range(30)] == [200] * 30


def test_orders_are_signed_behind_session_mode(apart: Database) -> None:
    with running_pgbouncer(apart.urls, mode="session") as urls:
        _signs(Database(apart.owner_url, urls))


def test_orders_are_signed_behind_transaction_mode_that_keeps_statements(apart: Database) -> None:
    if version() < KEEPS_STATEMENTS:
        pytest.skip("this PgBouncer cannot keep prepared statements")
    with running_pgbouncer(apart.urls, mode="transaction", statements=500) as urls:
        _signs(Database(apart.owner_url, urls))

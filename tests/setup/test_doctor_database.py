"""`custody doctor` on a database in which something is wrong, and says what is well when it is not."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncpg
import pytest

from custody.kit.quotas import Limits, Quotas
from ops import doctor, doctor_audit, doctor_database, doctor_quotas, doctor_work, places
from ops.findings import Finding
from ops.settings import load
from tests.fixtures.deployments import database_apart
from tests.fixtures.postgres import Database
from tests.outside.pooler import pooler

_WORLD = """
INSERT INTO tenants (id, name) VALUES ('acme', 'Acme');
INSERT INTO agents (tenant_id, id, incarnation, name) VALUES ('acme', 'buyer', gen_random_uuid(), 'B');
INSERT INTO webhook_endpoints (tenant_id, id, url, max_retries, retry_backoff_ms)
VALUES ('acme', '00000000-0000-4000-8000-000000000001', 'https://receiver.example', 3, 1000)
"""


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Database:
    """A database of this file's own: it is looked at as a whole."""
    return database_apart(postgres_home, f"{worker_id}_doctor")


@pytest.fixture
async def undone_connection(apart: Database) -> AsyncIterator[asyncpg.Connection]:
    """The owner's connection; what a test does in it is undone."""
    connection = await asyncpg.connect(apart.owner_url)
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


def deliveries(count: int, status: str, due: str = "NULL", error: str = "timeout") -> str:
    """Deliveries of the last hour, each tried once."""
    return (
        "INSERT INTO deliveries"
        " (tenant_id, endpoint_id, event, url, status, attempts, max_attempts, next_retry_at, error)"
        " SELECT 'acme', '00000000-0000-4000-8000-000000000001', 'tx.signed', 'https://receiver.example',"
        f" '{status}', 1, 4, {due}, '{error}' FROM generate_series(1, {count})"
    )


def job(name: str, minutes: int, *, failed: bool = False) -> str:
    """A job that ended well so many minutes ago, and perhaps failed since."""
    return (
        f"INSERT INTO jobs (name, last_success_at, last_failure_at) VALUES ('{name}',"
        f" service_now() - interval '{minutes} minutes', {'service_now()' if failed else 'NULL'})"
    )


def order(number: int, status: str, minutes: int, *, broadcast: bool = True) -> str:
    """An order that was signed so many minutes ago."""
    return (
        "INSERT INTO transactions (tenant_id, id, agent_id, incarnation, kind, family, status, chain_id, broadcast,"
        " order_text, digest, effects, policy_results, policy_version, signature, answer, signed_at)"
        f" VALUES ('acme', '00000000-0000-4000-8000-00000000000{number}', 'buyer', gen_random_uuid(), 'evm', 'evm',"
        f" '{status}', 31337, {broadcast}, '', '', '', '', 1, 'x', '', service_now() - interval '{minutes} minutes')"
    )


def audit(minutes: int) -> str:
    """An audit row of so many minutes ago, which waits to be sealed."""
    return (
        "INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id, metadata,"
        f" created_at) VALUES ('acme', 'api', 'system', 'x', 'x', 'x', 'x', '{{}}',"
        f" service_now() - interval '{minutes} minutes')"
    )


# Each check with what it says is well and what it says is wrong: words of the finding, and of the cure.
@pytest.mark.parametrize(
    ("check", "done", "found", "cure"),
    [
        (doctor_work.jobs, [], "no scheduler", "custody scheduler"),
        (doctor_work.jobs, [job("seal", 1)], "1, each succeeded", None),
        (doctor_work.jobs, [job("seal", 1), job("deliver", 9)], "5 minutes: deliver", "a scheduler runs"),
        (doctor_work.jobs, [job("seal", 9, failed=True)], "seal (its last run failed)", "log/scheduler.log"),
        (doctor_work.webhooks, [], "0 deliveries tried", None),
        (doctor_work.webhooks, [deliveries(18, "delivered"), deliveries(2, "failed")], "20 deliveries tried", None),
        (
            doctor_work.webhooks,
            [deliveries(17, "delivered"), deliveries(3, "failed")],
            "20 deliveries tried in the last hour, 3 of them failed, "
            "most at 00000000-0000-4000-8000-000000000001 of acme",
            None,
        ),
        (doctor_work.webhooks, [deliveries(9, "failed")], "9 of them failed, most at", None),
        (
            doctor_work.webhooks,
            [deliveries(10, "failed")],
            "none of 10 deliveries of the last hour succeeded, most failed at 00000000-0000-4000-8000-000000000001",
            "GET /webhooks/{id}/deliveries?hasError=true",
        ),
        (
            doctor_work.webhooks,
            [deliveries(99, "delivered"), deliveries(1, "failed", error="unsigned")],
            "1 deliveries of the last hour failed for an internal reason",
            "scheduler and signer",
        ),
        (
            doctor_work.webhooks,
            [deliveries(1, "pending", "service_now() - interval '9 minutes'")],
            "1 deliveries are overdue",
            "`deliver`",
        ),
        (doctor_work.sealing, [audit(1)], "1 rows wait to be sealed", None),
        (doctor_work.sealing, [audit(1), audit(9)], "1 rows have waited 5 minutes", "docs/recovery.md"),
        (doctor_audit.whole, [audit(1)], "every row is sealed or queued", None),
        (doctor_audit.whole, [audit(1), "DELETE FROM audit_unsealed WHERE tenant_id = 'acme'"], "up: acme", "verify"),
        (doctor_audit.whole, [audit(1), "DELETE FROM audit WHERE tenant_id = 'acme'"], "up: acme", "verify"),
        (
            doctor_work.transactions,
            [
                order(1, "signed", 9),
                order(2, "broadcast", 300),
                order(3, "signed", 99, broadcast=False),
                order(4, "confirmed", 999),
            ],
            "none is stuck",
            None,
        ),
        (doctor_work.transactions, [order(1, "signed", 11)], "1 not broadcast", "SERVICE_RPC_URL_31337"),
        (doctor_work.transactions, [order(1, "broadcast", 361)], "1 not final", "/replace"),
        (doctor_database.replicas, [], "none", None),
        (doctor_database.clocks, [], "agree", None),
    ],
    ids=lambda given: given.__name__ if callable(given) else "",
)
async def test_a_check_says_what_it_found_and_the_cure(
    undone_connection: asyncpg.Connection,
    check: Callable[[asyncpg.Connection], Awaitable[Finding]],
    done: list[str],
    found: str,
    cure: str | None,
) -> None:
    await undone_connection.execute(_WORLD)
    for statement in done:
        await undone_connection.execute(statement)

    finding = await check(undone_connection)

    assert found in finding.found
    assert (cure in finding.cure) if cure else finding.cure is None


async def test_clocks_apart_are_wrong_whichever_is_ahead(undone_connection: asyncpg.Connection) -> None:
    for way in ("+", "-"):
        await undone_connection.execute(
            "CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE"
            f" AS $$ SELECT clock_timestamp() {way} interval '20 seconds' $$"
        )

        finding = await doctor_database.clocks(undone_connection)

        assert finding.found in {"the database's is 20 s off", "the database's is 19 s off"}
        assert "NTP" in str(finding.cure)


async def test_commits_that_a_crash_may_lose_are_wrong_for_every_role(apart: Database) -> None:
    name = apart.owner_url.partition("?")[0].rpartition("/")[2]
    owner = await asyncpg.connect(apart.owner_url)
    # The tests' own server trades safety for speed; one of its settings can be mended for a database.
    await owner.execute(f"ALTER DATABASE {name} SET synchronous_commit = on")
    await owner.close()

    found = []
    for role in (None, "custody_api"):
        connection = await asyncpg.connect(apart.owner_url)
        if role:
            await connection.execute(f"ALTER ROLE {role} IN DATABASE {name} SET synchronous_commit = off")
        found.append(await doctor_database.durability(connection))
        await connection.close()

    assert found[0].found == "fsync, full_page_writes off: acknowledged commits can be lost"
    assert found[1].found.startswith("fsync, full_page_writes, synchronous_commit off")
    assert "synchronous_commit = on" in str(found[1].cure)


async def test_a_pooler_before_a_process_is_found(apart: Database) -> None:
    urls = {f"SERVICE_DATABASE_URL_{process.upper()}": url for process, url in apart.urls.items()}
    async with pooler(apart.urls["proxy"]) as url:
        well = await doctor_database.poolers(load({"SERVICE_HOME": "/nonexistent", **urls}))
        passing = await doctor_database.poolers(
            load({"SERVICE_HOME": "/nonexistent", **urls, "SERVICE_DATABASE_URL_PROXY": url})
        )

    assert (well.found, well.cure) == ("none in front of 5 of 5 processes whose database URL is readable here", None)
    assert (passing.found, passing.cure) == ("in session mode between Postgres and proxy", None)


async def test_the_command_asks_a_database_that_answers(
    apart: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def subjects() -> set[str]:
        return {
            line[7:].split(":")[0] for line in capsys.readouterr().out.splitlines() if line[:5] in ("ok   ", "WRONG")
        }

    absent = "postgresql://custody@127.0.0.1:1/custody"
    await doctor.run(load({"SERVICE_HOME": str(tmp_path), "SERVICE_DATABASE_URL": absent}))
    without = subjects()
    await doctor.run(load({"SERVICE_HOME": str(tmp_path), "SERVICE_DATABASE_URL": apart.owner_url}))

    asked = {
        "commits",
        "replicas",
        "clocks",
        "connections",
        "jobs",
        "webhooks",
        "audit log",
        "audit rows",
        "transactions",
        "pooler",
        "quotas",
        "keys of identity providers",
        "secrets of identity providers",
    }
    assert subjects() - without == asked


async def test_a_tenant_near_a_quota_is_named_without_a_failure(undone_connection: asyncpg.Connection) -> None:
    await undone_connection.execute(_WORLD)
    before = await doctor_quotas.near(undone_connection, Limits())
    await undone_connection.execute(
        "UPDATE agents SET orders = 95, day = utc_day(), day_orders = 5; "
        "INSERT INTO deleted_agents VALUES ('acme', utc_day(), 5, 1)"
    )

    near = await doctor_quotas.near(
        undone_connection, Limits(everybody=Quotas(orders=100, orders_per_day=10, agents=2))
    )
    apart = await doctor_quotas.near(
        undone_connection, Limits(everybody=Quotas(orders=100), apart={"acme": Quotas(orders=0)})
    )

    assert (before.found, before.cure) == ("no tenant is near a limit", None)
    assert near.found.startswith("1 tenants at or near a limit: acme (ordersPerDay 10 of 10), acme (orders 95 of 100);")
    assert "SERVICE_QUOTAS_FILE" in near.found
    assert near.cure is None
    assert apart.found == "no tenant is near a limit"

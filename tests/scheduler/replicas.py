"""More schedulers on the database of a deployment, killed while they work; and what the tables say of it afterwards."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import msgspec

from ops.settings import MODULES
from tests.expiry.race import judge
from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually, soon
from tests.fixtures.server import START_SECONDS, STOP_SECONDS, Service, free_ports
from tests.fixtures.starts import start
from tests.outside import loopback

AGENTS = 4
EACH_SECOND = 1
SETTLE_SECONDS = 90
# Once a job has run, the database is there, all jobs are on the clock, and a stop is heard.
_AT_WORK = 'custody_job_runs_total{outcome="done",task="expire"}'
# The watch is asked a little after the claim was made.
TOLERANCE_SECONDS = 0.5


class Replica:
    """One more scheduler of a deployment."""

    def __init__(self, service: Service) -> None:
        self._service = service
        [self._metrics_port] = free_ports(1)
        self.start()

    def start(self) -> None:
        """Start it; it needs nobody's leave to work."""
        environment = {**self._service._environment, "SERVICE_METRICS_PORT_SCHEDULER": str(self._metrics_port)}
        with (self._service.home / "log" / "replica.log").open("ab") as log:
            self.process = start(MODULES["scheduler"], environment=environment, output=log)

    def kill(self) -> None:
        """kill -9: no goodbye."""
        self.process.kill()
        self.process.wait()

    def ready(self) -> None:
        """Wait until it is at work."""
        eventually(self._is_at_work, seconds=START_SECONDS)

    def figures(self) -> str:
        """All figures as they are served; nothing while they are not."""
        try:
            return loopback.get(f"http://127.0.0.1:{self._metrics_port}/metrics").text
        except httpx.TransportError:
            return ""

    def _is_at_work(self) -> bool:
        assert self.process.poll() is None, self._service.logs()[-4000:]
        return _AT_WORK in self.figures()


@contextmanager
def replicas(service: Service, count: int) -> Iterator[list[Replica]]:
    """So many; those that live at the end are stopped in order, and must end well."""
    started = [Replica(service) for _ in range(count)]
    try:
        yield started
    finally:
        for one in started:
            if one.process.poll() is None:
                # A stop that it does not hear yet would be a kill.
                one.ready()
            one.process.terminate()
            assert one.process.wait(STOP_SECONDS) in (0, -9), service.logs()[-4000:]


class Killed(msgspec.Struct, frozen=True):
    """The state of the work while schedulers died."""

    kills: int
    sent: int
    expired: int
    events: int
    lost: list[str]
    twice: list[str]


def replicas_killed(service: Service, tenant: Tenant, seconds: float, say: Callable[[str], None]) -> Killed:
    """Two schedulers, one of them killed every second, in turns, while orders come due and approvals run out."""
    payers = [tenant.agent() for _ in range(AGENTS)]
    cautious = [tenant.agent(rule("auto-approve-threshold", threshold="0")) for _ in range(AGENTS)]
    sent: list[str] = []
    approvals: list[str] = []
    kills = 0
    with replicas(service, 2) as pair, asyncio.Runner() as runner:
        runner.run(_watch(service))
        until = time.monotonic() + seconds
        for victim in itertools.cycle(pair):
            if time.monotonic() > until:
                break
            began = time.monotonic()
            sent += (new := [_sign(agent) for agent in payers for _ in range(EACH_SECOND)])
            approvals += (waiting := [_queue(agent) for agent in cautious for _ in range(EACH_SECOND)])
            runner.run(_make_due(service, new, waiting))
            victim.kill()
            victim.start()
            kills += 1
            time.sleep(max(0.0, began + 1 - time.monotonic()))
            if kills % 10 == 0:
                say(f"scheduler killed {kills} times: {len(sent)} orders, {len(approvals)} approvals")
        runner.run(_settle(service, tenant))
        return runner.run(_judge(service, tenant, kills, sent, approvals))


def _sign(agent: Agent) -> str:
    answer = agent.sign()
    assert answer.status_code == 200, answer.text
    return str(answer.json()["data"]["txId"])


def _queue(agent: Agent) -> str:
    answer = agent.sign()
    assert answer.status_code == 202, answer.text
    return str(answer.json()["data"]["approvalId"])


async def _watch(service: Service) -> None:
    async with owner_of(service.database) as owner:
        await owner.execute(_WATCH)


async def _make_due(service: Service, orders: Sequence[str], approvals: Sequence[str]) -> None:
    async with owner_of(service.database) as owner:
        await owner.execute(
            "UPDATE transactions SET broadcast = true, resend_at = service_now() WHERE id = ANY ($1)", orders
        )
        await owner.execute("UPDATE approvals SET expires_at = service_now() WHERE id = ANY ($1)", approvals)


async def _settle(service: Service, tenant: Tenant) -> None:
    """Wait until nothing is left to do, for a bounded time."""
    async with owner_of(service.database) as owner:
        await soon(lambda: owner.fetchval(_LEFT, tenant.id), lambda left: not left, SETTLE_SECONDS)


async def _judge(
    service: Service, tenant: Tenant, kills: int, orders: Sequence[str], approvals: Sequence[str]
) -> Killed:
    async with owner_of(service.database) as owner:
        rows = await owner.fetch(_ORDERS, tenant.id, orders)
        events = await owner.fetch("SELECT id, number FROM events WHERE tenant_id = $1", tenant.id)
        outcomes, _, problems = await judge(owner, tenant, approvals, {})
        lost = [f"{row['id']} is still {row['status']}" for row in rows if row["status"] == "signed"]
        lost += [f"an approval is {status}" for status in outcomes.elements() if status != "expired"]
        lost += [f"{row['told']} events of {row['id']}" for row in rows if row["told"] != 1]
        twice = [f"{row['id']} was noted {row['noted']} times" for row in rows if row["noted"] > 1]
        twice += [*problems, *_claimed_twice(await owner.fetch(_CLAIMS, orders)), *_repetitions(events)]
    return Killed(kills, len(rows), outcomes["expired"], len(events), lost, twice)


def _claimed_twice(claims: Sequence[Any]) -> list[str]:
    """Rows that were claimed again before the claim before was over: 5 s at first, then twice as long each time."""
    return [
        f"{row['id']} was claimed for the {row['resends']}th time after {row['since'].total_seconds():.2f} s"
        for row in claims
        if row["since"] is not None and row["since"].total_seconds() < 5 * 2 ** (row["resends"] - 2) - TOLERANCE_SECONDS
    ]


def _repetitions(events: Sequence[Any]) -> list[str]:
    times = Counter(row["id"] for row in events)
    return [f"event {name} was published {count} times" for name, count in times.items() if count > 1]


# Written down by the database itself, for every scheduler that claims.
_WATCH = """
CREATE TABLE IF NOT EXISTS claims (id uuid, resends integer, at timestamptz DEFAULT clock_timestamp());
CREATE OR REPLACE FUNCTION watch_claims() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO claims (id, resends) VALUES (NEW.id, NEW.resends);
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER watch_claims AFTER UPDATE OF resends ON transactions
  FOR EACH ROW EXECUTE FUNCTION watch_claims();
"""
_CLAIMS = "SELECT id, resends, at - lag(at) OVER (PARTITION BY id ORDER BY at) AS since FROM claims WHERE id = ANY ($1)"
_LEFT = """
SELECT EXISTS (SELECT FROM transactions WHERE tenant_id = $1 AND status = 'signed' AND broadcast)
    OR EXISTS (SELECT FROM approvals WHERE tenant_id = $1 AND status = 'pending')
    OR EXISTS (SELECT FROM outbox WHERE tenant_id = $1)"""
_ORDERS = """
SELECT t.id, t.status,
       (SELECT count(*) FROM audit u
         WHERE u.tenant_id = $1 AND u.resource_id = t.id::text AND u.action = 'tx.broadcast') AS noted,
       (SELECT count(*) FROM events e
         WHERE e.tenant_id = $1 AND e.event = 'tx.signed' AND e.data::json->>'txId' = t.id::text) AS told
  FROM transactions t WHERE t.tenant_id = $1 AND t.id = ANY ($2::uuid[])"""

"""The state after the worst: a rotation, a backup and a restore killed anywhere, a disk that is full, a database
that is stopped again and again while everything is under load.

`python -m bench.recovery` prints the three figures; `make reliability` runs them with the others.
"""

import argparse
import asyncio
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import msgspec

from ops import places
from tests.fixtures.callers import Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import KillablePostgres, deploy, killable_postgres, owner_of
from tests.fixtures.keepsakes import custody, operators
from tests.fixtures.people import member
from tests.fixtures.server import Service
from tests.promises.kills import postgres_stopped
from tests.promises.load import load_on
from tests.promises.oracle import violations
from tests.routes.webhooks.receivers import Receiver, running_receiver

BATCH = 100
PATIENCE_SECONDS = 60
DISK_MIB = 320
# Left to the database when the disk is "full": less than one segment of its log.
LEFT_MIB = 2


class Figure(msgspec.Struct, frozen=True):
    """One figure: how often, what it came to, what was wrong."""

    what: str
    rounds: int
    came_to: str
    problems: list[str]
    seconds: float

    def __str__(self) -> str:
        wrong = f"{len(self.problems)} PROBLEMS" if self.problems else "nothing lost"
        return f"{self.what}: {self.rounds} rounds, {self.came_to}, {wrong}, {self.seconds:.0f} s"


def drill(wallets: int, kills: int, say: Callable[[str], None]) -> Figure:
    """Backup, wipe, restore and rotation, each killed at random moments; every wallet opens and its address matches."""
    began, draws, problems = time.monotonic(), random.Random(5), []
    with (
        killable_postgres() as postgres,
        # One tenant has them all.
        deploy(postgres.database, SERVICE_QUOTA_AGENTS="0") as service,
        new_tenant(service) as tenant,
    ):
        _make_agents(tenant, wallets // 2)
        addresses = asyncio.run(_addresses(service))
        rate = _rotate(service, problems)
        say(f"rotation alone: {rate:.0f} values/s")
        for number in range(kills):
            _rotation_killed(service, draws.uniform(0.1, 2 * wallets / rate + 0.6), number)
        _rotate(service, problems)
        problems += _verify(service, "after the rotations")
        say(f"rotation killed {kills} times")
        with tempfile.TemporaryDirectory(prefix="cr-") as folder:
            copies = Path(folder)
            _backups_killed(service, copies, kills, draws, problems)
            say(f"backup killed {kills} times")
            before, signed = asyncio.run(_addresses(service)), asyncio.run(_count_rows(service))
            service.stop()
            _restores_killed(service, copies / "whole", kills, draws, problems)
            say(f"restore killed {kills} times")
        problems += _verify(service, "after the restore")
        if not addresses.items() <= before.items() or asyncio.run(_addresses(service)) != before:
            problems.append("addresses differ from those before")
        if asyncio.run(_count_rows(service)) != signed:
            problems.append("rows differ from those before")
        service.start("signer", "identity", "api")
        agent = tenant.as_agent(tenant.ok("GET", "/agents/w-0"))
        if agent.sign().status_code != 200:
            problems.append("a restored wallet does not sign")
    came_to = f"{wallets} wallets, {rate:.0f} values/s resealed"
    return Figure("backup, wipe, restore, rotation, killed", 3 * kills, came_to, problems, time.monotonic() - began)


def disk_full(rounds: int, say: Callable[[str], None]) -> Figure | None:
    """A database whose disk has no room: nothing is signed without its audit row, 503 until there is room again."""
    began, problems, met = time.monotonic(), [], Counter[str]()
    with small_disk() as (home, disk):
        if disk is None:
            say("disk full: skipped, this machine does not let us mount a small disk")
            return None
        postgres = KillablePostgres(home)
        try:
            with (
                deploy(postgres.database, "signer", "identity", "api", "scheduler") as service,
                new_tenant(service) as tenant,
            ):
                agents = [tenant.agent(rule("spending-limit", maxPerDay="1000000000")) for _ in range(4)]
                with load_on(agents) as load:
                    for number in range(rounds):
                        load.wait_for(20)
                        _fill(disk)
                        if number % 2:
                            # No room for the log either: Postgres itself gives up.
                            asyncio.run(_log_exhausted(service))
                        said = _until_refused(agents[0], problems)
                        met.update(said)
                        (disk / "filler").unlink(missing_ok=True)
                        _up_again(postgres)
                        load.wait_for(50)
                        say(f"disk full {number + 1}/{rounds}: {dict(said)}, then {len(load.acknowledged)} signed")
                problems += asyncio.run(_violations(service, tenant))
                problems += [f"{n} ended" for n, one in service.processes.items() if one.poll() is not None]
        finally:
            postgres.stop()
    met.pop("200", None)
    return Figure("disk full", rounds, f"refused with {dict(met)}", problems, time.monotonic() - began)


def stopped_under_mixed_load(rounds: int, say: Callable[[str], None]) -> Figure:
    """Postgres stopped without a goodbye while orders, decisions, rules and webhooks go on. P1, P2, P3, P8 and P9."""
    began = time.monotonic()
    with (
        killable_postgres() as postgres,
        deploy(postgres.database, "signer", "identity", "api", "scheduler") as service,
        new_tenant(service) as tenant,
        running_receiver() as receiver,
    ):
        owner = member(service, tenant, "owner", mfa=True)
        owner.ok("POST", "/webhooks", {"url": receiver.url("/200/all"), "maxRetries": 10, "retryBackoffMs": 1000})
        owner.close()
        with mix(tenant) as others:
            survived = postgres_stopped(postgres, service, tenant, rounds, say)
        problems = [*survived.problems, *others.strange]
        problems += [f"{name} ended" for name, one in service.processes.items() if one.poll() is not None]
        problems += asyncio.run(_find_undelivered(service, tenant, receiver))
        problems += asyncio.run(_violations(service, tenant))
    said = f"{survived.acknowledged} acknowledged, {sum(others.done.values())} other acts, "
    came_to = f"{said}{len(receiver.received)} deliveries, silent at most {max(survived.seconds):.1f} s"
    return Figure("postgres stopped under mixed load", rounds, came_to, problems, time.monotonic() - began)


class Mixed:
    """Somebody who queues, decides, changes rules and reads, and takes 503 for an answer."""

    def __init__(self, tenant: Tenant) -> None:
        self.done: Counter[str] = Counter()
        self.strange: list[str] = []
        self.stopping = threading.Event()
        self._tenant = tenant
        self._agent = tenant.agent(rule("auto-approve-threshold", threshold="5"))

    def run(self) -> None:
        """Until told to stop."""
        with httpx.Client(base_url=self._tenant.base_url, headers=self._tenant.headers, timeout=20) as http:
            turn = 0
            while not self.stopping.is_set():
                turn += 1
                item = self._ask("queue", lambda: self._agent.sign(value=9))
                if item is None:
                    continue
                act = "approve" if turn % 2 else "deny"
                path = f"/approvals/{item['approvalId']}/{act}"
                self._ask(act, lambda path=path: http.post(path, json={}))
                rules = [rule("auto-approve-threshold", threshold=str(1 + turn % 5))]
                self._ask("rules", lambda rules=rules: http.put(f"/agents/{self._agent.id}/policies", json=rules))
                self._ask("read", lambda: http.get(f"/vault/{self._agent.id}/history"))

    def _ask(self, what: str, call: Callable[[], httpx.Response]) -> Any:
        try:
            answer = call()
        except httpx.TransportError:
            return None
        # 409: the decision that came before and whose answer was lost.
        if answer.status_code not in (200, 202, 409, 503):
            self.strange.append(f"{what}: {answer.status_code} {answer.text[:200]}")
        if answer.status_code in (200, 202):
            self.done[what] += 1
            return answer.json()["data"]
        return None


@contextmanager
def mix(tenant: Tenant) -> Iterator[Mixed]:
    """Such a person, on a thread, while the body runs."""
    others = Mixed(tenant)
    thread = threading.Thread(target=others.run)
    thread.start()
    try:
        yield others
    finally:
        others.stopping.set()
        thread.join()


@contextmanager
def small_disk() -> Iterator[tuple[places.Home, Path | None]]:
    """A state folder whose database lies on a disk of its own, or None where nothing may be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="cd-"))
    home = places.open_home(folder / "home")
    disk = home.file("postgres")
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={DISK_MIB}m,mode=711", "custody-small", str(disk)]
    mounted = shutil.which("mount") is not None and _run("mount", *options)
    try:
        yield home, disk if mounted else None
    finally:
        if mounted:
            _run("umount", str(disk))
        shutil.rmtree(folder)


def _run(*words: str) -> bool:
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def _make_agents(tenant: Tenant, count: int) -> None:
    for start in range(0, count, BATCH):
        some = [{"id": f"w-{n}", "name": "W"} for n in range(start, min(start + BATCH, count))]
        tenant.ok("POST", "/agents/batch", {"agents": some})


def _rotate(service: Service, problems: list[str]) -> float:
    """Rotate to the end; values resealed a second."""
    before = asyncio.run(_count_sealed(service))
    began = time.monotonic()
    ended = custody(service, "keys", "rotate")
    if ended.returncode != 0:
        problems.append(f"rotate: {ended.stderr}")
    return before / (time.monotonic() - began)


def _rotation_killed(service: Service, seconds: float, number: int) -> None:
    """Kill the signer, and every other time the command instead, so many seconds after it was begun."""
    command = _start(service, "keys", "rotate")
    _wait(command, seconds)
    if number % 2:
        command.kill()
    service.kill("signer")
    command.wait(PATIENCE_SECONDS)
    service.start("signer")


def _backups_killed(service: Service, copies: Path, kills: int, draws: random.Random, problems: list[str]) -> None:
    began = time.monotonic()
    if (whole := custody(service, "backup", str(copies / "whole"))).returncode != 0:
        problems.append(f"backup: {whole.stderr}")
    takes = time.monotonic() - began
    for number in range(kills):
        folder = copies / f"copy-{number}"
        command = _start(service, "backup", str(folder))
        _wait(command, draws.uniform(0.1, takes))
        command.kill()
        command.wait()
        # There in full, or not at all.
        if folder.exists() and sorted(one.name for one in folder.iterdir()) != ["database.dump", "manifest.json"]:
            problems.append(f"{folder.name} is there in part")


def _restores_killed(service: Service, copy: Path, kills: int, draws: random.Random, problems: list[str]) -> None:
    asyncio.run(_wipe(service))
    began = time.monotonic()
    if (whole := custody(service, "restore", str(copy))).returncode != 0:
        problems.append(f"restore: {whole.stderr}")
    takes = time.monotonic() - began
    for _ in range(kills):
        asyncio.run(_wipe(service))
        command = _start(service, "restore", str(copy))
        _wait(command, draws.uniform(0.1, takes))
        command.kill()
        command.wait()
        tables = asyncio.run(_tables_when_quiet(service))
        if 0 < tables < asyncio.run(_tables_wanted(copy)):
            problems.append(f"a restore that was killed left {tables} tables")
    asyncio.run(_wipe(service))
    if (again := custody(service, "restore", str(copy), "--verify")).returncode != 0:
        problems.append(f"restore --verify: {again.stdout} {again.stderr}")


def _verify(service: Service, when: str) -> list[str]:
    ended = custody(service, "restore", "--verify")
    return [] if ended.returncode == 0 else [f"{when}: {ended.stdout[-500:]} {ended.stderr[-500:]}"]


def _start(service: Service, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "ops", *words],
        cwd="/",
        env=operators(service),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _wait(command: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        command.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _fill(disk: Path) -> None:
    free = os.statvfs(disk)
    # The database writes beside it, so there may be less room by now.
    with suppress(OSError), (disk / "filler").open("wb") as filler:
        filler.write(bytes(max(0, free.f_bavail * free.f_frsize - LEFT_MIB * 2**20)))


async def _log_exhausted(service: Service) -> None:
    """Write into the database's log until it can not be written any more."""
    async with owner_of(service.database) as owner:
        try:
            for _ in range(DISK_MIB):
                await owner.execute("SELECT pg_logical_emit_message(true, 'filler', repeat('x', 1000000))")
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            return
    raise AssertionError("the log of a full disk took everything")


def _until_refused(agent: Agent, problems: list[str]) -> Counter[str]:
    """Sign until that is refused; what was answered."""
    said: Counter[str] = Counter()
    give_up = time.monotonic() + PATIENCE_SECONDS
    while sum(count for what, count in said.items() if what != "200") < 5:
        answer = agent.sign()
        said["200" if answer.is_success else f"{answer.status_code} {answer.json()['data']['code']}"] += 1
        if answer.status_code not in (200, 503):
            problems.append(f"disk full: {answer.status_code} {answer.text[:200]}")
        if time.monotonic() > give_up:
            problems.append(f"a full disk refused nothing: {said}")
            return said
    return said


def _up_again(postgres: KillablePostgres) -> None:
    """As the supervisor does: a database that ended is started again."""
    if postgres.ended:
        postgres.start_again()


async def _violations(service: Service, tenant: Tenant) -> list[str]:
    async with owner_of(service.database) as owner:
        return list(await violations(owner, [tenant.id]))


async def _find_undelivered(service: Service, tenant: Tenant, receiver: Receiver) -> list[str]:
    """Wait until nothing is on its way any more; what was delivered nowhere and shows as nothing."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    async with owner_of(service.database) as owner:
        while True:
            waiting = await owner.fetchval(
                "SELECT (SELECT count(*) FROM outbox) + (SELECT count(*) FROM deliveries WHERE next_retry_at IS NOT NULL)"
            )
            if not waiting:
                break
            if time.monotonic() > give_up:
                return [f"P8: {waiting} events or deliveries still wait"]
            await asyncio.sleep(0.2)
        rows = await owner.fetch("SELECT id::text, status FROM deliveries WHERE tenant_id = $1", tenant.id)
    came = {one.headers["webhook-id"] for one in receiver.received}
    return [
        f"P8: delivery {row['id']} is {row['status']} but came nowhere"
        for row in rows
        if row["status"] == "delivered" and row["id"] not in came
    ]


async def _addresses(service: Service) -> dict[str, str]:
    async with owner_of(service.database) as owner:
        rows = await owner.fetch(
            "SELECT tenant_id, agent_id, string_agg(address, ' ' ORDER BY family) AS addresses FROM wallets "
            "GROUP BY tenant_id, agent_id"
        )
    return {f"{row['tenant_id']}/{row['agent_id']}": row["addresses"] for row in rows}


async def _count_rows(service: Service) -> dict[str, int]:
    async with owner_of(service.database) as owner:
        tables = ("sealed", "transactions", "spend", "nonces", "policy_heads", "tenant_keys")
        return {table: await owner.fetchval(f"SELECT count(*) FROM {table}") for table in tables}


async def _count_sealed(service: Service) -> int:
    async with owner_of(service.database) as owner:
        return int(await owner.fetchval("SELECT (SELECT count(*) FROM sealed) + (SELECT count(*) FROM policy_heads)"))


async def _wipe(service: Service) -> None:
    """An empty schema in the place of the current one: to `custody restore` an empty database."""
    async with owner_of(service.database) as owner:
        await owner.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC")


async def _tables_when_quiet(service: Service) -> int:
    """Count the tables, once nobody writes any."""
    async with owner_of(service.database) as owner, asyncio.timeout(PATIENCE_SECONDS):
        while True:
            busy = await owner.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            if not busy:
                break
            await asyncio.sleep(0.05)
        return int(
            await owner.fetchval(
                "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
            )
        )


async def _tables_wanted(copy: Path) -> int:
    return len(msgspec.json.decode((copy / "manifest.json").read_bytes())["counts"])


def figures(wallets: int, kills: int, full: int, stops: int, say: Callable[[str], None]) -> list[Figure]:
    """All three; the disk's is left out where nothing may be mounted."""
    made = [drill(wallets, kills, say), disk_full(full, say), stopped_under_mixed_load(stops, say)]
    return [figure for figure in made if figure is not None]


def main() -> None:
    """Print the figures; exit with 1 when something was lost."""
    parser = argparse.ArgumentParser(prog="python -m bench.recovery", description=__doc__)
    parser.add_argument("--wallets", type=int, default=4000, help="how many wallets are rotated and restored")
    parser.add_argument("--kills", type=int, default=20, help="how often rotation, backup and restore are each killed")
    parser.add_argument("--full", type=int, default=5, help="how often the disk is filled")
    parser.add_argument("--stops", type=int, default=20, help="how often Postgres is stopped without a goodbye")
    given = parser.parse_args()
    made = figures(given.wallets, given.kills, given.full, given.stops, lambda text: print(text, flush=True))
    for figure in made:
        print(figure)
        for problem in figure.problems:
            print(f"  {problem}")
    sys.exit(1 if any(figure.problems for figure in made) else 0)


if __name__ == "__main__":
    main()

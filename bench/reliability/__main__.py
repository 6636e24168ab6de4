"""Kill processes, stop Postgres, race for a limit; look in the tables for what was lost, doubled or overspent.

The same code as in `tests/promises`, with more rounds, on a Postgres with the settings of production.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator, Sequence

import msgspec

from bench import recovery, webhooks
from bench.reliability import schedulers
from bench.reliability.tampered import tamper
from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import KillablePostgres, deploy, killable_postgres, owner_of, partner_of
from tests.fixtures.server import Service
from tests.promises.kills import Survived, kill, postgres_stopped
from tests.promises.races import UNITS, Race, race

WAYS = ("plain", "approved", "mixed")


class Row(msgspec.Struct, frozen=True):
    """One line of the table of figures."""

    what: str
    rounds: int
    asked: str
    lost: int
    broken: int
    seconds: str

    @property
    def well(self) -> bool:
        """True if nothing was lost and no promise broken."""
        return self.lost == 0 and self.broken == 0


def main() -> None:
    """Run everything; exit with 1 when a promise did not hold."""
    given = _arguments()
    began = time.monotonic()
    rows: list[Row] = []
    for row in _rows(given):
        rows.append(row)
        # Each row is said at once: all of them together take an hour.
        _say(f"== {row.what}: {row.rounds}, {row.asked}; {row.lost} lost or doubled, {row.broken} promises broken")
    print(_table(rows))
    print(
        f"{time.monotonic() - began:.0f} s in all; {'every promise held' if _well(rows) else 'NOT EVERY PROMISE HELD'}"
    )
    sys.exit(0 if _well(rows) else 1)


def _rows(given: argparse.Namespace) -> Iterator[Row]:
    with (
        killable_postgres() as postgres,
        deploy(postgres.database, "signer", "identity", "api", "scheduler") as service,
    ):
        yield from _survivals(postgres, service, given.kills, given.stops)
        yield from _races(service, given.races)
    yield _schedulers(given.scheduler_seconds)
    yield _mutations(given.mutations)
    yield _deliveries(given.events)
    for one in recovery.figures(given.wallets, given.drills, given.full, given.stops, _say):
        yield Row(one.what, one.rounds, one.came_to, len(one.problems), 0, "")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.reliability", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="how often signer and api are each killed")
    parser.add_argument("--stops", type=int, default=20, help="how often Postgres is stopped without a goodbye")
    parser.add_argument("--races", type=int, default=10, help="rounds of each race")
    parser.add_argument("--scheduler-seconds", type=float, default=120, help="for how long schedulers are killed")
    parser.add_argument("--wallets", type=int, default=4000, help="how many wallets are rotated and restored")
    parser.add_argument("--drills", type=int, default=20, help="how often rotation, backup and restore are each killed")
    parser.add_argument("--full", type=int, default=5, help="how often the database's disk is filled")
    parser.add_argument("--mutations", type=int, default=1000, help="how often sealed audit rows are tampered with")
    parser.add_argument("--events", type=int, default=10_000, help="how many events go to twenty endpoints each")
    return parser.parse_args()


def _survivals(postgres: KillablePostgres, service: Service, kills: int, stops: int) -> Iterator[Row]:
    with new_tenant(service) as tenant:
        yield _row(kill(service, tenant, "signer", kills, _say))
    with new_tenant(service) as tenant:
        yield _row(kill(service, tenant, "api", kills, _say))
    with new_tenant(service) as tenant:
        yield _row(postgres_stopped(postgres, service, tenant, stops, _say))


def _races(service: Service, rounds: int) -> Iterator[Row]:
    # Both under one address, so that the tokens of the one are good at the other.
    with partner_of(service, SERVICE_PUBLIC_URL=f"http://localhost:{service.port}") as other:
        for services in ([service], [service, other]):
            for way in WAYS:
                came_to = [asyncio.run(_race(way, services, number)) for number in range(rounds)]
                yield _race_row(f"race, {way}, {len(services)} signers", came_to)


async def _race(way: str, services: Sequence[Service], number: int) -> Race:
    async with owner_of(services[0].database) as owner:
        with new_tenant(services[0]) as tenant:
            came_to = await race(way, services, tenant, 64, owner)
    _say(f"{way}, {len(services)} signers, round {number + 1}: {came_to}")
    return came_to


def _deliveries(events: int) -> Row:
    came_to = webhooks.events_delivered(events, _say)
    _say(f"{came_to} {came_to.per_second:.0f}/s")
    return Row(
        "webhooks, 5 of 20 endpoints fail",
        events,
        f"{came_to.delivered} delivered at {came_to.per_second:.0f}/s, {came_to.duplicates} twice",
        came_to.wrong,
        0,
        f"{came_to.seconds:.0f} s in all",
    )


def _mutations(rounds: int) -> Row:
    came_to = tamper(rounds, _say)
    _say(str(came_to))
    return Row("audit rows tampered", rounds, "all of them found", 0, len(came_to.missed), "")


def _row(survived: Survived) -> Row:
    seconds = sorted(survived.seconds)
    for problem in survived.problems:
        _say(problem)
    return Row(
        survived.what,
        len(seconds),
        f"{survived.acknowledged} acknowledged",
        len(survived.lost_or_doubled) + len(survived.replayed_differently),
        len(survived.violations),
        f"{seconds[len(seconds) // 2]:.2f} / {seconds[-1]:.2f}",
    )


def _schedulers(seconds: float) -> Row:
    came_to = schedulers.kill(seconds, _say)
    for problem in [*came_to.lost, *came_to.twice]:
        _say(problem)
    asked = f"{came_to.sent} sent, {came_to.expired} expired, {came_to.events} events"
    return Row("scheduler killed, two", came_to.kills, asked, len(came_to.lost) + len(came_to.twice), 0, "")


def _race_row(what: str, came_to: Sequence[Race]) -> Row:
    units = [units for one in came_to for units in one.units]
    broken = sum(len(one.violations) for one in came_to) + sum(signed != UNITS for signed in units)
    return Row(what, len(came_to), f"{min(units)}..{max(units)} of {UNITS} signed", 0, broken, "")


def _well(rows: Sequence[Row]) -> bool:
    return all(row.well for row in rows)


def _table(rows: Sequence[Row]) -> str:
    head = ("", "rounds", "", "lost or doubled", "promises broken", "silent s, p50 / max")
    lines = [
        head,
        *((r.what, str(r.rounds), r.asked, str(r.lost), str(r.broken), r.seconds) for r in rows),
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()

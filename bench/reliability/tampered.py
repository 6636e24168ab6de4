"""Sealed audit rows changed, deleted, inserted, swapped and cut off at random; `audit verify` must find each."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing

import msgspec

from tests.audit.mutations import KINDS, finding_on
from tests.audit.sealed import Copy, Log
from tests.fixtures.deployments import deploy, killable_postgres

_ACTS = 150
# A second factor counts for 300 seconds; a person has ten recovery codes.
_STEP_UP_SECONDS = 240


class Tampered(msgspec.Struct, frozen=True):
    """The result of a series of mutations."""

    tried: Counter[str]
    missed: list[str]

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.tried.items()))
        return f"{sum(self.tried.values())} mutations ({kinds}): {len(self.missed)} not found"


def tamper(rounds: int, say: Callable[[str], None]) -> Tampered:
    """Mutate one log that often; after each it is put back, and an untouched export must still be good."""
    with killable_postgres() as postgres, deploy(postgres.database) as service, closing(Log(service, _ACTS)) as log:
        return asyncio.run(_tamper(log, rounds, say))


async def _tamper(log: Log, rounds: int, say: Callable[[str], None]) -> Tampered:
    chance, copy, size = random.Random(rounds), await Copy.of(log), len(log.export().splitlines()) - 1
    tried: Counter[str] = Counter()
    missed, shown_at = [], time.monotonic()
    for number in range(rounds):
        if time.monotonic() - shown_at > _STEP_UP_SECONDS:
            log.owner.step_up()
            shown_at = time.monotonic()
        mutation = chance.choice(KINDS)(chance, size)
        tried[mutation.kind] += 1
        if await finding_on(log, copy, mutation) is None:
            missed.append(f"{mutation.kind} {mutation.said}")
            say(f"not found: {missed[-1]}")
        if number % 100 == 99:
            assert log.problem(log.export()) is None
            say(f"tampered {number + 1}/{rounds}: {len(missed)} not found")
    return Tampered(tried, missed)

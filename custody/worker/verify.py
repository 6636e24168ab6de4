"""Opening every sealed value and checking every MAC of a worker, for a database that was just restored, or any other.

Nothing is shown of what is opened, and nothing is written to the database. The exit status is 0 when everything holds,
1 when something does not, 2 when it could not be looked at.
"""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import msgspec

from custody.kit import db
from custody.protocol.refusals import KeyVersionMissing
from custody.worker import walk
from custody.worker.key_file import KeyFileProblem
from custody.worker.sealing import Sealer
from custody.worker.walk import Kinds

DATABASE_SECONDS = 10.0
_SAY_SECONDS = 5.0


class Held(msgspec.Struct, frozen=True):
    """The number of rows of each kind that hold, and that do not."""

    held: dict[str, int]
    broken: dict[str, int]

    def lines(self) -> list[str]:
        """A line for each kind of thing."""
        lines = []
        for what, count in self.held.items():
            bad = self.broken.get(what, 0)
            if count or bad:
                lines.append(f"{'WRONG' if bad else 'ok   '}  {what}: {count} hold{f', {bad} do not' if bad else ''}")
        return lines


async def check(pool: db.Pool, sealer: Sealer, kinds: Kinds) -> Held:
    """Look at every row of these kinds."""
    held: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    told = time.monotonic()
    async with pool.acquire() as connection:
        for kind in kinds:
            after: list[str] | None = None
            while True:
                walked = await walk.check(connection, sealer, kind, after)
                held[kind.what] += walked.done
                if walked.broken:
                    broken[kind.what] += walked.broken
                if time.monotonic() - told > _SAY_SECONDS:
                    told = time.monotonic()
                    print(f"  {held[kind.what]} {kind.what} so far", file=sys.stderr, flush=True)
                if (after := walked.after) is None:
                    break
    return Held(dict(held), dict(broken))


def run(look: Coroutine[Any, Any, tuple[list[str], bool]], name: str) -> None:
    """The command: print what was found, and end with what it means."""
    try:
        lines, well = asyncio.run(look)
    except (ValueError, KeyFileProblem) as problem:
        _end(str(problem))
    except KeyVersionMissing:
        _end(f"the {name} file lacks a version that sealed values use")
    except db.DatabaseAway as problem:
        _end(f"the database is not reachable: {type(problem).__name__}")
    else:
        print("\n".join(lines))
        sys.exit(0 if well else 1)


def _end(sentence: str) -> None:
    print(f"custody: {sentence}", file=sys.stderr)
    sys.exit(2)

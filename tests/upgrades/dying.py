"""`custody migrate` that is killed: `python -m tests.upgrades.dying N` kills itself before its statement N.

`cut N` breaks its connection there instead.

With N = 0 it runs to its end and prints the number of its commit.
"""

import itertools
import os
import signal
import sys
from typing import Any

import asyncpg

from ops.main import main

_numbers = itertools.count(1)
_last = int(sys.argv[-1])
_commit = 0


def _count(name: str) -> None:
    real = getattr(asyncpg.Connection, name)

    async def run(self: asyncpg.Connection, *given: Any, **more: Any) -> Any:
        global _commit  # noqa: PLW0603 - the program's one figure
        number = next(_numbers)
        if given[0] == "COMMIT;":
            _commit = number
        if number == _last:
            if sys.argv[1] != "cut":
                os.kill(os.getpid(), signal.SIGKILL)
            self.terminate()
        return await real(self, *given, **more)

    setattr(asyncpg.Connection, name, run)


for _name in ("execute", "fetch", "fetchrow", "fetchval", "executemany"):
    _count(_name)
_code = main(["migrate"])
print(_commit)
sys.exit(_code)

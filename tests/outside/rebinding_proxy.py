"""Our proxy with a resolver that says whatever a test wrote into a file: names that lead elsewhere, or each time."""

import asyncio
import sys
from collections import Counter
from pathlib import Path

import msgspec

from custody.kit import logs
from proxy_addon import settings
from proxy_addon.__main__ import serve

Names = dict[str, list[list[str]]]


class Resolver:
    """Answers by name; the last answer of a name is given again and again."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._asked: Counter[str] = Counter()

    async def __call__(self, host: str, _port: int) -> list[str]:
        """The addresses of a name, as many times as it was asked for."""
        names = msgspec.json.decode(self._file.read_bytes(), type=Names)
        if host not in names:
            raise OSError("no such name")
        answers = names[host]
        self._asked[host] += 1
        return answers[min(self._asked[host], len(answers)) - 1]


if __name__ == "__main__":
    logs.set_up()
    asyncio.run(serve(settings.read(), Resolver(Path(sys.argv[1]))))

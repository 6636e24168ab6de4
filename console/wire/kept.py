"""Cache of recent answers, so that going back to one asks nobody. A bounded number of things."""

import time
from collections.abc import Awaitable, Callable
from typing import Final

from console.wire.failures import Failure, SignedOut

KEPT_SECONDS: Final = 5.0
_MOST: Final = 50


class Kept[Value]:
    """Values by key; an old one is still shown, while a new one is asked for. The newest failure is kept beside."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, Value]] = {}
        self._trouble: tuple[str, str] = ("", "")
        self._wanted = ""
        self._asking = False

    def want(self, key: str) -> bool:
        """This is looked at now; whether somebody must `ask`, because it is old and nobody asks yet."""
        self._wanted = key
        return not self._asking and not self.fresh(key)

    async def ask(self, question: Callable[[str], Awaitable[Value]], changed: Callable[[], None]) -> None:
        """Ask for what is wanted, one thing at a time, until that is there; what is passed by is never asked for.

        So scrolling through a list keeps one request in flight, not one for each row. Raises SignedOut.
        """
        self._asking = True
        try:
            while not self.fresh(key := self._wanted):
                try:
                    self.put(key, await question(key))
                except SignedOut:
                    raise
                except Failure as failure:
                    self._trouble = (key, failure.sentence)
                    if key == self._wanted:
                        return
                finally:
                    changed()
        finally:
            self._asking = False

    def fresh(self, key: str) -> bool:
        """Tell whether it need not be asked for."""
        return key in self._kept and time.monotonic() - self._kept[key][0] < KEPT_SECONDS

    def get(self, key: str) -> Value | None:
        """The value, however old."""
        found = self._kept.get(key)
        return found[1] if found else None

    def put(self, key: str, value: Value) -> None:
        """Keep a value in place of an older one."""
        self._trouble = ("", "")
        self._kept.pop(key, None)
        self._kept[key] = (time.monotonic(), value)
        while len(self._kept) > _MOST:
            self._kept.pop(next(iter(self._kept)))

    def trouble(self, key: str) -> str:
        """Why it could not be had the last time; empty if it could."""
        return self._trouble[1] if self._trouble[0] == key else ""

    def forget(self) -> None:
        """Fetch everything again."""
        self._kept.clear()

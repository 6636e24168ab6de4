"""Cache of what was found out around items, with its age: nobody decides by what was true an hour ago. Pure."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from words.orders.order import Known

# So old it may be when one begins to decide by it.
RECENT: Final = timedelta(seconds=30)
# How often the context of the shown order is refreshed: early enough for the response to arrive in time.
AGAIN: Final = timedelta(seconds=20)
REMEMBERED: Final = 100
_NOTHING: Final = Known()
_NOT_YET: Final = "Loading: names, limits and history."
_OLD: Final = "Names, limits and history are more than a minute old: the service does not respond."


class ContextCache:
    """Findings around items by their ids, and the times of the requests."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Known, datetime]] = {}
        # When each was asked about last, answered or not.
        self._asked: dict[str, datetime] = {}

    def ask(self, key: str, now: datetime) -> None:
        """It is asked about now."""
        self._asked.pop(key, None)
        self._asked[key] = now
        _keep(self._asked)

    def give_up(self, key: str) -> None:
        """Nobody waits for the answer any more."""
        self._asked.pop(key, None)

    def take(self, key: str, known: Known, asked: datetime) -> Known:
        """Store the answer to a request of this time; return what is known now.

        Where the service stumbled, what was known before stays while it is recent, and what never changes stays.
        """
        before, since = self._known.pop(key, (_NOTHING, asked))
        fresh = before is not _NOTHING and abs(asked - since) <= RECENT
        # Of two who asked, the later one knows better, whichever answer came first.
        if fresh and (asked < since or (known.trouble and not before.trouble)):
            known, asked = before, since
        elif known.trouble:
            known = replace(
                known,
                data=before.data if known.data is None else known.data,
                transaction=known.transaction or before.transaction,
            )
        self._known[key] = known, asked
        _keep(self._known)
        return known

    def latest(self, key: str) -> Known | None:
        """The known context, however old: shown until newer data arrives."""
        return self._known[key][0] if key in self._known else None

    def recent(self, key: str, now: datetime) -> Known | None:
        """Return what is known and recent; of what has grown old only the order itself is kept, which never changes."""
        # Old is also what is from later, where the clock was set back: nothing says how old that is.
        if key in self._known and abs(now - self._known[key][1]) > RECENT:
            known, asked = self._known.pop(key)
            if known.data is not None or known.transaction is not None:
                self._known[key] = Known(data=known.data, transaction=known.transaction, doubt=_NOT_YET), asked
            return None
        return self.latest(key)

    def for_decision(self, key: str, now: datetime) -> Known | None:
        """The known context, for a decision: marked as stale if it could not be refreshed for long."""
        if key in self._known and abs(now - self._known[key][1]) > 2 * RECENT:
            known = self._known[key][0]
            return known if known.doubt else replace(known, doubt=_OLD)
        return self.latest(key)

    def wants(self, key: str, now: datetime) -> bool:
        """Tell whether to fetch it, for the first time or again; not while a request is in flight."""
        return key not in self._asked or abs(now - self._asked[key]) > AGAIN


def _keep[Value](found: dict[str, Value]) -> None:
    if len(found) > REMEMBERED:
        del found[next(iter(found))]

"""Server-sent events as the WHATWG reads them, as far as the service sends them. Pure."""

import re
from typing import Any, Final

import msgspec

from console.wire.failures import Away
from words.texts.plain import clip, harmless

# The largest event is far smaller; what goes on and on without an end is no stream of events.
MAX_EVENT_BYTES: Final = 2**20
_NAME_CHARACTERS: Final = 200
_ID_DIGITS: Final = 20
# A carriage return at the very end may be the first half of a line's end.
_LINE_END: Final = re.compile(rb"\r?\n|\r(?=[^\n])")


class Event(msgspec.Struct, frozen=True):
    """One event of the tenant's stream. One named `place` only says from where to go on.

    `data` is harmless, and to be shown; `raw` is the same as it was sent.
    """

    id: str
    name: str
    data: dict[str, Any]
    raw: bytes = b""

    def __repr__(self) -> str:
        return f"Event({self.id}, {self.name})"


class EventReader:
    """Bytes as they come in, events as they go out."""

    def __init__(self, last_id: str = "") -> None:
        self._last_id = last_id
        self._name = "message"
        self._lines: list[bytes] = []
        self._rest = b""

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that are complete now; raises Away for what is no stream of events."""
        *lines, self._rest = _LINE_END.split(self._rest + chunk)
        found = [event for line in lines if (event := self._read(line)) is not None]
        if len(self._rest) + sum(map(len, self._lines)) > MAX_EVENT_BYTES:
            raise Away("The event stream sends an endless message.")
        return found

    def _read(self, line: bytes) -> Event | None:
        if line:
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            # It goes back to the service in a header: what is no number of its events stays here.
            if field == b"id" and value.isdigit() and len(value) <= _ID_DIGITS:
                self._last_id = value.decode()
            elif field == b"event":
                self._name = clip(harmless(value.decode(errors="replace")), _NAME_CHARACTERS)
            elif field == b"data":
                self._lines.append(value)
            return None
        name, lines = self._name, self._lines
        self._name, self._lines = "message", []
        if lines:
            raw = b"\n".join(lines)
            return Event(self._last_id, name, _decode(raw), raw)
        return Event(self._last_id, "place", {}) if self._last_id else None


def _decode(data: bytes) -> dict[str, Any]:
    try:
        found = harmless(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}

"""A lane: what a stream of HTTP/2 is to the rest of the proxy, namely a connection of HTTP/1.1, but in memory.

So a stream is counted, judged, masked, timed and cut like any connection of its agent, by the same code. What its agent
does not take in time is kept here, and not more of it than is kept for a slow reader of HTTP/1.1.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from custody.kit.errors import Invalid
from proxy_addon.chunks import chunk_of
from proxy_addon.http2 import Answer, Headers, request_head

# Bytes that wait for the agent before more is made, and those at which it goes on.
MAX_WAITING: Final = 64 * 1024
_LOW_WATER: Final = 16 * 1024
_READ_AHEAD: Final = 2**16


class Lane(asyncio.Transport):
    """One lane; a stream after the other may have it."""

    def __init__(self, address: str, moved: Callable[["Lane"], None]) -> None:
        """`moved` hears that there is something to send, or to take note of."""
        super().__init__({"peername": (address, 0), "sockname": ("", 0)})
        self._loop = asyncio.get_running_loop()
        self._moved = moved
        self.reader = asyncio.StreamReader(limit=_READ_AHEAD, loop=self._loop)
        self._protocol = asyncio.StreamReaderProtocol(self.reader, loop=self._loop)
        self._protocol.connection_made(self)
        self.writer = asyncio.StreamWriter(self, self._protocol, self.reader, self._loop)
        self._writing = self._reading = True
        # The body comes in chunks; all of the request has come; nothing more will ever come.
        self._chunked = self._whole = self._over = False
        self.answer: Answer | None = None
        # The connection's end; that it has let go of everything; the answer's head was sent on.
        self.closed = self.gone = self.begun = False
        # When the connection ended, by the monotonic clock.
        self.ended_at = float("inf")
        # Bytes of the request whose room in the window was not given back yet.
        self.unread = 0

    def __repr__(self) -> str:
        return "Lane()"

    # ---- the stream's side

    def ask(self, fields: Headers, *, ended: bool) -> None:
        """Begin a request. Raises BadHead."""
        head, self._chunked, head_only = request_head(fields, ended=ended)
        self.answer, self.begun, self._whole = Answer(head_only=head_only), False, ended
        self._feed(head)

    def give(self, data: bytes) -> None:
        """Go on with its body."""
        if data:
            self._feed(chunk_of(data) if self._chunked else data)

    def give_end(self) -> None:
        """End its body."""
        if self._chunked and not self._whole:
            self._feed(b"0\r\n\r\n")
        self._whole = True

    @property
    def readable(self) -> bool:
        """Say whether more of the request may come."""
        return self._reading or self.closed

    def note_sent(self) -> None:
        """Note that some of the answer went to the agent."""
        if not self._writing and self.get_write_buffer_size() <= _LOW_WATER:
            self._writing = True
            self._protocol.resume_writing()

    def lose(self) -> None:
        """The agent is gone, or wants no more of this."""
        self._feed_end()
        self._end()

    def finish(self) -> bool:
        """The answer is over; whether another stream may have the lane."""
        answer, self.answer = self.answer, None
        if self.closed or answer is None or answer.last or not self._whole:
            self._feed_end()
            return False
        return True

    def _feed(self, data: bytes) -> None:
        if not self._over:
            self.reader.feed_data(data)

    def _feed_end(self) -> None:
        if not self._over:
            self._over = True
            self.reader.feed_eof()

    # ---- the connection's side

    def write(self, data: Any) -> None:
        """Take some of the answer."""
        if self.closed or self.answer is None:
            return
        try:
            self.answer.feed(bytes(data))
        except Invalid:
            self.abort()
            return
        if self._writing and self.get_write_buffer_size() > MAX_WAITING:
            self._writing = False
            self._protocol.pause_writing()
        self._moved(self)

    def get_write_buffer_size(self) -> int:
        """Count the bytes that wait for the agent."""
        return len(self.answer.plain) if self.answer is not None else 0

    def pause_reading(self) -> None:
        """Enough was read ahead."""
        self._reading = False

    def resume_reading(self) -> None:
        """Some of it was used."""
        self._reading = True
        self._moved(self)

    def is_reading(self) -> bool:
        """Say whether more may come."""
        return self._reading

    def can_write_eof(self) -> bool:
        """An answer may be the last one."""
        return True

    def write_eof(self) -> None:
        """Nothing more comes behind the answer."""
        if self.answer is not None:
            self.answer.end()
            self.answer.last = True
        self._moved(self)

    def is_closing(self) -> bool:
        """Say whether it is over."""
        return self.closed

    def close(self) -> None:
        """End; what was written still goes to the agent."""
        if self.answer is not None:
            self.answer.end()
        self.gone = True
        self._end()

    def abort(self) -> None:
        """End at once."""
        self.gone = True
        self._end()

    def _end(self) -> None:
        if not self.closed:
            self.closed = self._over = True
            self.ended_at = time.monotonic()
            self._loop.call_soon(self._protocol.connection_lost, None)
        self._moved(self)

"""A body in chunks that a client signed one by one, without these signatures: they were made with a key of no worth.

Guarantees: what goes out has exactly the length that the client declared, so that nothing of a body can be taken for
another request; the end of it waits until all was read, so that nothing broken is taken for a whole one.
"""

from typing import Final

from proxy_addon.chunks import BadChunk, Chunks, chunk_of

# AWS takes no chunk of less than 8 KiB but the last.
FRAME_BYTES: Final = 16 * 1024
_SIGNATURE: Final = b"x-amz-trailer-signature"


class SignedChunks:
    """One body. Framed, its chunks and trailers stay, each without its signature; else what they hold goes out."""

    __slots__ = ("_chunks", "_framed", "_left", "_unread", "_unsent")

    def __init__(self, length: int, *, framed: bool) -> None:
        # Written as HTTP's own chunks are, each with an extension.
        self._chunks = Chunks()
        self._framed = framed
        self._left = length
        self._unread = b""
        self._unsent = b""

    def __repr__(self) -> str:
        return "SignedChunks()"

    @property
    def length(self) -> int:
        """Bytes that are still to come, by the client's word."""
        return self._left

    def feed(self, data: bytes) -> bytes:
        """Take what came; give what goes out. Raises BadChunk, or TooFragmented."""
        self._unread += data
        found = []
        again = bool(self._unread) and not self._chunks.ended
        while again:
            payload, used, again = self._chunks.take(self._unread)
            self._unread = self._unread[used:]
            self._left -= len(payload)
            found.append(payload)
        if self._left < 0 or (self._chunks.ended and self._unread):
            raise BadChunk
        self._unsent += b"".join(found)
        return self._frames() if self._framed else self._all_but_the_last()

    def end(self) -> bytes:
        """Give the rest: nothing more comes. Raises BadChunk where something is missing."""
        if self._left or not self._chunks.ended:
            raise BadChunk
        rest, self._unsent = self._unsent, b""
        if not self._framed:
            return rest
        lines = [line for line in self._chunks.trailers if line.partition(b":")[0].strip().lower() != _SIGNATURE]
        return (chunk_of(rest) if rest else b"") + b"".join(line + b"\r\n" for line in (b"0", *lines, b""))

    def _all_but_the_last(self) -> bytes:
        ready, self._unsent = self._unsent[:-1], self._unsent[-1:]
        return ready

    def _frames(self) -> bytes:
        whole = len(self._unsent) // FRAME_BYTES * FRAME_BYTES
        ready, self._unsent = self._unsent[:whole], self._unsent[whole:]
        return b"".join(chunk_of(ready[at : at + FRAME_BYTES]) for at in range(0, whole, FRAME_BYTES))

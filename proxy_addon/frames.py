"""Mask what an upstream says over a websocket. RFC 6455.

Stars are as many as the bytes they stand for, so no frame changes its length and every header passes as it came. A
message is masked across its fragments. No compression was negotiated: a frame that claims one is refused.
"""

from collections import deque
from typing import Final

from custody.kit.errors import UpstreamFailed
from proxy_addon.fragmentation import Fragmentation
from proxy_addon.mask import Masker, Needles

# Frames that are read at one go: some 0.5 ms. With many needles they are fewer, for each costs by the needle.
MAX_FRAMES_AT_ONCE: Final = 256
_NEEDLES_OF_A_FRAME: Final = 16
_FINAL, _RESERVED, _OPCODE, _MASKED, _LENGTH = 0x80, 0x70, 0x0F, 0x80, 0x7F
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_LARGEST_CONTROL: Final = 125
_EXTENDED: Final = {126: 2, 127: 8}
# Headers and control frames that wait behind held bytes of a message whose next fragment does not come.
_LARGEST_WAIT: Final = 64 * 1024


class BadFrame(UpstreamFailed):
    """The upstream sent an invalid websocket frame."""


class MaskedFrames:
    """The frames of one connection, from the upstream to the agent, as bytes that come in any chunks."""

    __slots__ = (
        "_at_once",
        "_close",
        "_final",
        "_fragmentation",
        "_header",
        "_in_message",
        "_left",
        "_message",
        "_needles",
        "_opcode",
        "_queue",
        "_unread",
        "_waiting",
    )

    def __init__(self, needles: Needles) -> None:
        self._needles = needles
        self._message = Masker(needles)
        self._close = Masker(needles)
        looked_for = len(needles.literals) + len(needles.readings)
        self._at_once = max(1, MAX_FRAMES_AT_ONCE * _NEEDLES_OF_A_FRAME // (_NEEDLES_OF_A_FRAME + looked_for))
        self._fragmentation = Fragmentation()
        self._unread = b""
        self._in_message = False
        # The frame being read: its header as far as it came, then how much of its payload is to come.
        self._header = b""
        self._opcode = _CONTINUATION
        self._final = False
        self._left = 0
        # In the order in which they must leave: bytes that may, and how many payload bytes the masker owes.
        self._queue: deque[bytes | int] = deque()
        self._waiting = 0

    def __repr__(self) -> str:
        return "MaskedFrames()"

    @property
    def unread(self) -> bool:
        """True if the last go left frames for the next; `feed(b"")` reads on."""
        return bool(self._unread)

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the upstream, give back what may go to the agent. Raises BadFrame or TooFragmented."""
        out: list[bytes] = []
        data, at, frames = self._unread + data, 0, 0
        while at < len(data) and frames < self._at_once:
            if self._left:
                part = data[at : at + self._left]
                at += len(part)
                self._left -= len(part)
                self._payload(part, out)
            else:
                wanted = _header_size(self._header)
                part = data[at : at + wanted - len(self._header)]
                at += len(part)
                self._header += part
                if len(self._header) < _header_size(self._header):
                    continue
                self._open(self._header)
                self._fragmentation.count(self._left)
                self._pass(self._header, out)
                self._header = b""
            if not self._left:
                self._close_frame(out)
                frames += 1
        self._unread = data[at:]
        return b"".join(out)

    def _open(self, header: bytes) -> None:
        """Read a whole header, or refuse the frame."""
        first, second = header[0], header[1]
        self._opcode, self._final = first & _OPCODE, bool(first & _FINAL)
        self._left = int.from_bytes(header[2:]) if len(header) > 2 else second & _LENGTH
        if first & _RESERVED or second & _MASKED or self._left >= 1 << 63:
            raise BadFrame
        if self._opcode in (_CLOSE, _PING, _PONG):
            if not self._final or self._left > _LARGEST_CONTROL:
                raise BadFrame
            return
        # A message goes on exactly when one has begun.
        if self._opcode not in ((_CONTINUATION,) if self._in_message else (_TEXT, _BINARY)):
            raise BadFrame
        self._in_message = not self._final

    def _payload(self, part: bytes, out: list[bytes]) -> None:
        if self._opcode in (_PING, _PONG):
            self._pass(part, out)
        elif self._opcode == _CLOSE:
            # The reason of a close is where an upstream says which key it did not like.
            self._pass(self._close.feed(part), out)
        else:
            self._owe(len(part))
            self._settle(self._message.feed(part), out)

    def _close_frame(self, out: list[bytes]) -> None:
        if self._opcode == _CLOSE:
            self._pass(self._close.end(), out)
        elif self._opcode in (_CONTINUATION, _TEXT, _BINARY) and self._final:
            self._settle(self._message.end(), out)

    def _pass(self, data: bytes, out: list[bytes]) -> None:
        """Let bytes out that need no masking, but not past payload that is still held."""
        if not self._queue:
            out.append(data)
            return
        self._queue.append(data)
        self._waiting += len(data)
        if self._waiting > _LARGEST_WAIT:
            raise BadFrame

    def _owe(self, size: int) -> None:
        if self._queue and isinstance(self._queue[-1], int):
            self._queue[-1] += size
        else:
            self._queue.append(size)

    def _settle(self, masked: bytes, out: list[bytes]) -> None:
        """Put masked payload where it belongs, and let out whatever waited behind it."""
        at = 0
        while self._queue:
            first = self._queue[0]
            if isinstance(first, bytes):
                out.append(first)
                self._waiting -= len(first)
            else:
                part = masked[at : at + first]
                at += len(part)
                out.append(part)
                if len(part) < first:
                    self._queue[0] = first - len(part)
                    return
            self._queue.popleft()


def _header_size(header: bytes) -> int:
    """Read how long the header is, as far as it can be told."""
    return 2 + _EXTENDED.get(header[1] & _LENGTH, 0) if len(header) > 1 else 2

"""gRPC, as far as the proxy has to know it: whether a head is of a call, what its messages are, how it says no."""

import re
from typing import Final

from proxy_addon.decode import BadCoding
from proxy_addon.mask import Masker, Needles

Headers = list[tuple[bytes, bytes]]
_GRPC = re.compile(rb"application/grpc(?:$|[+;])")
_PLAIN_MESSAGES: Final = (b"", b"identity")


def is_call(fields: Headers) -> bool:
    """Say whether a head is of a call by gRPC, or of its answer; gRPC-Web is something else."""
    return any(name.lower() == b"content-type" and _GRPC.match(value.strip().lower()) for name, value in fields)


def hides_messages(fields: Headers) -> bool:
    """Say whether messages of gRPC in an answer are compressed, so that nothing in them can be masked."""
    return any(
        name.lower() == b"grpc-encoding" and value.strip().lower() not in _PLAIN_MESSAGES for name, value in fields
    )


# By HTTP's: unauthenticated, permission denied, resource exhausted, internal, unavailable, deadline exceeded; what is
# not here is an invalid argument.
_GRPC_STATUS: Final = {401: 16, 407: 16, 403: 7, 413: 8, 429: 8, 431: 8, 500: 13, 502: 14, 503: 14, 504: 4}


def status_of(status: int) -> int:
    """The status of gRPC that tells a client as much as one of HTTP."""
    return _GRPC_STATUS.get(status, 3)


_PREFIX: Final = 5


class Messages:
    """Masks messages of gRPC, each of which has its length before it and is a text of its own.

    So nothing of a message waits for the next one, which the other side may not send before it has read this one.
    """

    __slots__ = ("_left", "_masker", "_prefix")

    def __init__(self, needles: Needles) -> None:
        self._masker = Masker(needles)
        self._prefix = b""
        # Bytes of the message that are still to come.
        self._left = 0

    def __repr__(self) -> str:
        return "Messages()"

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk; give back what is decided. Raises BadCoding where a message is compressed."""
        shown, at = [], 0
        while at < len(chunk):
            if not self._left:
                piece = chunk[at : at + _PREFIX - len(self._prefix)]
                self._prefix += piece
                at += len(piece)
                if len(self._prefix) < _PREFIX:
                    break
                if self._prefix[0]:
                    raise BadCoding
                self._left = int.from_bytes(self._prefix[1:])
                shown.append(self._prefix)
                self._prefix = b""
            piece = chunk[at : at + self._left]
            at += len(piece)
            self._left -= len(piece)
            shown.append(self._masker.feed(piece))
            if not self._left:
                shown.append(self._masker.end())
        return b"".join(shown)

    def end(self) -> bytes:
        """Give back what was held."""
        return self._masker.end() + self._prefix

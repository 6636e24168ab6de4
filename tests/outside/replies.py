"""Requests and replies of a web server of the tests, the replies that no honest server gives among them."""

import gzip
from collections.abc import Callable, Iterable
from urllib.parse import parse_qs

import msgspec


class Heard(msgspec.Struct, frozen=True):
    """One request as it came."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def parameters(self) -> dict[str, str]:
        """Those of the query, the last one of each name."""
        return {name: values[-1] for name, values in parse_qs(self.query, keep_blank_values=True).items()}

    @property
    def form(self) -> dict[str, str]:
        """Those of the body."""
        return {name: values[-1] for name, values in parse_qs(self.body.decode(), keep_blank_values=True).items()}


class Reply(msgspec.Struct, frozen=True):
    """A reply; a body in pieces has no length and ends with the connection."""

    status: int = 200
    body: bytes | Iterable[bytes] = b""
    headers: dict[str, str] = {}
    after_seconds: float = 0.0
    between_seconds: float = 0.0


Answers = Reply | Callable[[Heard], Reply]
# Longer than any client waits; the end of the server ends it.
_NEVER = 3600.0


def json(content: object, status: int = 200) -> Reply:
    """Answer with this as JSON."""
    return Reply(status, msgspec.json.encode(content), {"content-type": "application/json"})


def html(text: str = "<!doctype html><title>Down</title><p>Maintenance", status: int = 200) -> Reply:
    """Answer with a page."""
    return Reply(status, text.encode(), {"content-type": "text/html"})


def redirect(to: str, status: int = 302) -> Reply:
    """Send the caller elsewhere."""
    return Reply(status, headers={"location": to})


def silence() -> Reply:
    """Take the request and never answer."""
    return Reply(after_seconds=_NEVER)


def zip_bomb(content: bytes = bytes(50_000_000)) -> Reply:
    """Answer with something that is much larger when it is unpacked."""
    return Reply(200, gzip.compress(content), {"content-type": "application/json", "content-encoding": "gzip"})


def endless(piece: bytes = b" " * 65536) -> Reply:
    """Answer without an end, as fast as it is taken."""
    return Reply(200, iter(lambda: piece, b""), {"content-type": "application/json"})


def drip(seconds: float = 0.05) -> Reply:
    """Answer one blank at a time, without an end."""
    return msgspec.structs.replace(endless(b" "), between_seconds=seconds)

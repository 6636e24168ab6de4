"""The server's reading of a request's head, before any route: what HTTP forbids is refused, with the envelope."""

import re
from typing import Any
from urllib.parse import unquote_to_bytes

from sanic import Request
from sanic.compat import Header
from sanic.exceptions import BadRequest, MethodNotAllowed

# What the server calls the method of a request that it makes up itself, in order to answer one that it could not read.
_UNREAD = "NONE"
# What no segment of a path may be, or contain, once it is decoded. A slash would make another path of it, and proxies
# and clients rewrite dots before anybody judges who may call what is left.
_REFUSED = re.compile(rb"\.{1,2}\Z|.*[/\\\x00-\x1f\x7f]", re.DOTALL)

# Without these a path is as it was sent.
_UNUSUAL = re.compile(rb"%|/\.|[^\x21-\x7e]")


class BadSegment(BadRequest):
    """A segment of the path is `.` or `..`, or its percent-encoding hides a slash, a control character or no UTF-8."""


def decode(path: bytes) -> str:
    """A path as routes are matched: each segment percent-decoded once. Raises BadSegment."""
    segments = [unquote_to_bytes(segment) for segment in path.split(b"/")]
    if any(_REFUSED.match(segment) for segment in segments):
        raise BadSegment("")
    try:
        return b"/".join(segments).decode()
    except UnicodeDecodeError:
        raise BadSegment("") from None


class CheckedRequest(Request):
    """A request whose head is looked at where the server does not look."""

    __slots__ = ("_decoded_path",)

    def __init__(self, url_bytes: bytes, headers: Header, version: str, method: str, *rest: Any, **more: Any) -> None:
        if method == "CONNECT":
            # Its target is no path, and this is no proxy.
            raise MethodNotAllowed("", method, ())
        head: bytes = more.get("head", b"")
        lines = head.count(b"\r\n")
        if (head.count(b"\n"), head.count(b"\r")) != (lines, lines):
            # The server splits lines only at CR LF; a proxy in front of it may see another header here.
            raise BadRequest("")
        # Of what could not be read, the target may be what could not.
        super().__init__(b"*" if method == _UNREAD else url_bytes, headers, version, method, *rest, **more)
        if version == "1.1" and method != _UNREAD and "host" not in headers:
            # RFC 9112, 3.2.
            raise BadRequest("")
        sent = self._parsed_url.path
        self._decoded_path = decode(sent) if _UNUSUAL.search(sent) else sent.decode()

    @property
    def path(self) -> str:
        """The path by which the route is found; `raw_url` stays as the caller sent it."""
        return self._decoded_path

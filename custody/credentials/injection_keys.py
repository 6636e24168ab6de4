"""Headers that no route may set.

A route that could set these would decide how a message is framed or where it goes, or speak for the proxy itself.
"""

from typing import Final

_RESTRICTED: Final = frozenset(
    (
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "trailers",
        "transfer-encoding",
        "upgrade",
        "content-length",
        "content-encoding",
        "accept-encoding",
        "host",
        "expect",
        "http2-settings",
    )
)
# Pseudo-headers of HTTP/2, the websocket handshake, and the names this service gives its own headers.
_RESTRICTED_STARTS: Final = (":", "sec-websocket-", "x-service-")
_COOKIES: Final = frozenset(("cookie", "set-cookie"))


def is_restricted(name: str, *, allow_cookies: bool) -> bool:
    """Say whether a route may not set the header of this name, whatever its case."""
    lower = name.lower()
    if lower in _COOKIES:
        return not allow_cookies
    return lower in _RESTRICTED or lower.startswith(_RESTRICTED_STARTS)

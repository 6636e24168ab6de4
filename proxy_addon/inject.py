"""Put a credential into a request, and take out what must not travel with it.

Guarantees: what the agent sent under the credential's name is gone, everything else goes out byte for byte as it came,
and no header carries the agent's own token.
"""

from base64 import b64encode
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, unquote, unquote_to_bytes

import msgspec

from custody.credentials.types import VALUE, Placement
from custody.kit.errors import Invalid
from proxy_addon.mask import SHORTEST_DERIVED, base64_forms
from proxy_addon.ranges import asks_for_part

Headers = list[tuple[bytes, bytes]]

# Each costs about a microsecond of everybody's time, and a body may have a million.
MAX_PAIRS: Final = 10_000
_HOP_BY_HOP: Final = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"te",
        b"trailer",
        b"trailers",
        b"upgrade",
        b"http2-settings",
    )
)
# Named in a Connection header these would vanish, and with them where the message ends or whom it is for.
_FRAMING: Final = frozenset((b"content-length", b"transfer-encoding", b"host"))
# What would make the upstream do something else than what the route was chosen by, or say what masking cannot read:
# pieces of a text show what the whole does not, for a piece of the credential is no form of it.
_MISLEADING: Final = frozenset(
    (
        b"x-http-method-override",
        b"x-http-method",
        b"x-method-override",
        b"x-method",
        b"x-original-url",
        b"x-original-uri",
        b"x-original-host",
        b"x-original-method",
        b"x-rewrite-url",
        b"x-http-host-override",
        b"x-host",
        b"forwarded",
        b"x-real-ip",
        b"if-range",
        b"accept-charset",
    )
)
# What a proxy says of the request before it: host, path, scheme, address. The agent is no proxy.
_FORWARDED: Final = b"x-forwarded-"
_HANDSHAKE: Final = ((b"Connection", b"Upgrade"), (b"Upgrade", b"websocket"))
_EXTENSIONS: Final = b"sec-websocket-extensions"


class TooManyPairs(Invalid):
    """The route changes the query, which may then have at most 10,000 pairs."""


class Placed(msgspec.Struct, frozen=True):
    """A text, and where it goes in a request."""

    said: Placement
    text: str

    def __repr__(self) -> str:
        return f"Placed({self.said.inject_as}, {self.said.inject_key})"


def format_value(said: Placement, value: str) -> str:
    """Build what is injected: the format with the value in its place, for Basic encoded (RFC 7617)."""
    text = said.inject_format.replace(VALUE, value, 1)
    return f"Basic {b64encode(text.encode()).decode()}" if said.inject_as == "basic" else text


def into_query(query: bytes | None, key: str, text: str) -> bytes:
    """The query with every pair of this name, however it is encoded, replaced by one at the end, or TooManyPairs."""
    if query and query.count(b"&") >= MAX_PAIRS:
        raise TooManyPairs
    name = key.encode()
    kept = [pair for pair in query.split(b"&") if _name_of(pair) != name] if query else []
    return b"&".join([*kept, f"{quote(key, safe='')}={quote(text, safe='')}".encode()])


def without_token(query: str | None, token: str) -> bytes | None:
    """The query without pairs that hold the agent's token; clients of some APIs put what they take for a key there."""
    if query is None or not holds_token(query, token):
        return None if query is None else query.encode()
    return b"&".join(pair.encode() for pair in query.split("&") if not holds_token(pair, token))


def holds_token(path: str, token: str) -> bool:
    """Say whether a path, as it is or with its escapes decoded once, has the agent's token in it."""
    return token in path or ("%" in path and token in unquote(path))


def into_headers(headers: Headers, key: str, text: str) -> Headers:
    """The headers with every one of this name, whatever its case, replaced by one at the end."""
    name = one_name(key.encode())
    return [*((known, value) for known, value in headers if one_name(known) != name), (key.encode(), text.encode())]


def outgoing_headers(
    headers: Headers, *, token: str | None, websocket: bool, keep_authorization: bool = False, parts: bool = False
) -> Headers:
    """Choose the agent's headers for upstream: nothing between it and us, nothing that misleads, and no token.

    Clients put what they take for an API key into headers of many names, and into the base64 of Basic, so the token is
    looked for in all of them, at any place in a base64 text too.
    """
    raw = token.encode() if token else b""
    # Most requests have it in one header and as it is: only what is in any of them is looked for in each.
    values = b"\n".join(value for _, value in headers)
    encoded = {form for form in base64_forms(raw) if len(form) >= SHORTEST_DERIVED}
    forms = [form for form in {raw, *encoded} if form and form in values]
    return _through(
        headers,
        websocket,
        lambda name, value: (
            (name == b"authorization" and not keep_authorization)
            or name.startswith((b"x-service-", _FORWARDED))
            or (name in _MISLEADING and not (parts and name == b"if-range"))
            or asks_for_part(name, value)
            or any(form in value for form in forms)
        ),
    )


def returning_headers(headers: Headers, *, websocket: bool) -> Headers:
    """Choose what of an upstream's headers goes to the agent.

    `Alt-Svc` would lead it around the proxy, and with `X-Service-` begin the names by which it tells us from upstreams.
    """
    return _through(headers, websocket, lambda name, _: name == b"alt-svc" or name.startswith(b"x-service-"))


def _through(headers: Headers, websocket: bool, doomed: Callable[[bytes, bytes], bool]) -> Headers:
    dropped = _HOP_BY_HOP | (_named_in_connection(headers) - _FRAMING)
    kept = []
    for header in headers:
        written = header[0].lower()
        name = one_name(written)
        if written in dropped or name in dropped or name.startswith(b"proxy-") or doomed(name, header[1]):
            continue
        # Nor Content_Length from where the message ends.
        if name != written and name in _FRAMING:
            continue
        # Without extensions no frame is compressed, so that frames can be looked into.
        if websocket and name == _EXTENSIONS:
            continue
        kept.append(header)
    return [*kept, *_HANDSHAKE] if websocket else kept


def _named_in_connection(headers: Headers) -> frozenset[bytes]:
    lists = [value for name, value in headers if name.lower() == b"connection"]
    return frozenset(name.strip().lower() for value in lists for name in value.split(b","))


def one_name(name: bytes) -> bytes:
    """The name as it is compared, whatever its case."""
    # A server that hands headers to programs as variables cannot tell X_Key from X-Key.
    return name.lower().replace(b"_", b"-")


def _name_of(pair: bytes) -> bytes:
    return unquote_to_bytes(pair.partition(b"=")[0].replace(b"+", b" "))

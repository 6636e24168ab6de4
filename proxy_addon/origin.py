"""Keep upstreams apart that a client takes for one site.

In the gateway form every upstream answers from the proxy's own host, so a client follows a redirect from one to the
other with its token, and keeps one jar of cookies for all. Guarantees: what an upstream refers to lies beneath its own
prefix or on another host, and its cookies are sent to its own prefix only. A reference that could be read in two ways
is removed, for the client may read it in the other. What clients take as it is, or put behind their base address, is
made an absolute address; only of a redirect they resolve what is relative.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec

from custody.credentials.spelling import DEFAULT_PORT, Misspelled, is_address, normal_path, read_host
from custody.credentials.target import Target

Headers = list[tuple[bytes, bytes]]

# References in all Link headers of an answer: each costs as much as the path of the request is long.
MAX_LINKS: Final = 64
# Bytes of one header after its references were resolved.
MAX_REFERENCE: Final = 64 * 1024
# Clients send requests to these. With the next two after `Location`, Azure's clients poll a long operation; to the
# last ones Google's send an upload.
_REFERENCES: Final = frozenset(
    (
        b"location",
        b"operation-location",
        b"azure-asyncoperation",
        b"content-location",
        b"odata-entityid",
        b"x-goog-upload-url",
        b"x-goog-upload-control-url",
    )
)
# Headers of other names that end so have a reference where their value looks like one (`Location: Berlin` does not).
_MAY_REFER: Final = (b"-location", b"-url", b"-uri", b"-link", b"-href")
_LOOKS_LIKE_ONE = re.compile(rb"[ \t]*(?:https?:|[/\\])", re.IGNORECASE)
_CHALLENGES: Final = frozenset((b"www-authenticate", b"authentication-info"))
_QUOTED_URL = re.compile(rb"(?:https?:[/\\]*|[/\\]{2})[^\"\\ \t,;]+", re.IGNORECASE)
# These headers change a whole host, and all upstreams share the proxy's host: its cookies, storage, TLS and scripts.
_HOST_WIDE: Final = frozenset(
    (
        b"refresh",
        b"set-cookie2",
        b"clear-site-data",
        b"strict-transport-security",
        b"service-worker-allowed",
    )
)
_URL = re.compile(r"(?:(https?):)?//([^/?#\\]*)(?=[/?#]|\Z)(.*)\Z", re.IGNORECASE | re.DOTALL)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_VISIBLE: Final = "".join(map(chr, range(0x21, 0x7F)))
_LINK = re.compile(rb"<([^<>]*)>")
_COOKIE_PATH = re.compile(r"/[A-Za-z0-9/._~!$&'()*+:@%-]*\Z")
# Path and Domain are not among them; a quote could hide the end of an attribute from some readers.
_COOKIE_ATTRIBUTE = re.compile(
    rb"(?:expires|max-age|samesite|priority)=[^\";=]*\Z|(?:secure|httponly|partitioned)\Z", re.IGNORECASE
)
_HTTP_PORT: Final = 80
_REDIRECTS: Final = range(300, 400)
_AUTHORITY = re.compile(r"(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?", re.IGNORECASE)


class Origin(msgspec.Struct, frozen=True):
    """The place of an upstream at the gateway: `prefix` is `/alias` or `/proxy/host`, as the agent wrote it.

    `proxies` are the hosts by which the agent may know the proxy itself, and `site` is what it calls it: scheme, host
    and port, or nothing where that is not known.
    """

    prefix: str
    target: Target
    proxies: frozenset[str]
    site: str = ""


def origin_of(prefix: str, target: Target, headers: Headers, public_url: str = "") -> Origin:
    """The origin of a request; the agent, or a load balancer in front of the proxy, tells the proxy's names.

    Both may be believed: the answer goes back to where they came from, and to nobody else.
    """
    named = {name: _values_of(headers, name) for name in (b"host", b"x-forwarded-host", b"x-forwarded-proto")}
    said = [host.lower() for name in (b"host", b"x-forwarded-host") for host in named[name]]
    names = {host.partition(":")[0].rstrip(".") for host in said} | {"localhost"}
    if public_url:
        names.add(urlsplit(public_url).hostname or "")
    return Origin(prefix, target, frozenset(names), public_url or _site(named))


def _values_of(headers: Headers, wanted: bytes) -> list[str]:
    values = [value for name, value in headers if name.lower() == wanted]
    return [part.strip() for value in values for part in value.decode("latin-1").split(",")]


def _site(named: dict[bytes, list[str]]) -> str:
    """The address that the agent used; of several proxies in front, each appends itself, so the first is nearest."""
    hosts = named[b"x-forwarded-host"] or named[b"host"]
    scheme = (named[b"x-forwarded-proto"] or ["http"])[0].lower()
    if not hosts or not _AUTHORITY.fullmatch(hosts[0]) or scheme not in ("http", "https"):
        return ""
    return f"{scheme}://{hosts[0]}"


def confine(headers: Headers, origin: Origin, mask: Callable[[bytes], bytes], status: int) -> tuple[Headers, list[str]]:
    """An answer's headers, and the names of those that were removed. What was rewritten is masked once more.

    At most one of each name that holds one reference is kept: of two, clients follow different ones.
    """
    times = Counter(name.lower() for name, _ in headers)
    links = sum(value.count(b"<") for name, value in headers if name.lower() == b"link")
    kept: Headers = []
    removed: list[str] = []
    for name, value in headers:
        lower = name.lower()
        new: bytes | None = value
        if lower in _REFERENCES:
            is_resolved = lower == b"location" and status in _REDIRECTS
            new = reference(value, origin, absolute=not is_resolved) if times[lower] == 1 else None
        elif lower.endswith(_MAY_REFER):
            new = reference(value, origin, absolute=True) if _LOOKS_LIKE_ONE.match(value) else value
        elif lower in _CHALLENGES:
            leads = (reference(url, origin, absolute=True) for url in _QUOTED_URL.findall(value))
            new = None if any(url is None for url in leads) else value
        elif lower == b"link":
            new = _links(value, origin) if links <= MAX_LINKS else None
        elif lower == b"set-cookie":
            new = cookie(value, origin)
        elif lower in _HOST_WIDE:
            new = None
        if new is None or len(new) > MAX_REFERENCE:
            removed.append(lower.decode("latin-1"))
        else:
            kept.append((name, new if new is value else mask(new)))
    return kept, removed


def reference(raw: bytes, origin: Origin, *, absolute: bool = False) -> bytes | None:
    """A reference for the agent, with a path of its own host put beneath the prefix; None for one to be removed."""
    if _CONTROL.search(raw):
        # Browsers and Node remove tabs and line ends before they parse, so the URL they follow is another one.
        return None
    text = quote(raw, safe=_VISIBLE)
    if url := _URL.match(text):
        placed = _of_url(url[1], url[2], url[3], origin)
    else:
        # Clients disagree about other schemes, and about `http:` without slashes.
        placed = None if _SCHEME.match(text) else _resolve(text, origin)
    if placed is None:
        return None
    return ((origin.site if absolute and placed.startswith("/") else "") + placed).encode()


def _of_url(scheme: str | None, authority: str, rest: str, origin: Origin) -> str | None:
    try:
        host, port = read_host(authority, addresses=True)
    except Misspelled:
        return None
    if port is None or (port == _HTTP_PORT and (scheme or "").lower() == "http"):
        port = DEFAULT_PORT
    if (host, port) == (origin.target.host, origin.target.port):
        return _resolve(rest if rest.startswith("/") else "/" + rest, origin)
    # Other IP addresses are refused: they include the proxy's own.
    if is_address(host) or host in origin.proxies or host.endswith(".localhost"):
        return None
    return f"{scheme or 'https'}://{authority}{rest}"


def _resolve(text: str, origin: Origin) -> str | None:
    """A reference without a host, resolved as the upstream means it (RFC 3986, 5.2)."""
    text, hash_mark, fragment = text.partition("#")
    path, mark, query = text.partition("?")
    base = origin.target
    if not path:
        path = base.path
        if not mark and base.query is not None:
            mark, query = "?", base.query
    elif not path.startswith("/"):
        path = base.path[: base.path.rindex("/") + 1] + path
    resolved = _without_dots(path)
    try:
        normal_path(resolved)
    except Misspelled:
        return None
    return f"{origin.prefix}{resolved}{mark}{query}{hash_mark}{fragment}"


def _without_dots(path: str) -> str:
    """The path with its dot segments applied; those that lead above its root stay there (RFC 3986, 5.4.2)."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            if kept:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _links(value: bytes, origin: Origin) -> bytes | None:
    parts = _LINK.split(value)
    if len(parts) == 1 or any(b"<" in part or b">" in part for part in parts[::2]):
        return None
    for at in range(1, len(parts), 2):
        placed = reference(parts[at], origin, absolute=True)
        if placed is None:
            return None
        parts[at] = b"<" + placed + b">"
    return b"".join(parts)


def cookie(value: bytes, origin: Origin) -> bytes:
    """A cookie without a domain and with a path beneath the prefix. Only attributes that everybody reads alike stay.

    A cookie named `__Host-` has another path than that name demands, so strict clients do not keep it.
    """
    pair, *attributes = value.split(b";")
    path = ""
    kept = []
    for attribute in attributes:
        name, _, said = attribute.strip(b" \t").partition(b"=")
        if name.strip(b" \t").lower() == b"path":
            path = said.strip(b" \t").decode("latin-1")
        elif _COOKIE_ATTRIBUTE.match(attribute.strip(b" \t")):
            kept.append(attribute.strip(b" \t"))
    # The path comes first, so that nothing before it can keep it from being read.
    return b"; ".join([pair, b"Path=" + _cookie_path(path, origin).encode(), *kept])


def _cookie_path(path: str, origin: Origin) -> str:
    if not path.startswith("/"):
        # RFC 6265, 5.1.4: the folder of the request.
        path = origin.target.path.rpartition("/")[0] or "/"
    try:
        normal_path(path)
    except Misspelled:
        path = "/"
    # The slash at the end keeps the cookie from an alias that begins with this one.
    return origin.prefix + (path if _COOKIE_PATH.match(path) else "/")

"""The target of a request, read strictly."""

import re

import msgspec

from custody.credentials.readings import Reading, other_readings
from custody.credentials.spelling import DEFAULT_PORT, Misspelled, normal_path, read_host
from custody.kit.errors import Invalid

_NOT_VISIBLE = re.compile(r"[\x00-\x20\x7f-\x9f\ud800-\udfff]")
_URL = re.compile(r"(https?)://([^/?#\\]*)(.*)\Z", re.IGNORECASE | re.DOTALL)
_HTTP_PORT = 80


class MalformedTarget(Invalid):
    """This host or path is ambiguous."""


class Target(msgspec.Struct, frozen=True):
    """`path` and `query` go out as they came; `matched` is the path in the one spelling that routes are matched on.

    `readings` are the other ways in which servers read it, with what each makes of it.
    """

    host: str
    port: int
    path: str
    query: str | None
    matched: str
    readings: tuple[tuple[Reading, str], ...] = ()


def parse_target(host_text: str, raw_path: str, *, addresses: bool = False) -> Target:
    """Read `host` or `host:port`, and a path with its query, or raise MalformedTarget saying what is wrong.

    A host without a port is at 443; whether any route lists the port is a question of matching. It is a name, or one of
    the IP `addresses` where these may be.
    """
    try:
        host, port = read_host(host_text, addresses=addresses)
        path, mark, query = raw_path.partition("?")
        matched = normal_path(path)
    except Misspelled as problem:
        raise MalformedTarget(problem.message) from None
    # Escapes in a query are data to the upstream and decide nothing here, so they are left alone.
    if "#" in query or _NOT_VISIBLE.search(query):
        raise MalformedTarget("The query has a control character, a space or a #.")
    port = DEFAULT_PORT if port is None else port
    return Target(host, port, path, query if mark else None, matched, other_readings(matched))


def check_path(raw_path: str) -> None:
    """Raise MalformedTarget for a path that could be read in two ways, whatever its host is."""
    try:
        normal_path(raw_path.partition("?")[0])
    except Misspelled as problem:
        raise MalformedTarget(problem.message) from None


def parse_url(url: str, *, addresses: bool = False) -> Target:
    """The same for an https or http URL. Plain http goes out as HTTPS, so its port 80 means 443."""
    parts = _URL.match(url)
    if parts is None:
        raise MalformedTarget("The URL must start with https:// or http://.")
    scheme, authority, rest = parts.groups()
    target = parse_target(authority, rest if rest.startswith("/") else f"/{rest}", addresses=addresses)
    if scheme.lower() == "http" and target.port == _HTTP_PORT:
        return msgspec.structs.replace(target, port=DEFAULT_PORT)
    return target

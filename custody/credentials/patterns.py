"""Host and path patterns, compiled once and matched in linear time.

No regular expression is made from what a tenant writes: a pattern is cut at its stars, and the pieces are looked for
from left to right, which never goes back.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import msgspec

from custody.credentials.spelling import DEFAULT_PORT, Misspelled, normal_path, read_host
from custody.kit.errors import Invalid

STAR: Final = "*"
Pieces = tuple[str, ...]
# A tenant has up to 10,000 routes, and a change of one of them has all of them read again.
_REMEMBERED: Final = 20_000
_EMPTY = re.compile(r"/(?:/|;|%(?:25)*3B)", re.IGNORECASE)


class InvalidPattern(Invalid):
    """Not a valid pattern."""


class HostPattern(msgspec.Struct, frozen=True):
    """The hosts that a route is for.

    `name` is set where the pattern is one host, `tail` where it is `*.tail` (empty for a lone star); else only
    `labels` say what it matches, after any number of labels if it is `open`.
    """

    text: str
    port: int
    # Whether the pattern itself says the port.
    port_written: bool
    name: str | None
    tail: str | None
    labels: tuple[Pieces, ...]
    open: bool

    def matches(self, host: str, port: int) -> bool:
        """Say whether the pattern is for this host, in lower case, on this port."""
        return port == self.port and self.matches_name(host)

    def matches_name(self, host: str) -> bool:
        """The same whatever the port."""
        if self.name is not None:
            return host == self.name
        labels = host.split(".")
        spare = len(labels) - len(self.labels)
        if spare < 1 if self.open else spare != 0:
            return False
        return all(fits(pieces, label) for pieces, label in zip(self.labels, labels[spare:], strict=True))


class PathPattern(msgspec.Struct, frozen=True):
    """The paths that a route is for.

    `name` is set where the pattern is one path, `under` where it is everything at and below that; else only
    `segments` say what it matches, and whether what is below matches as well is `open`.
    """

    text: str
    name: str | None
    under: str | None
    segments: tuple[Pieces, ...]
    open: bool

    def matches(self, path: str) -> bool:
        """Say whether the pattern is for this path, in the spelling of `Target.matched`."""
        if self.name is not None:
            return path == self.name
        if self.under is not None:
            return path.startswith(self.under) and path[len(self.under) : len(self.under) + 1] in ("", "/")
        count = len(self.segments)
        segments = path.split("/", count)
        if len(segments) < count or (len(segments) > count and not self.open):
            return False
        return all(fits(pieces, segment) for pieces, segment in zip(self.segments, segments, strict=False))


@lru_cache(_REMEMBERED)
def compile_host(text: str) -> HostPattern:
    """Read a host pattern, or raise InvalidPattern with a sentence.

    A first label `*` stands for one or more labels; any other `*` stays within its label. No port means 443.
    """
    try:
        host, port = read_host(text, wild=True, addresses=True)
    except Misspelled as problem:
        raise InvalidPattern(problem.message) from None
    first, _, rest = host.partition(".")
    is_open = first == STAR
    labels = (rest.split(".") if rest else []) if is_open else host.split(".")
    return HostPattern(
        text=f"{host}:{port}" if port else host,
        port=port or DEFAULT_PORT,
        port_written=port is not None,
        name=None if STAR in host else host,
        tail=rest if is_open and STAR not in rest else None,
        labels=_pieces(labels),
        open=is_open,
    )


@lru_cache(_REMEMBERED)
def compile_path(text: str) -> PathPattern:
    """Read a path pattern, or raise InvalidPattern with a sentence.

    A final `/*` stands for any rest, also none; any other `*` stays within its segment.
    """
    try:
        path = normal_path(text)
    except Misspelled as problem:
        raise InvalidPattern(problem.message) from None
    if "**" in path:
        raise InvalidPattern("Write one * instead of two; a final /* stands for everything below.")
    if _EMPTY.search(path):
        raise InvalidPattern("The path has an empty segment.")
    return make_pattern(path)


@lru_cache(_REMEMBERED)
def make_pattern(path: str, *, may_be_open: bool = True) -> PathPattern:
    """Make a pattern of a path that is well spelled."""
    # A star behind an escaped slash stays within its segment for who decodes the slash, too.
    is_open = may_be_open and path.endswith("/*")
    literal = path[:-2] if is_open else path
    is_plain = STAR not in literal
    return PathPattern(
        text=path,
        name=literal if is_plain and not is_open else None,
        under=literal if is_plain and is_open else None,
        segments=_pieces(literal.split("/")),
        open=is_open,
    )


def fits(pieces: Pieces, text: str) -> bool:
    """Say whether a text is these pieces with anything, also nothing, where they were cut."""
    if len(pieces) == 1:
        return text == pieces[0]
    first, last = pieces[0], pieces[-1]
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in pieces[1:-1]:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


def _pieces(parts: Sequence[str]) -> tuple[Pieces, ...]:
    return tuple(tuple(part.split(STAR)) for part in parts)

"""The route that a request falls to: one of each kind, credential routes and payment routes.

Guarantees: highest priority first, then the oldest; only enabled routes; the same answer as asking every route in
that order. Made once for a tenant's routes, then asked for every request, so nothing is asked that an index can tell.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Protocol

import msgspec

from custody.credentials.anchors import Anchors
from custody.credentials.coverage import covers, pattern_in
from custody.credentials.patterns import STAR, HostPattern, InvalidPattern, PathPattern, compile_host, compile_path
from custody.credentials.readings import Reading, is_odd
from custody.credentials.target import MalformedTarget, Target
from custody.credentials.types import RoutePlace

Reason = Literal["disabled", "broken", "agent", "host", "port", "path", "method", "matched", "lower_priority"]


_DIFFERS = (
    "Servers read this path in several ways, because of an escaped slash, an empty segment or a semicolon, and not all "
    "of them fall to one route. Write %2F in the route's path where the request has it, or end the route's path in /*."
)


class Route(Protocol):
    """The part of a route that matching needs."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def fields(self) -> RoutePlace:
        """The requests that it is for."""


class _Entry(msgspec.Struct, frozen=True):
    """A route with its compiled patterns; the lowest rank wins."""

    rank: int
    route: Any
    host: HostPattern
    path: PathPattern


class RouteTable[Kind: Route]:
    """A tenant's routes of one kind, ready to be asked. `broken` holds the ids of routes whose patterns are none."""

    def __init__(self, routes: Sequence[Kind]) -> None:
        self.broken: list[str] = []
        self._ordered = sorted(routes, key=lambda route: -route.fields.priority)
        everybodys: list[_Entry] = []
        # Of the routes that name agents; the index of an agent's own is made when it first asks.
        self._named: dict[str, list[_Entry]] = {}
        self._own: dict[str, _Index] = {}
        for rank, route in enumerate(self._ordered):
            try:
                host, path = compile_host(route.fields.host_pattern), compile_path(route.fields.path_pattern)
            except InvalidPattern:
                self.broken.append(route.id)
                continue
            if route.fields.enabled:
                entry = _Entry(rank, route, host, path)
                for agent in route.fields.agents:
                    self._named.setdefault(agent, []).append(entry)
                if not route.fields.agents:
                    everybodys.append(entry)
        self._everybodys = _Index(everybodys)

    def find(self, target: Target, method: str, agent: str) -> Kind | None:
        """The route of an agent's request, or None; MalformedTarget if servers that read its path differ about it."""
        best: _Entry | None = None
        candidates = [paths for index in self._indexes(agent) for paths in index.paths_of(target.host, target.port)]
        for paths in candidates:
            best = paths.better(best, target.matched, method)
        if best is None:
            return None
        for reading, path in target.readings:
            other: _Entry | None = None
            for paths in candidates:
                other = paths.better_read(other, reading, path, method)
            if other is None or other.rank != best.rank:
                raise MalformedTarget(_DIFFERS)
        found: Kind = best.route
        return found

    def knows_host(self, host: str, port: int, agent: str) -> bool:
        """Say whether any enabled route of an agent is for this host on this port."""
        return any(next(index.paths_of(host, port), None) is not None for index in self._indexes(agent))

    def explain(self, target: Target, method: str, agent: str) -> list[tuple[Kind, Reason]]:
        """Every route in order with the first thing that speaks against it; one at most is `matched`."""
        explained: list[tuple[Kind, Reason]] = []
        found = False
        for route in self._ordered:
            reason = _reason(route, target, method, agent)
            if reason == "matched" and found:
                reason = "lower_priority"
            found = found or reason == "matched"
            explained.append((route, reason))
        return explained

    def _indexes(self, agent: str) -> Iterator["_Index"]:
        yield self._everybodys
        if (named := self._named.get(agent)) is not None:
            own = self._own.get(agent)
            if own is None:
                own = self._own[agent] = _Index(named)
            yield own


class _Index:
    """Enabled routes by the hosts that they are for."""

    def __init__(self, entries: Sequence[_Entry]) -> None:
        self._by_name: dict[tuple[str, int], _Paths] = {}
        self._by_tail: dict[tuple[str, int], _Paths] = {}
        self._by_pattern: dict[HostPattern, _Paths] = {}
        for entry in entries:
            self._paths_for(entry.host).add(entry)
        # Labels from the last on: a first star stands for any number of them.
        self._anchored = Anchors((host.labels[::-1], (host, paths)) for host, paths in self._by_pattern.items())
        for paths in (*self._by_name.values(), *self._by_tail.values(), *self._by_pattern.values()):
            paths.settle()

    def paths_of(self, host: str, port: int) -> Iterator["_Paths"]:
        """The paths of each pattern that is for this host on this port."""
        if named := self._by_name.get((host, port)):
            yield named
        if self._by_tail:
            tail = host
            while tail:
                _, _, tail = tail.partition(".")
                if below := self._by_tail.get((tail, port)):
                    yield below
        if self._by_pattern:
            for candidates in self._anchored.of(host.split(".")[::-1]):
                yield from (paths for pattern, paths in candidates if pattern.matches(host, port))

    def _paths_for(self, host: HostPattern) -> "_Paths":
        if host.name is not None:
            return self._by_name.setdefault((host.name, host.port), _Paths())
        if host.tail is not None:
            return self._by_tail.setdefault((host.tail, host.port), _Paths())
        return self._by_pattern.setdefault(host, _Paths())


class _Paths:
    """The routes of one host pattern. Of two with one path and method only the first can ever win."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], _Entry] = {}
        self._by_start: dict[tuple[str, str], _Entry] = {}
        self._by_pattern: dict[tuple[str, str], _Entry] = {}
        self._anchored: Anchors[_Entry] | None = None
        # In segments; a longer start need not be looked up.
        self._longest_start = 0
        self._odd: list[_Entry] = []
        self._read: dict[Reading, _Paths] = {}

    def add(self, entry: _Entry) -> None:
        """Take a route; they come in the order of their ranks."""
        if is_odd(entry.path.text):
            self._odd.append(entry)
        path, method = entry.path, entry.route.fields.method
        if path.name is not None:
            self._by_name.setdefault((path.name, method), entry)
        elif path.under is not None:
            self._by_start.setdefault((path.under, method), entry)
            self._longest_start = max(self._longest_start, path.under.count("/"))
        else:
            self._by_pattern.setdefault((path.text, method), entry)

    def settle(self) -> None:
        """All routes are here."""
        if self._by_pattern:
            self._anchored = Anchors((entry.path.segments, entry) for entry in self._by_pattern.values())

    def better(self, best: _Entry | None, path: str, method: str) -> _Entry | None:
        """The lowest rank among these and `best`."""
        for known in (method, STAR):
            best = _lower(best, self._by_name.get((path, known)))
            for start in self._starts(path):
                best = _lower(best, self._by_start.get((start, known)))
        if self._anchored is None:
            return best
        for candidates in self._anchored.of(path.split("/", self._anchored.deepest + 1)):
            best = _first(candidates, best, path, method)
        return best

    def better_read(self, best: _Entry | None, reading: Reading, path: str, method: str) -> _Entry | None:
        """The same for a path, and for patterns, as a server takes them that reads in this way."""
        best = self.better(best, path, method)
        if not self._odd:
            return best
        if reading not in self._read:
            read = self._read[reading] = _Paths()
            for entry in self._odd:
                read.add(_Entry(entry.rank, entry.route, entry.host, pattern_in(reading, entry.path)))
            read.settle()
        return self._read[reading].better(best, path, method)

    def _starts(self, path: str) -> Iterator[str]:
        if not self._by_start:
            return
        yield ""
        at = 0
        for _ in range(self._longest_start):
            at = path.find("/", at + 1)
            if at < 0:
                yield path
                return
            yield path[:at]


def _lower(best: _Entry | None, other: _Entry | None) -> _Entry | None:
    return best if other is None or (best is not None and best.rank < other.rank) else other


def _first(candidates: list[_Entry], best: _Entry | None, path: str, method: str) -> _Entry | None:
    """The first of these that the request falls to, or `best`; they are in the order of their ranks."""
    for entry in candidates:
        if best is not None and best.rank < entry.rank:
            break
        if entry.route.fields.method in (method, STAR) and entry.path.matches(path):
            return entry
    return best


def _reason(route: Route, target: Target, method: str, agent: str) -> Reason:
    fields = route.fields
    if not fields.enabled:
        return "disabled"
    try:
        host, path = compile_host(fields.host_pattern), compile_path(fields.path_pattern)
    except InvalidPattern:
        return "broken"
    if not fields.serves(agent):
        return "agent"
    if not host.matches_name(target.host):
        return "host"
    if target.port != host.port:
        return "port"
    if not covers(path, target):
        return "path"
    return "matched" if fields.method in (method, STAR) else "method"

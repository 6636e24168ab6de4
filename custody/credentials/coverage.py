"""Patterns as servers read them that differ about what is odd in one; the signer reads only those of payment routes."""

from custody.credentials.patterns import STAR, PathPattern, compile_host, compile_path, make_pattern
from custody.credentials.readings import Reading, is_odd
from custody.credentials.target import Target
from custody.credentials.types import RoutePlace


def covers(pattern: PathPattern, target: Target) -> bool:
    """Say whether a pattern is for the target's path, however a server reads it."""
    if not pattern.matches(target.matched):
        return False
    return all(pattern_in(way, pattern).matches(path) for way, path in target.readings)


def pattern_in(reading: Reading, pattern: PathPattern) -> PathPattern:
    """The pattern as a server takes it that reads paths in this way."""
    return make_pattern(reading(pattern.text), may_be_open=pattern.open) if is_odd(pattern.text) else pattern


def place_covers(place: RoutePlace, target: Target, method: str, agent: str) -> bool:
    """Say whether a route is for this request of an agent."""
    return (
        place.enabled
        and place.serves(agent)
        and place.method in (STAR, method)
        and compile_host(place.host_pattern).matches(target.host, target.port)
        and covers(compile_path(place.path_pattern), target)
    )

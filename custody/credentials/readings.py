"""The ways in which servers read one path.

Of `/a%2Fb` one server makes two segments and another one. Some drop empty segments, some take what follows two slashes
at the front for a host, some cut a segment at its semicolon. A route that is chosen by one reading must be the route of
the others too, or the upstream would do, with one route's credential, what another route or none is for.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

Reading = Callable[[str], str]

# The percent sign of an escape may be encoded itself, any number of times, and some servers decode as often.
_ODD = re.compile(r"//|;|%(?:25)*(?:2F|3B)", re.IGNORECASE)
_SLASH = re.compile(r"%2F")
_ANY_SLASH = re.compile(r"%(?:25)*2F", re.IGNORECASE)
_PARAMETERS = re.compile(r"(?:;|%(?:25)*3B)[^/]*", re.IGNORECASE)
_SLASHES = re.compile(r"//+")
_HOST = re.compile(r"//+[^/]*")


def is_odd(path: str) -> bool:
    """Say whether servers differ about this path, in its one spelling."""
    return _ODD.search(path) is not None


def other_readings(path: str) -> tuple[tuple[Reading, str], ...]:
    """Each other way to read the path, and what it makes of it; ways that make the same are one."""
    if not is_odd(path):
        return ()
    # By what came out so far: what two ways make alike, they make alike to the end.
    found: dict[str, tuple[Reading, ...]] = {path: ()}
    for stage in _STAGES:
        known, found = found, {}
        for text, steps in known.items():
            for step in stage:
                found.setdefault(step(text), (*steps, step))
    return tuple((_one_after_another(steps), read) for read, steps in found.items() if read != path)


def _as_written(path: str) -> str:
    return path


def _with_slashes(path: str) -> str:
    return _SLASH.sub("/", path)


def _with_all_slashes(path: str) -> str:
    return _ANY_SLASH.sub("/", path)


def _without_parameters(path: str) -> str:
    return _PARAMETERS.sub("", path) or "/"


def _without_empty_segments(path: str) -> str:
    return _SLASHES.sub("/", path)


def _without_host(path: str) -> str:
    return _HOST.sub("", path, count=1) or "/" if path.startswith("//") else path


@cache
def _one_after_another(steps: tuple[Reading, ...]) -> Reading:
    def read(path: str) -> str:
        for step in steps:
            path = step(path)
        return path

    return read


_STAGES: Final[tuple[tuple[Reading, ...], ...]] = (
    (_as_written, _without_parameters),
    (_as_written, _with_slashes, _with_all_slashes),
    (_as_written, _without_parameters),
    (_as_written, _without_host, _without_empty_segments),
)

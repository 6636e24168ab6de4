"""The facts of paths that the router lacks: the methods of one, and which hides behind another."""

import functools
import re
from collections.abc import Iterable

import msgspec

from api.http.endpoint import PATH_SHAPES, Endpoint


class Methods:
    """Every declared path as a pattern, with its methods, for `Allow`."""

    def __init__(self, declared: Iterable[tuple[str, str]]) -> None:
        self._methods: dict[str, set[str]] = {}
        for method, path in declared:
            self._methods.setdefault(path, set()).add(method)
            if method == "GET":
                self._methods[path].add("HEAD")
        self._patterns = [(_pattern(path), path) for path in self._methods]

    def at(self, path: str) -> list[str]:
        """The methods of a path as it was matched; a pattern counts where its values can be what they stand for."""
        return sorted({method for known in self.paths_at(path) for method in self._methods[known]})

    def paths_at(self, path: str) -> list[str]:
        """The declared paths that a path as it was matched can be."""
        found = {known: match.groupdict() for pattern, known in self._patterns if (match := pattern.fullmatch(path))}
        meant = [known for known, values in found.items() if all(fits(*item) for item in values.items())]
        return meant or list(found)


def find_shadowed(table: Iterable[Endpoint]) -> list[tuple[Endpoint, str, dict[str, str]]]:
    """Endpoints with parameters that a path without any hides from one caller, with the values it stands for."""
    fixed = [endpoint for endpoint in table if not endpoint.path_names]
    declared = {(endpoint.method, endpoint.path) for endpoint in fixed}
    return [
        (endpoint, path, found.groupdict())
        for endpoint in table
        for path in sorted({one.path for one in fixed})
        if endpoint.path_names and (endpoint.method, path) not in declared
        if (found := _pattern(endpoint.path).fullmatch(path)) and all(fits(*item) for item in found.groupdict().items())
    ]


def fits(name: str, value: str) -> bool:
    """Say whether a text can be what a path parameter stands for: `batch` is an agent's id, `routes` no secret's."""
    try:
        msgspec.convert(value, PATH_SHAPES[name])
    except msgspec.ValidationError:
        return False
    return True


@functools.cache
def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"<(\w+)>", path)
    return re.compile("".join(f"(?P<{part}>[^/]+)" if at % 2 else re.escape(part) for at, part in enumerate(parts)))

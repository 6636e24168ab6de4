"""What the router does not know of its own paths: the methods of one, and which hides behind another. Decisions 1."""

import re
from collections.abc import Iterable

from api.http.endpoint import Endpoint


class Methods:
    """Every declared path as a pattern, with its methods, for `Allow`."""

    def __init__(self, declared: Iterable[tuple[str, str]]) -> None:
        self._methods: dict[str, set[str]] = {}
        for method, path in declared:
            self._methods.setdefault(path, set()).add(method)
        self._patterns = [(_pattern(path), path) for path in self._methods]

    def at(self, path: str) -> list[str]:
        """The methods of a path as a caller spelled it."""
        return sorted(
            {method for pattern, known in self._patterns if pattern.fullmatch(path) for method in self._methods[known]}
        )


def shadowed(table: Iterable[Endpoint]) -> list[tuple[Endpoint, str, dict[str, str]]]:
    """Endpoints with parameters that a path without any hides from one caller, with the values it stands for."""
    fixed = [endpoint for endpoint in table if not endpoint.path_names]
    declared = {(endpoint.method, endpoint.path) for endpoint in fixed}
    return [
        (endpoint, path, found.groupdict())
        for endpoint in table
        for path in sorted({one.path for one in fixed})
        if endpoint.path_names and (endpoint.method, path) not in declared
        if (found := _pattern(endpoint.path).fullmatch(path))
    ]


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"<(\w+)>", path)
    return re.compile("".join(f"(?P<{part}>[^/]+)" if at % 2 else re.escape(part) for at, part in enumerate(parts)))

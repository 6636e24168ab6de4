"""Which methods a path takes, for `Allow`: the router does not say it of a path with parameters. Decisions 1."""

import re
from collections.abc import Iterable


class Methods:
    """Every declared path as a pattern, with its methods."""

    def __init__(self, declared: Iterable[tuple[str, str]]) -> None:
        self._methods: dict[str, set[str]] = {}
        for method, path in declared:
            self._methods.setdefault(path, set()).add(method)
        self._patterns = [
            (re.compile("[^/]+".join(re.escape(part) for part in re.split("<[^>]+>", path))), path)
            for path in self._methods
        ]

    def at(self, path: str) -> list[str]:
        """The methods of a path as a caller spelled it."""
        return sorted(
            {method for pattern, known in self._patterns if pattern.fullmatch(path) for method in self._methods[known]}
        )

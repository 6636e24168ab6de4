"""Short names of upstreams, as the operator writes them: `name=host` or `name=host:port`, with commas."""

import re
from typing import Final

from custody.credentials.target import MalformedTarget, parse_target

# The proxy answers these itself, or keeps them for that.
RESERVED: Final = frozenset({"proxy", "health", "ready", "metrics"})
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def parse_aliases(text: str) -> dict[str, str]:
    """The host behind each name; ValueError says which entry cannot be used."""
    found = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, host = part.partition("=")
        if name in RESERVED:
            raise ValueError(f"the name {name!r} is reserved; choose another")
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"cannot have an alias named {name!r}: small letters, digits, _ and - only, without blanks"
            )
        try:
            parse_target(host, "/", addresses=True)
        except MalformedTarget as problem:
            raise ValueError(f"{name}: {problem.message}") from None
        found[name] = host
    return found

"""The limits of a search for audit rows, beyond the shapes of its parameters. Pure."""

import re
from collections.abc import Mapping
from datetime import datetime

import msgspec

from api.areas.audit.types import AuditFilter
from custody.kit.errors import Invalid
from custody.kit.search_bounds import first_moment, last_moment

MOST_PATHS = 5
MOST_SEGMENTS = 5
_SEGMENT = re.compile(r"[A-Za-z0-9_]{1,128}\Z")
_RESERVED = frozenset({"__proto__", "prototype", "constructor"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class BadFilter(Invalid):
    """Audit events cannot be filtered by this parameter."""


class Path(msgspec.Struct, frozen=True):
    """A place in the metadata, and what must stand there."""

    segments: tuple[str, ...]
    text: str

    @property
    def needle(self) -> str:
        """The text that the metadata must contain if the value does stand there; cheap to look for first."""
        return msgspec.json.encode(self.text)[1:-1].decode()


class Wanted(msgspec.Struct, frozen=True):
    """A filter that was looked at: bounds as moments, paths taken apart."""

    filter: AuditFilter
    since: datetime | None
    until: datetime | None
    paths: tuple[Path, ...]

    @property
    def everything(self) -> bool:
        """True if no row is left out."""
        given = msgspec.structs.asdict(self.filter)
        return not any(given[name] for name in AuditFilter.__struct_fields__)


def parse(given: AuditFilter) -> Wanted:
    """The filter; BadTime or BadFilter with the parameter's name."""
    since, until = first_moment("dateFrom", given.date_from), last_moment("dateTo", given.date_to)
    return Wanted(given, since, until, _paths(given.metadata))


def _paths(metadata: Mapping[str, str]) -> tuple[Path, ...]:
    if len(metadata) > MOST_PATHS:
        raise BadFilter(f"At most {MOST_PATHS} metadata filters are accepted.", fields=["metadata"])
    return tuple(_path(name, text) for name, text in metadata.items())


def _path(name: str, text: str) -> Path:
    shown, segments = f"metadata.{name}"[:128], tuple(name.split("."))
    if len(segments) > MOST_SEGMENTS:
        raise BadFilter(f"A metadata path has at most {MOST_SEGMENTS} segments.", fields=[shown])
    if not all(_SEGMENT.match(segment) for segment in segments):
        raise BadFilter("A metadata path has segments of letters, digits and _, joined by dots.", fields=[shown])
    if _RESERVED.intersection(segments):
        raise BadFilter("A metadata path must not name __proto__, prototype or constructor.", fields=[shown])
    if not 1 <= len(text) <= 256 or _CONTROL.search(text):
        raise BadFilter("A metadata value has 1 to 256 characters, none of them a control character.", fields=[shown])
    return Path(segments, text)

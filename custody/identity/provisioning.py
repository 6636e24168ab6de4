"""The operator's data on a person: the id of their wallet in the operator's own system, and metadata. Pure."""

import re
from typing import Any, Final

import msgspec

from custody.kit.errors import Invalid

MAX_EXTERNAL_ID: Final = 128
MAX_METADATA_BYTES: Final = 16 * 1024
MAX_METADATA_DEPTH: Final = 8
_EXTERNAL_ID = re.compile(rf"[A-Za-z0-9_.:@-]{{1,{MAX_EXTERNAL_ID}}}")
EXTERNAL_ID_PATTERN: Final = rf"^\s*{_EXTERNAL_ID.pattern}\s*\Z"  # blanks as JSON Schema and JavaScript have them
_BLANKS = "\t\n\v\f\r \u00a0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000\ufeff"
# A reader in JavaScript holds every whole number up to here.
_MOST = 2**53 - 1
# Readers in JavaScript that copy such a key into an object change that object's behaviour.
_REFUSED_KEYS = frozenset({"__proto__", "prototype", "constructor"})


class BadExternalId(Invalid):
    """walletExternalId must be 1 to 128 letters, digits and `_ . : @ -`; blanks around it are dropped."""


class BadCustomMetadata(Invalid):
    """customMetadata must be a JSON object of at most 16 KiB and 8 levels, with numbers that a double holds exactly."""


def external_id(text: str) -> str:
    """The id without blanks around it, or BadExternalId."""
    found = text.strip(_BLANKS)
    if not _EXTERNAL_ID.fullmatch(found):
        raise BadExternalId(fields=["walletExternalId"])
    return found


def metadata_text(metadata: dict[str, Any]) -> str:
    """The metadata as it is stored; BadCustomMetadata names what is wrong with it."""
    text = msgspec.json.encode(metadata)
    if len(text) > MAX_METADATA_BYTES:
        raise _wrong(f"it has {len(text):,} bytes as JSON, and may have {MAX_METADATA_BYTES:,}")
    level: list[Any] = [metadata]
    for _ in range(MAX_METADATA_DEPTH):
        level = [part for item in level for part in _parts(item)]
        if not level:
            return text.decode()
    raise _wrong(f"it is nested deeper than {MAX_METADATA_DEPTH} levels")


def _parts(item: Any) -> list[Any]:
    """The objects and lists inside one; a key or a number that readers would misunderstand is refused."""
    if isinstance(item, dict) and (bad := _REFUSED_KEYS.intersection(item)):
        raise _wrong(f"the key {min(bad)!r} is reserved; call it otherwise")
    parts = list(item.values() if isinstance(item, dict) else item)
    if any(isinstance(part, int | float) and abs(part) > _MOST for part in parts):
        raise _wrong("a number is beyond 2^53 - 1; send it as a text")
    return [part for part in parts if isinstance(part, dict | list)]


def _wrong(what: str) -> BadCustomMetadata:
    return BadCustomMetadata(f"customMetadata: {what}.", fields=["customMetadata"])

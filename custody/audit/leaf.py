"""One audit row as the bytes that are hashed, and as a line of an export. Normative text: docs/audit.md. Pure."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from custody.audit.tree import leaf_hash

FORMAT = b"custody/audit-row/v1"


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every column of a row, in the order in which they are hashed. `metadata` is the JSON text, letter by letter."""

    tenant_id: str
    seq: int
    written_by: str
    actor_type: str
    actor_id: str
    action: str
    resource_type: str
    resource_id: str
    metadata: str
    ip_address: str | None
    user_agent: str | None
    request_id: str | None
    created_at: str


COLUMNS = Row.__struct_fields__


def of_record(record: Mapping[str, Any]) -> Row:
    """The row as the database has it."""
    columns = {name: record[name] for name in COLUMNS}
    return Row(**columns | {"created_at": to_the_microsecond(record["created_at"])})


def to_the_microsecond(moment: datetime) -> str:
    """A time with six digits behind the point, as the database keeps it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def canonical(row: Row) -> bytes:
    """The bytes that the leaf is the hash of: unambiguous, because each column has its length in front."""
    return b"".join(_column(part) for part in (FORMAT.decode(), *msgspec.structs.astuple(row)))


def hash_of(row: Row) -> bytes:
    """The leaf."""
    return leaf_hash(canonical(row))


def _column(value: str | int | None) -> bytes:
    if value is None:
        return b"\x00"
    content = str(value).encode()
    return b"\x01" + len(content).to_bytes(4, "big") + content

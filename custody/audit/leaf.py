"""One audit row as the bytes that are hashed, and as a line of an export. Normative text: docs/audit.md. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from custody.audit.tree import leaf_hash

FORMAT = b"custody/audit-row/v1"
# Of a row that has a column outside its bounds: the same columns, as `columns` reads them.
RAW_FORMAT = b"custody/audit-raw-row/v1"


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


class Read(msgspec.Struct, frozen=True):
    """A row as it was read, and the columns that are outside their bounds: they hold raw text or a digest."""

    row: Row
    unreadable: tuple[str, ...] = ()

    @property
    def leaf(self) -> bytes:
        """The row's leaf."""
        return raw_hash_of(self.row) if self.unreadable else hash_of(self.row)


def of_record(record: Mapping[str, Any]) -> Read:
    """The row as `columns.READ` selects it."""
    return Read(Row(**{name: record[name] for name in COLUMNS}), tuple(record["unreadable"]))


def canonical(row: Row) -> bytes:
    """The bytes that the leaf is the hash of: unambiguous, because each column has its length in front."""
    return _canonical(FORMAT, row)


def hash_of(row: Row) -> bytes:
    """The leaf."""
    return leaf_hash(canonical(row))


def raw_hash_of(row: Row) -> bytes:
    """The leaf of a row with a column outside its bounds."""
    return leaf_hash(_canonical(RAW_FORMAT, row))


def _canonical(form: bytes, row: Row) -> bytes:
    return b"".join(_column(part) for part in (form.decode(), *msgspec.structs.astuple(row)))


def _column(value: str | int | None) -> bytes:
    if value is None:
        return b"\x00"
    content = str(value).encode()
    return b"\x01" + len(content).to_bytes(4, "big") + content

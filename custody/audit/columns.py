"""The columns of audit rows as SQL reads them: never more of a row than its bounds. docs/audit.md. Pure.

A row within the bounds is read as it is. One outside them can only be older than the bounds, or written by the owner of
the database: it is read as raw text, a column that is too long as its digest, so that no row is too odd to be sealed or
shown, and none too large for the process that reads it.
"""

from typing import Final

from custody.audit.leaf import COLUMNS

# Bytes. The constraints on the table say the same (custody/migrations/0105_audit.sql).
MAX_WORD: Final = 2048
MAX_METADATA: Final = 65_536
# Times that every reader can hold: years of four digits.
FIRST_TIME, LAST_TIME = "1970-01-01 00:00:00+00", "10000-01-01 00:00:00+00"

_MAX = {
    name: MAX_METADATA if name == "metadata" else MAX_WORD
    for name in COLUMNS
    if name not in {"tenant_id", "seq", "created_at"}
}
_FORM = 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
_IN_TIME = f"a.created_at >= '{FIRST_TIME}' AND a.created_at < '{LAST_TIME}'"


def _column(name: str) -> str:
    if name == "created_at":
        # Both formats are spelled out: no setting of the server may change what was sealed.
        plain, odd = (f"to_char(a.created_at AT TIME ZONE 'UTC', '{form}')" for form in (_FORM, f"{_FORM} BC"))
        return (
            f"CASE WHEN {_IN_TIME} THEN {plain} WHEN isfinite(a.created_at) THEN {odd} "
            "ELSE a.created_at::text END AS created_at"
        )
    if name not in _MAX:
        return f"a.{name}"
    digest = f"'sha256:' || encode(sha256(convert_to(a.{name}, 'UTF8')), 'hex') || ':' || octet_length(a.{name})"
    return f"CASE WHEN octet_length(a.{name}) > {_MAX[name]} THEN {digest} ELSE a.{name} END AS {name}"


def _outside(name: str) -> str:
    beyond = f"NOT ({_IN_TIME})" if name == "created_at" else f"octet_length(a.{name}) > {_MAX[name]}"
    return f"CASE WHEN {beyond} THEN '{name}' END"


# Of a row `a`: every column, and `unreadable`, the names of those that are outside their bounds.
READ: Final = (
    ", ".join(map(_column, COLUMNS))
    + f", array_remove(ARRAY[{', '.join(map(_outside, [*_MAX, 'created_at']))}]::text[], NULL) AS unreadable"
)
_SIZES = {name: f"LEAST(COALESCE(octet_length(a.{name}), 0), {most})" for name, most in _MAX.items()}
# How many bytes of it are read at most.
SIZE: Final = " + ".join(_SIZES.values())
# And in an answer: metadata is JSON already, of any other text each character may become six.
SHOWN_SIZE: Final = " + ".join(size if name == "metadata" else f"6 * {size}" for name, size in _SIZES.items())

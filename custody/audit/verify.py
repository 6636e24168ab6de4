"""Checking an export against its checkpoint, offline: this opens no file, no network, no database. docs/audit.md.

A cautious reader can rewrite this from the page; it is short on purpose.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence

import msgspec

from custody.audit import checkpoint, leaf, tree
from custody.audit.checkpoint import BadCheckpoint, Checkpoint
from custody.audit.lines import LastLine, RawRowLine, RowLine, read


class Wrong(Exception):
    """Something is not as it was sealed; the message says what."""


class Unprovable(Exception):
    """The file lacks what the question needs; it may be good all the same."""


class Verified(msgspec.Struct, frozen=True):
    """The findings on an export. `signed` is false where no key was given to check the signature with.

    `raw`: indexes of rows with columns outside their bounds; `unshown`: those of them whose hash stands in the log, and
    whose columns are not the ones that it was made from.
    """

    checkpoint: Checkpoint
    rows: int
    first: int | None
    last: int | None
    filtered: bool
    next: str | None
    signed: bool
    goes_on_from: int | None = None
    raw: tuple[int, ...] = ()
    unshown: tuple[int, ...] = ()


def verify(content: bytes, keys: Sequence[bytes] | None, earlier: str | None = None) -> Verified:
    """Check an export, or raise Wrong or Unprovable.

    `keys` None: everything but the signature; `earlier`: a note one kept.
    """
    if not content.strip():
        raise Unprovable("The file is empty, so it is no NDJSON export; was the request for it refused?")
    *lines, end = _split(content)
    last = read(end, LastLine)
    if last is None and not (lines and (read(lines[0], RowLine) or read(lines[0], RawRowLine))):
        raise Unprovable("Not an NDJSON export; is it the CSV, or an error response?")
    if last is None:
        raise Wrong("The last line is not a checkpoint: the file is truncated, or not an export of a log.")
    head = _open(last.checkpoint, keys, "The checkpoint")
    rows = [_row(line, number) for number, line in enumerate(lines, 1)]
    leaves = _leaves(rows, head, last)
    try:
        root = tree.root_of(head.size, leaves, _hashes(last.proof))
    except tree.BadProof:
        raise Wrong("The proof does not match the rows: a row was removed, inserted, or renumbered.") from None
    if root != head.root:
        raise Wrong("The rows do not hash to the checkpoint's root: a row, its position or the proof was changed.")
    goes_on_from = None if earlier is None else _goes_on(earlier, keys, head, leaves, last)
    return Verified(
        head,
        len(leaves),
        min(leaves, default=None),
        max(leaves, default=None),
        last.filtered,
        last.next,
        keys is not None,
        goes_on_from,
        tuple(row.index for row in rows if isinstance(row, RawRowLine)),
        tuple(row.index for row in rows if isinstance(row, RawRowLine) and leaf.raw_hash_of(row.row) != _leaf(row)),
    )


def checkpoint_keys(jwks: bytes) -> list[bytes]:
    """The keys of a JWK set that sign checkpoints. Raises Unprovable."""
    try:
        keys = msgspec.json.decode(jwks, type=_Jwks).keys
        found = [base64.urlsafe_b64decode(key.x + "==") for key in keys if key.use == "checkpoint" and key.kty == "OKP"]
    except (msgspec.MsgspecError, ValueError):
        raise Unprovable("The key file is not a JWK set.") from None
    if not found:
        raise Unprovable("The key file has no key whose use is checkpoint.")
    return found


class _Jwk(msgspec.Struct, frozen=True):
    kty: str
    use: str = ""
    x: str = ""


class _Jwks(msgspec.Struct, frozen=True):
    keys: list[_Jwk]


def _split(content: bytes) -> list[bytes]:
    # A last line that is cut off is nothing that an export could have.
    return content.removesuffix(b"\n").split(b"\n") if content.endswith(b"\n") else [*content.split(b"\n"), b""]


def _row(line: bytes, number: int) -> RowLine | RawRowLine:
    found = read(line, RowLine) or read(line, RawRowLine)
    if found is None:
        raise Wrong(f"Line {number} is not a row of an export.")
    return found


def _leaf(row: RowLine | RawRowLine) -> bytes:
    return _hashes([row.hash])[0] if isinstance(row, RawRowLine) else leaf.hash_of(row.row)


def _open(note: str, keys: Sequence[bytes] | None, what: str) -> Checkpoint:
    try:
        return checkpoint.read(note) if keys is None else checkpoint.open_note(note, keys)
    except BadCheckpoint:
        signed = "" if keys is None else ", or is not signed by a key of the key file"
        raise Wrong(f"{what} is malformed{signed}.") from None


def _leaves(rows: Iterable[RowLine | RawRowLine], head: Checkpoint, last: LastLine) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    before = last.begin - 1
    for row in rows:
        if not head.origin.endswith(f"/audit/{row.row.tenant_id}"):
            raise Wrong(f"Row {row.index} belongs to a different log than the checkpoint.")
        if row.index <= before:
            raise Wrong(f"Row {row.index} follows row {before}: the rows are not in the order of the log.")
        if not last.filtered and row.index != before + 1:
            raise Wrong(f"Rows {before + 1} to {row.index - 1} of the log are missing.")
        if row.index >= head.size:
            raise Wrong(f"Row {row.index} is beyond the checkpoint, which covers {head.size} rows.")
        before, found[row.index] = row.index, _leaf(row)
    if not last.filtered and last.next is None and before != head.size - 1:
        raise Wrong(f"Rows {before + 1} to {head.size - 1} are missing at the end.")
    return found


def _goes_on(
    earlier: str, keys: Sequence[bytes] | None, head: Checkpoint, leaves: dict[int, bytes], last: LastLine
) -> int:
    old = _open(earlier, keys, "The earlier checkpoint")
    if old.origin != head.origin:
        raise Wrong(f"The earlier checkpoint is of another log: {old.origin}.")
    if old.size > head.size:
        raise Wrong(f"The log is shorter than it was: {head.size} rows, and the earlier checkpoint covers {old.size}.")
    if all(number in leaves for number in range(old.size)):
        frontier, _ = tree.append(0, (), (leaves[number] for number in range(old.size)))
        good = tree.root(frontier) == old.root
    elif old.size == head.size:
        good = old.root == head.root
    elif last.since != old.size:
        raise Unprovable(f"This file cannot show that; export again with since={old.size}.")
    else:
        try:
            good = tree.goes_on(old.size, old.root, head.size, head.root, _hashes(last.consistency))
        except tree.BadProof:
            good = False
    if not good:
        raise Wrong(f"The log does not extend the earlier checkpoint: its first {old.size} rows differ.")
    return old.size


def _hashes(encoded: Iterable[str]) -> list[bytes]:
    try:
        found = [base64.b64decode(one, validate=True) for one in encoded]
    except (binascii.Error, ValueError):
        raise Wrong("A hash or the proof is not base64.") from None
    if any(len(one) != 32 for one in found):
        raise Wrong("A hash, or one of the proof, does not have 32 bytes.")
    return found

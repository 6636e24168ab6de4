"""`custody audit verify`: whether an export is what was sealed. Offline: it reads files, and opens nothing else.

Exit status: 0 everything was as sealed and signed, 1 something was not, 2 a file could not be read or cannot show what
was asked, 3 all was well but no key was given to check the signature with.
"""

import argparse
import sys
from collections.abc import Sequence

from custody.audit import verify
from custody.audit.verify import Unprovable, Verified, Wrong

GOOD, WRONG, UNREADABLE, UNSIGNED = 0, 1, 2, 3
MOST_NAMED = 20


def run(chosen: argparse.Namespace) -> int:
    """Check it and say what was found."""
    try:
        content, jwks = chosen.file.read_bytes(), chosen.jwks.read_bytes() if chosen.jwks else None
        earlier = chosen.checkpoint.read_text() if chosen.checkpoint else None
    except (OSError, UnicodeDecodeError) as problem:
        print(f"custody: cannot read: {problem}", file=sys.stderr)
        return UNREADABLE
    try:
        keys = None if jwks is None else verify.checkpoint_keys(jwks)
        found = verify.verify(content, keys, earlier)
    except Wrong as problem:
        print(f"WRONG  {problem}")
        return WRONG
    except Unprovable as problem:
        print(f"custody: {problem}", file=sys.stderr)
        return UNREADABLE
    print("\n".join(_report(found)))
    if found.unshown:
        return UNREADABLE
    return GOOD if found.signed else UNSIGNED


def _report(found: Verified) -> list[str]:
    head = found.checkpoint
    lines = [f"log         {head.origin}", f"checkpoint  {head.size} rows, root {head.root.hex()}"]
    if found.first is None:
        lines.append("rows        none")
    elif found.filtered:
        lines.append(
            f"rows        {found.rows}, each unchanged and in the log; the export was filtered, so it proves nothing "
            f"about rows outside the filter"
        )
    else:
        lines.append(f"rows        {found.first} to {found.last}, unchanged, none missing between them")
    if found.raw:
        lines.append(
            f"unreadable  {len(found.raw)}, shown as raw text, or as a digest where a column is too long: "
            f"{_indexes(found.raw)}"
        )
    if found.unshown:
        lines.append(
            f"NOT SHOWN   {len(found.unshown)}, of which the log has the hash and the file not what it was made from: "
            f"{_indexes(found.unshown)}; sealed before rows had bounds, or changed since"
        )
    if found.next is not None:
        lines.append(f"more        the export continues at cursor {found.next}")
    if found.goes_on_from is not None:
        lines.append(f"earlier     the log extends the checkpoint of {found.goes_on_from} rows")
    signed = "good" if found.signed else "NOT CHECKED: give --jwks; without it this file could be forged"
    return [*lines, f"signature   {signed}"]


def _indexes(found: Sequence[int]) -> str:
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return ", ".join(map(str, found[:MOST_NAMED])) + more

"""`custody audit verify`: whether an export is what was sealed. Offline: it reads files, and opens nothing else.

Exit status: 0 everything was as sealed and signed, 1 something was not, 2 a file could not be read or cannot show what
was asked, 3 all was well but no key was given to check the signature with.
"""

import argparse
import sys

from custody.audit import verify
from custody.audit.verify import Unprovable, Verified, Wrong

GOOD, WRONG, UNREADABLE, UNSIGNED = 0, 1, 2, 3


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
    print("\n".join(_told(found)))
    return GOOD if found.signed else UNSIGNED


def _told(found: Verified) -> list[str]:
    head = found.checkpoint
    lines = [f"log         {head.origin}", f"checkpoint  {head.size} rows, root {head.root.hex()}"]
    if found.first is None:
        lines.append("rows        none")
    elif found.filtered:
        lines.append(
            f"rows        {found.rows}, each unchanged and in the log; the export was filtered, so it says nothing "
            "about rows that it leaves out"
        )
    else:
        lines.append(f"rows        {found.first} to {found.last}, unchanged, none missing between them")
    if found.next is not None:
        lines.append(f"more        the export goes on at cursor {found.next}")
    if found.goes_on_from is not None:
        lines.append(f"earlier     the log goes on from the checkpoint of {found.goes_on_from} rows")
    signed = "good" if found.signed else "NOT CHECKED: give --jwks; without it anybody could have made this file"
    return [*lines, f"signature   {signed}"]

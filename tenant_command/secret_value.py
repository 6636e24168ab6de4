"""Reading a secret's value: from a file, standard input or a terminal, and never from an argument.

Every user of a machine can read the arguments of its programs, and a shell keeps them in its history.
"""

import sys
from pathlib import Path
from typing import Final

import click

from tenant_command.printing import Printer

MOST_BYTES: Final = 65_536
# What is cut off at the end, if it is there; so many more bytes are read than a value may have.
_LINE_ENDS: Final = (b"\r\n", b"\n")
_READ_BYTES: Final = MOST_BYTES + len(_LINE_ENDS[0]) + 1
# Of a longer line a terminal hands on no more than this, and says nothing of the rest.
_TYPED_AT_MOST: Final = 4_095
_SEVERAL_LINES: Final = ("-----BEGIN", "{", "[")
_IN_A_FILE: Final = "put it into a file, and name that with --from-file"


def read_value(out: Printer, file: str | None) -> str:
    """Return the value; raises UsageError, which never says anything of what was read."""
    if file not in (None, "-"):
        return read_value_file(Path(str(file)))
    if sys.stdin.isatty():
        return _ask(out)
    return _text(sys.stdin.buffer.read(_READ_BYTES), "standard input")


def read_value_file(file: Path) -> str:
    """Read the value in a file; raises UsageError, as above."""
    try:
        with file.open("rb") as opened:
            content = opened.read(_READ_BYTES)
    except OSError as problem:
        raise click.UsageError(f"{file} cannot be read: {problem.strerror}") from None
    return _text(content, str(file))


def _text(content: bytes, place: str) -> str:
    for end in _LINE_ENDS:
        if content.endswith(end):
            content = content[: -len(end)]
            break
    if len(content) > MOST_BYTES:
        raise click.UsageError(f"{place} has more than the {MOST_BYTES:,} bytes that a secret may have")
    if not content:
        raise click.UsageError(f"{place} is empty: there is no value in it")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise click.UsageError(f"{place} is no text in UTF-8, and a secret is text: encode it, in base64 say") from None


def _ask(out: Printer) -> str:
    value = out.answer("The value (it is not shown)")
    if len(value.encode()) >= _TYPED_AT_MOST:
        raise click.UsageError(f"a terminal does not hand on a line that is so long: {_IN_A_FILE}")
    # Of a value with several lines that is pasted here, this is the first.
    if value.startswith(_SEVERAL_LINES[0]) or value.strip() in _SEVERAL_LINES[1:]:
        raise click.UsageError(f"that is the first of several lines: {_IN_A_FILE}")
    return value

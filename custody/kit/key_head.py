"""The head of a sealed master key file: who may open it, readable without any key. Normative: docs/sealed-blob.md 8."""

import binascii
import re
from base64 import b64decode, b64encode

import msgspec

from custody.kit.errors import Conflict

FIRST_LINE = b"custody-sealed-keys 1\n"
MAX_FILE = 64 * 1024
MAX_HOLDERS = 16
MAX_HOLDER_NAME = 512
MAX_HOLDER_BLOB = 8192
# Bytes of the key that the file is sealed with.
KEY_BYTES = 32
_ANY_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?\s*custody-sealed-keys")
_FILE = re.compile(r"file ([0-9a-f]{16})", re.ASCII)
_HOLDER = re.compile(r"holder ([a-z0-9]{1,16}) ([!-~]{1,512}) ([A-Za-z0-9+/=]{1,10924})", re.ASCII)


class MalformedHead(Conflict):
    """The file begins as a sealed one and cannot be read as such."""


class Holder(msgspec.Struct, frozen=True):
    """One that opens the file: its kind, its name of the key, and the file's key as it wrapped it."""

    kind: str
    name: str
    blob: bytes


class Head(msgspec.Struct, frozen=True):
    """All that stands above the sealed keys; `text` is it to the byte, for it is authenticated."""

    file: str
    holders: tuple[Holder, ...]
    text: bytes


def is_sealed(content: bytes) -> bool:
    """Say whether it is to be read as a sealed file: also one that an editor changed, which is refused then."""
    return _ANY_FIRST_LINE.match(content) is not None


def split(content: bytes) -> tuple[Head, str]:
    """The head of a file and the text of its line of keys; MalformedHead for anything else."""
    if len(content) > MAX_FILE:
        raise MalformedHead("The sealed key file is too long: it has 64 KiB at most.")
    at = content.rfind(b"\nkeys ") + 1
    if not at or not content.endswith(b"\n") or b"\n" in content[at:-1]:
        raise MalformedHead("The sealed key file is malformed: its last line is not the one of the keys.")
    return read_head(content[:at]), content[at + len(b"keys ") : -1].decode("ascii", "replace")


def read_head(text: bytes) -> Head:
    """Read a head to the letter; MalformedHead where anything is not as it is written here."""
    if len(text) > MAX_FILE:
        raise MalformedHead("The head of the sealed key file is too long: it has 64 KiB at most.")
    if not text.startswith(FIRST_LINE):
        raise MalformedHead("The sealed key file is malformed, or was made by a newer version of Custody.")
    if not text.isascii() or not text.endswith(b"\n") or b"\r" in text or b"\0" in text:
        raise MalformedHead("The sealed key file is malformed: its head is ASCII in lines that end with LF.")
    file, holders = "", []
    for line in text.decode("ascii").split("\n")[1:-1]:
        if line.startswith("#"):
            continue
        if (said := _FILE.fullmatch(line)) and not file:
            file = said[1]
        elif said := _HOLDER.fullmatch(line):
            holders.append(Holder(said[1], said[2], _blob(said[3])))
        else:
            # A line may be a key that somebody put there, so it never enters the message.
            raise MalformedHead("The sealed key file is malformed: a line of its head is none that it may have.")
    if not file or not 1 <= len(holders) <= MAX_HOLDERS:
        raise MalformedHead(f"The sealed key file is malformed: it has one id, and 1 to {MAX_HOLDERS} holders.")
    return Head(file, tuple(holders), text)


def write_head(file: str, holders: tuple[Holder, ...]) -> Head:
    """A head with these holders."""
    lines = [FIRST_LINE.decode(), "# Custody master key, sealed.\n", f"file {file}\n"]
    lines += [f"holder {one.kind} {one.name} {b64encode(one.blob).decode()}\n" for one in holders]
    return read_head("".join(lines).encode())


def binding(file: str) -> bytes:
    """The text by which a holder binds the file's key to this file."""
    return f"custody file-key/1 {file}".encode()


def _blob(text: str) -> bytes:
    try:
        blob = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        blob = b""
    # One spelling alone: what else decodes to the same bytes was written by nobody.
    if b64encode(blob).decode() != text or len(blob) > MAX_HOLDER_BLOB:
        raise MalformedHead("The sealed key file is malformed: a holder wrapped no base64 of 8,192 bytes at most.")
    return blob

"""Bytes to the characters of an XML document, and references to the characters that they stand for."""

import re
from typing import Final

MAX_BYTES: Final = 64 * 1024
MAX_ELEMENTS: Final = 2_000

_DECLARATION = re.compile(
    r"<\?xml[ \t\n]++version[ \t\n]*+=[ \t\n]*+(?:\"1\.0\"|'1\.0')"
    r"(?:[ \t\n]++encoding[ \t\n]*+=[ \t\n]*+(?:\"[Uu][Tt][Ff]-8\"|'[Uu][Tt][Ff]-8'))?"
    r"(?:[ \t\n]++standalone[ \t\n]*+=[ \t\n]*+(?:\"(?:yes|no)\"|'(?:yes|no)'))?[ \t\n]*+\?>"
)
_REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#x([0-9A-Fa-f]{1,6}));|&")
_SPACES = str.maketrans("\t\n", "  ")
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_CONTROLS: Final = bytes(set(range(0x20)) - {0x09, 0x0A, 0x0D})


class XmlRefused(Exception):
    """The bytes are no XML that is read here; the text says why, as a sentence."""


def decode(content: bytes) -> str:
    """The characters, with line ends as XML reads them. What is bounded by counting is counted first."""
    if len(content) > MAX_BYTES:
        raise XmlRefused(f"The XML is longer than {MAX_BYTES // 1024} KiB.")
    if content.count(b"<") > 2 * MAX_ELEMENTS + 1:
        raise XmlRefused(f"The XML has more than {MAX_ELEMENTS:,} elements.")
    if len(content.translate(None, _CONTROLS)) != len(content):
        raise XmlRefused("The XML contains a control character, or is not UTF-8.")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise XmlRefused("The XML is not UTF-8.") from None
    if "\ufffe" in text or "\uffff" in text:
        raise XmlRefused("The XML contains a character that XML does not have.")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.removeprefix("\ufeff")


def after_declaration(text: str) -> int:
    """Find where the document begins, behind its XML declaration if it has one."""
    if not text.startswith("<?xml"):
        return 0
    match = _DECLARATION.match(text)
    if match is None:
        raise XmlRefused('The XML declaration must be of version "1.0", with the encoding "UTF-8" or none.')
    return match.end()


def attribute_value(raw: str) -> str:
    """The value of an attribute: literal white space is a space, that of a reference is itself."""
    if "\n" in raw or "\t" in raw:
        raw = raw.translate(_SPACES)
    return resolve(raw) if "&" in raw else raw


def resolve(raw: str) -> str:
    """A text with each reference replaced by its character."""
    return _REFERENCE.sub(_character, raw)


def _character(match: re.Match[str]) -> str:
    name, decimal, hexadecimal = match.groups()
    if name:
        return _NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16) if hexadecimal else 0
    legal = code in (0x09, 0x0A, 0x0D) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD
    if not legal and not 0x10000 <= code <= 0x10FFFF:
        raise XmlRefused("A reference names no character of XML, or is none of the five that need no DOCTYPE.")
    return chr(code)

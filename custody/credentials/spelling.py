"""The spelling of hosts and paths, in requests and in patterns alike.

What leads elsewhere in another reading is refused: a segment that becomes a dot segment, a backslash, an address in one
of its many notations. Other escapes are data. Of an escaped slash, an empty segment and a semicolon servers differ:
`readings.py` has the ways, and a request must fall to one route in all of them.
"""

import re
import unicodedata
from ipaddress import ip_address
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from custody.kit.errors import Invalid

DEFAULT_PORT: Final = 443
MAX_PATH: Final = 16 * 1024
MAX_HOST: Final = 253
MAX_LABEL: Final = 63
MAX_PORT: Final = 65_535

_OUTSIDE_ASCII = re.compile(r"[^\x00-\x7f]")
_NOT_VISIBLE = re.compile(r"[^\x21-\x7e]")
_PORT = re.compile(r"[1-9][0-9]{0,4}\Z")
_LABEL = re.compile(r"[a-z0-9_-]+\Z")
_WILD_LABEL = re.compile(r"[a-z0-9_*-]+\Z")
# A last label like this makes the whole host an address for inet_aton and browsers: 127.1, 0x7f.1, 2130706433.
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")
_WILD_ADDRESS = re.compile(r"[0-9.*]*[0-9][0-9.*]*\Z")

_BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_CONTROL = re.compile(r"%(?:[01][0-9A-F]|7F)")
_BACKSLASH = re.compile(r"%(?:25)*5C", re.IGNORECASE)
_TWICE = re.compile(r"%25(?:25)*(?:2[EF]|5C)", re.IGNORECASE)
# UTF-8 of more bytes than it takes: %C0%AE is a dot, and %C0%AF a slash, to a careless decoder.
_OVERLONG = re.compile(r"%C[01]%(?:[89AB][0-9A-F]|2F)|%E0%[89][0-9A-F]|%F0%8[0-9A-F]|%F8%8[0-7]|%FC%8[0-3]")
# Some servers cut a segment at its semicolon, or at an encoded ? or #, before they look for dots. Some drop the dots,
# spaces and control characters that a segment ends with. Some decode twice; %(?:25)* is a percent sign encoded any
# number of times.
_EMPTY = re.compile(r"/(?:/|;|%(?:25)*3B)", re.IGNORECASE)
_DOTS = re.compile(
    r"(?:/|%(?:25)*2F)"
    r"(?:\.|%(?:25)*(?:2E|20|[01][0-9A-F]|7F)|%C[01]\.)+"
    r"(?:/|;|%(?:25)*(?:2F|3B|3F|23)|\Z)",
    re.IGNORECASE,
)
# Slashes and dots that have no compatible form, and that conversions to older character sets make plain all the same.
_LOOK_ALIKE: Final = str.maketrans(
    {
        "\u2044": "/",
        "\u2215": "/",
        "\u29f8": "/",
        "\u2216": "\\",
        "\u29f5": "\\",
        "\u29f9": "\\",
        "\u3002": ".",
        "\uff61": ".",
    }
)
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

_ADDRESS: Final = "The host is an IP address; write a name."
_ADDRESS_AND_PORT = re.compile(r"([0-9]+(?:\.[0-9]+){3}|\[[0-9A-Fa-f:.]*\])(?::(.*))?\Z", re.DOTALL)


class Misspelled(Invalid):
    """Not a valid host or path."""


def is_address(host: str) -> bool:
    """Say whether a host that was read is an IP address."""
    return host[:1] == "[" or _NUMBER.match(host.rpartition(".")[2]) is not None


def read_host(text: str, *, wild: bool = False, addresses: bool = False) -> tuple[str, int | None]:
    """The host in lower case and the port that was written with it, or Misspelled with a sentence.

    Names only: no user, no trailing dot, no address but where `addresses` may be, in their one notation. With `wild` a
    label may have `*`.
    """
    if _OUTSIDE_ASCII.search(text):
        raise Misspelled("The host has characters outside ASCII; write it in its ASCII form (xn--...).")
    if any(mark in text for mark in "/\\?#"):
        raise Misspelled("Write the host alone, without scheme, path or query.")
    if "@" in text:
        raise Misspelled("Write the host without a user.")
    found = _ADDRESS_AND_PORT.match(text) if addresses else None
    if found is None and ("[" in text or text.count(":") > 1):
        raise Misspelled(_ADDRESS)
    host, colon, port = text.lower().partition(":")
    if found is not None:
        host, colon, port = found[1], "" if found[2] is None else ":", found[2] or ""
    if colon and (not _PORT.match(port) or int(port) > MAX_PORT):
        raise Misspelled(f"The port must be a number from 1 to {MAX_PORT}.")
    if found is None:
        _check_name(host, wild)
    else:
        _check_address(host)
    return host, int(port) if colon else None


def _check_address(host: str) -> None:
    try:
        parsed = ip_address(host.strip("[]"))
    except ValueError:
        raise Misspelled("The host is no IP address.") from None
    if host != (f"[{parsed}]" if parsed.version == 6 else str(parsed)):
        raise Misspelled("Write the IP address in its one notation, such as 10.0.0.1 or [fd00::1].")


def _check_name(host: str, wild: bool) -> None:
    if len(host) > MAX_HOST:
        raise Misspelled(f"The host is longer than {MAX_HOST} characters.")
    labels = host.split(".")
    if "" in labels:
        raise Misspelled("The host has an empty label." if host.strip(".") else "The host is empty.")
    allowed = _WILD_LABEL if wild else _LABEL
    for label in labels:
        if not allowed.match(label):
            raise Misspelled(f"The host may have only letters, digits, -, _{', *' if wild else ''} and dots.")
        if len(label) > MAX_LABEL:
            raise Misspelled(f"A label of the host is longer than {MAX_LABEL} characters.")
    if _NUMBER.match(labels[-1]) or (wild and _WILD_ADDRESS.match(host)):
        raise Misspelled(_ADDRESS)
    if "**" in host:
        raise Misspelled("Write one * instead of two.")


def normal_path(path: str) -> str:
    """The one spelling in which paths are compared, or Misspelled with a sentence.

    Encoded unreserved characters are decoded, the other escapes are in upper case; nothing else changes.
    """
    if not path.startswith("/"):
        raise Misspelled("The path must start with a slash.")
    if len(path) > MAX_PATH:
        raise Misspelled(f"The path is longer than {MAX_PATH // 1024} KiB.")
    if _NOT_VISIBLE.search(path):
        raise Misspelled("The path has a control character, a space or a character outside ASCII; encode it.")
    if "\\" in path or "#" in path or "?" in path:
        raise Misspelled("The path has a backslash, a # or a ?.")
    if "%" in path:
        path = _without_needless_escapes(path)
    if _DOTS.search(path):
        raise Misspelled("The path has a dot segment.")
    return path


def _without_needless_escapes(path: str) -> str:
    if _BAD_PERCENT.search(path):
        raise Misspelled("The path has a % without two hexadecimal digits.")
    path = _ESCAPE.sub(_plain, path)
    if _CONTROL.search(path):
        raise Misspelled("The path has an encoded control character.")
    # Looked for after decoding: %25%35%63 is the same as %255c.
    if _BACKSLASH.search(path):
        raise Misspelled("The path has an encoded backslash.")
    if _OVERLONG.search(path):
        raise Misspelled("The path has a character in more bytes of UTF-8 than it takes.")
    decoded = unquote_to_bytes(path)
    if not decoded.isascii():
        # Some servers leave out bytes that are not UTF-8.
        _insist_on_one_shape(decoded.decode(errors="ignore"))
    return path


def _insist_on_one_shape(text: str) -> None:
    """Refuse letters that become a slash or a dot segment where a server brings text into its compatible form.

    Full-width dots and slashes are the best known; NFKC makes one letter of each, or several.
    """
    plain = unicodedata.normalize("NFKC", text.translate(_LOOK_ALIKE))
    if any(plain.count(slash) > text.count(slash) for slash in "/\\"):
        raise Misspelled("The path has a character that some servers read as a slash or a backslash.")
    spelled, before = quote(plain, safe="/;"), quote(text, safe="/;")
    grown = any(len(odd.findall(spelled)) > len(odd.findall(before)) for odd in (_EMPTY, _TWICE))
    # An ellipsis is three dots, which lead nowhere.
    if grown or _DOTS.search(spelled.replace("...", "_")):
        raise Misspelled("The path has characters that some servers read as a dot segment.")


def _plain(escape: re.Match[str]) -> str:
    text = escape[0]
    character = chr(int(text[1:], 16))
    return character if character in _UNRESERVED else text.upper()

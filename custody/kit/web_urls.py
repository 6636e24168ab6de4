"""Web addresses that a tenant writes down for browsers to go to, read in one way only.

A browser repairs what it gets: it drops tabs, turns backslashes, lower-cases hosts, understands addresses in many
notations. Whatever would be repaired is refused, so that the text compared here is the address gone to there.
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

import msgspec

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
MAX_URL: Final = 2048
_MAX_HOST: Final = 253
_MAX_PORT: Final = 65_535
_NOT_IN_URL = re.compile(r"[^\x21-\x7e]|[\"<>\\^`{|}]|%(?![0-9A-Fa-f]{2})")
_URL = re.compile(r"(https?)://([^/?#]*)([^?#]*)(?:\?([^#]*))?(#.*)?\Z")
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::(.*))?\Z")
_PORT = re.compile(r"[1-9][0-9]{0,4}\Z")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_NUMBER = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")


class NotWebUrl(Exception):
    """A sentence about what is wrong with an address; `quotable` unless the address carries a password."""

    def __init__(self, sentence: str, *, quotable: bool = True) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.quotable = quotable


class WebUrl(msgspec.Struct, frozen=True):
    """An absolute http or https address; `port` and `query` are None where none is written."""

    scheme: str
    host: str
    port: int | None
    path: str
    query: str | None

    @property
    def is_local(self) -> bool:
        """True if the host is this very machine by name: localhost, anything below it, 127.0.0.1, [::1]."""
        return self.host in ("localhost", "127.0.0.1", "[::1]") or self.host.endswith(".localhost")


def read_url(text: str) -> WebUrl:
    """Read an absolute address without user and fragment, https or, on this very machine, http; or NotWebUrl."""
    if len(text) > MAX_URL:
        raise NotWebUrl(f"It is longer than {MAX_URL} characters.", quotable="@" not in text)
    parts = _URL.match(text)
    authority = parts[2] if parts else ""
    # Before anything else, because every other complaint may quote the text.
    if "@" in (authority if parts else text):
        raise NotWebUrl("It has a user or password in it.", quotable=False)
    if _NOT_IN_URL.search(text):
        raise NotWebUrl("It has a character that must be encoded, such as a space or a backslash.")
    if "*" in text:
        raise NotWebUrl("Wildcards are not allowed; write each address out.")
    if parts is None:
        raise NotWebUrl("It must be an absolute address that begins with https:// in lower case.")
    if parts[5] is not None:
        raise NotWebUrl("It has a fragment (#).")
    host, port = _read_authority(authority)
    url = WebUrl(scheme=parts[1], host=host, port=port, path=parts[3], query=parts[4])
    if url.scheme == "http" and not url.is_local:
        raise NotWebUrl("It must begin with https://; http:// is only for localhost, *.localhost and loopback.")
    return url


def _read_authority(text: str) -> tuple[str, int | None]:
    parts = _AUTHORITY.match(text)
    if parts is None:
        raise NotWebUrl("The host is malformed.")
    host, port = parts[1], parts[2]
    if port is not None and (not _PORT.match(port) or int(port) > _MAX_PORT):
        raise NotWebUrl(f"The port must be a number from 1 to {_MAX_PORT}.")
    _check_host(host)
    return host, int(port) if port is not None else None


def _check_host(host: str) -> None:
    if not host:
        raise NotWebUrl("The host is missing.")
    if host != host.lower():
        raise NotWebUrl("Write the host in lower case, as browsers do.")
    labels = host.split(".")
    if host.startswith("[") or _NUMBER.match(labels[-1]):
        _check_address(host)
    elif len(host) > _MAX_HOST or not all(_LABEL.match(label) for label in labels):
        raise NotWebUrl("The host may have only letters, digits and hyphens, between dots.")


def _check_address(host: str) -> None:
    """A last label in digits makes the whole host an address to a browser: 127.1, 0x7f.1, 2130706433."""
    try:
        canonical = f"[{IPv6Address(host[1:-1])}]" if host.startswith("[") else str(IPv4Address(host))
    except AddressValueError:
        raise NotWebUrl("The host is neither an address nor a name.") from None
    if "%" in host or host != canonical:
        raise NotWebUrl("Write the IP address in its canonical short form, as browsers do.")

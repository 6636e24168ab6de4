"""Sign-in with a wallet: the message of EIP-4361, read strictly, and where and when it is good.

A Solana wallet signs the same text with its own name and address in it.

What a wallet shows to a person must be exactly what is read here, so the grammar is followed to the letter: every
line in its place, one line end, nothing after the last field. Whether the nonce is ours and whose signature it is, is
decided elsewhere.
"""

import re
from datetime import datetime, timedelta
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from custody.chains import base58
from custody.chains.evm.address import checksum
from custody.kit.errors import Invalid, Unauthenticated
from custody.kit.instants import read_instant

MAX_CHARACTERS: Final = 8 * 1024
MAX_AGE: Final = timedelta(minutes=10)
SKEW: Final = timedelta(seconds=30)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LOOPBACK: Final = ("localhost", "127.0.0.1")

_ESCAPED = r"%[0-9A-Fa-f]{2}"
_NAME = r"[A-Za-z0-9\-._~!$&'()*+,;=]"
_AUTHORITY = rf"(?:(?:{_NAME}|{_ESCAPED}|:)*@)?(?:\[[0-9A-Fa-f:.]+\]|(?:{_NAME}|{_ESCAPED})+)(?::[0-9]*)?"
_PCHAR = rf"(?:{_NAME}|{_ESCAPED}|[:@])"
_REST = rf"(?:{_PCHAR}|/)*(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_URI = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*:(?://{_AUTHORITY}(?=[/?#]|\Z)|(?!//)){_REST}\Z")
_OPENING = re.compile(
    rf"(?:([A-Za-z][A-Za-z0-9+.\-]*)://)?({_AUTHORITY}) wants you to sign in with your (Ethereum|Solana) account:\Z"
)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}\Z")
_SOLANA_ADDRESS = re.compile(r"[1-9A-HJ-NP-Za-km-z]{32,44}\Z")
_PUBLIC_KEY_BYTES: Final = 32
_EMPTY = re.compile(r"\Z")
# RFC 3986's reserved and unreserved characters, and the space: visible ASCII without "%<>\^`{|}.
_STATEMENT = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;= ]*\Z")
_VERSION = re.compile(r"1\Z")
_CHAIN = re.compile(r"[1-9][0-9]{0,15}\Z")
_NONCE = re.compile(r"[A-Za-z0-9]{8,64}\Z")
_REQUEST_ID = re.compile(rf"{_PCHAR}*\Z")
_TIME = re.compile(r"[0-9TZ:.+\-]{20,40}\Z")
_WEB = re.compile(r"https?://([^/?#]*)", re.IGNORECASE)


class SiweMalformed(Invalid):
    """Not a valid EIP-4361 sign-in message."""


class SiweDomainMismatch(Unauthenticated):
    """The sign-in message was issued for another site."""


class SiweNotValidNow(Unauthenticated):
    """The sign-in message is not valid at this time."""


class SiweMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A sign-in message in its fields; an EVM address is in EIP-55, all times are in UTC."""

    domain: str
    scheme: str | None = None
    family: Literal["evm", "solana"] = "evm"
    address: str
    statement: str | None = None
    uri: str
    version: str
    chain_id: int
    nonce: str
    issued_at: datetime
    expiration_time: datetime | None = None
    not_before: datetime | None = None
    request_id: str | None = None
    resources: tuple[str, ...] = ()


class _Lines:
    """The lines of a message, taken one after the other; what stands wrong is SiweMalformed naming the line."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._at = 0

    @property
    def ended(self) -> bool:
        return self._at == len(self._lines)

    @property
    def is_empty(self) -> bool:
        return not self.ended and not self._lines[self._at]

    def starts(self, tag: str) -> bool:
        return not self.ended and self._lines[self._at].startswith(tag)

    def take(self, pattern: re.Pattern[str], expected: str, tag: str = "") -> re.Match[str]:
        if self.ended:
            raise SiweMalformed(f"Line {self._at + 1} is missing; expected {expected}.")
        line = self._lines[self._at]
        self._at += 1
        found = pattern.match(line, len(tag)) if line.startswith(tag) else None
        if found is None:
            raise self.wrong(expected)
        return found

    def field(self, tag: str, pattern: re.Pattern[str], expected: str) -> str:
        return self.take(pattern, f'"{tag}" and {expected}', tag)[0]

    def moment(self, tag: str) -> datetime:
        moment = read_instant(self.field(tag, _TIME, "a date and time with a zone"))
        if moment is None:
            raise self.wrong("an existing date and time")
        return moment

    def end(self) -> None:
        if not self.ended:
            self._at += 1
            raise self.wrong("the end of the message, or an optional field in its order")

    def wrong(self, expected: str) -> SiweMalformed:
        """The complaint about the line taken last."""
        return SiweMalformed(f"Line {self._at} of the sign-in message is wrong; expected {expected}.")


def parse(text: str) -> SiweMessage:
    """Read a message of at most 8 KiB, or raise SiweMalformed with a sentence that names the line."""
    if len(text) > MAX_CHARACTERS:
        raise SiweMalformed(f"The sign-in message is longer than {MAX_CHARACTERS} characters.")
    lines = _Lines(text)
    # Arguments are evaluated in the order in which they stand, which is the order of the fields.
    opening = lines.take(_OPENING, 'the site and " wants you to sign in with your Ethereum account:"')
    solana = opening[3] == "Solana"
    message = SiweMessage(
        scheme=opening[1],
        domain=opening[2],
        family="solana" if solana else "evm",
        address=_solana_address(lines) if solana else _address(lines),
        statement=_statement(lines),
        uri=lines.field("URI: ", _URI, "a URI"),
        version=lines.field("Version: ", _VERSION, "1"),
        chain_id=int(lines.field("Chain ID: ", _CHAIN, "a number")),
        nonce=lines.field("Nonce: ", _NONCE, "8 to 64 letters and digits"),
        issued_at=lines.moment("Issued At: "),
        expiration_time=lines.moment("Expiration Time: ") if lines.starts("Expiration Time: ") else None,
        not_before=lines.moment("Not Before: ") if lines.starts("Not Before: ") else None,
        request_id=lines.field("Request ID: ", _REQUEST_ID, "an id") if lines.starts("Request ID: ") else None,
        resources=_resources(lines) if lines.starts("Resources:") else (),
    )
    lines.end()
    return message


def check(message: SiweMessage, *, domains: frozenset[str], now: datetime) -> None:
    """Raise SiweDomainMismatch unless it is for one of our `host[:port]`, SiweNotValidNow unless it is good now.

    The domain is what the wallet compared with the page it was asked by; the URI is what the session is for. A
    message for another site that a person was lured to sign must not open a session here, so both must be ours.
    """
    uri = _WEB.match(message.uri)
    if message.domain.lower() not in domains or uri is None or uri[1].lower() not in domains:
        raise SiweDomainMismatch
    if message.scheme is not None and message.scheme.lower() not in _DEFAULT_PORTS:
        raise SiweDomainMismatch
    check_times(message, now=now)


def page_of(message: SiweMessage) -> str:
    """The origin of the page that asked for the message, letter for letter; SiweDomainMismatch unless it says one."""
    uri = _WEB.match(message.uri)
    if uri is None or uri[1] != message.domain:
        raise SiweDomainMismatch
    if message.scheme is not None and not uri[0].startswith(f"{message.scheme}://"):
        raise SiweDomainMismatch
    return uri[0]


def check_times(message: SiweMessage, *, now: datetime) -> None:
    """Raise SiweNotValidNow unless the message is good now."""
    if message.issued_at > now + SKEW:
        raise SiweNotValidNow("The sign-in message was issued in the future; check the clock.")
    if message.issued_at < now - MAX_AGE:
        raise SiweNotValidNow("The sign-in message is older than 10 minutes; sign a new one.")
    if message.expiration_time is not None and message.expiration_time <= now:
        raise SiweNotValidNow("The sign-in message has expired; sign a new one.")
    if message.not_before is not None and message.not_before > now + SKEW:
        raise SiweNotValidNow("The sign-in message is not valid yet.")


def domains_of(public_url: str) -> frozenset[str]:
    """Each `host[:port]`, in lower case, by which browsers may name the site at this address.

    On a scheme's default port both spellings count; on loopback so do `localhost` and `127.0.0.1` with that port.
    """
    parts = urlsplit(public_url)
    default = _DEFAULT_PORTS.get(parts.scheme)
    if not parts.hostname or default is None:
        raise ValueError("the public URL must be an http or https address")
    port = parts.port or default
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    hosts = {host, *_LOOPBACK} if host in (*_LOOPBACK, "[::1]") else {host}
    written = {f"{name}:{port}" for name in hosts}
    return frozenset(written | hosts if port == default else written)


def _address(lines: _Lines) -> str:
    written = lines.take(_ADDRESS, "an address: 0x and 40 hexadecimal digits")[0]
    address = checksum(written)
    # EIP-4361 says that it should have the checksum. Many wallets write lower case, in which no checksum can be wrong.
    if written not in (address, address.lower()):
        raise lines.wrong("the address in its EIP-55 checksum spelling, or in lower case")
    lines.take(_EMPTY, "an empty line")
    return address


def _solana_address(lines: _Lines) -> str:
    address = lines.take(_SOLANA_ADDRESS, "an address: 32 bytes in base58")[0]
    raw = base58.decode(address)
    if raw is None or len(raw) != _PUBLIC_KEY_BYTES:
        raise lines.wrong("an address: 32 bytes in base58")
    lines.take(_EMPTY, "an empty line")
    return address


def _statement(lines: _Lines) -> str | None:
    """The statement between two empty lines; without one the two lines stand together."""
    # The grammar would allow a statement that looks like this field; nobody means it, but some could be deceived by it.
    if lines.starts("URI: "):
        lines.take(_EMPTY, "a statement or an empty line")
    statement = lines.take(_STATEMENT, "a statement of letters, digits, spaces and -._~:/?#[]@!$&'()*+,;=")[0]
    # An empty statement has its line all the same in what the siwe library prints.
    if statement or lines.is_empty:
        lines.take(_EMPTY, "an empty line after the statement")
    return statement or None


def _resources(lines: _Lines) -> tuple[str, ...]:
    lines.take(_EMPTY, '"Resources:" alone', "Resources:")
    found = []
    while not lines.ended:
        found.append(lines.field("- ", _URI, "a URI"))
    return tuple(found)

"""Mail in development: what would be mailed is taken in here, printed on the terminal, and shown on a page of loopback.

It is there where no mail server is set and this is not production, so that people can sign in by a code on a first try.
Letters are held in memory alone: no log and no file has a code. The page's address has a secret in it, because other
users of the machine reach loopback too, and pages of other sites can make a browser ask for it.
"""

import asyncio
import contextlib
import hmac
import html
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from email import message_from_bytes, policy
from functools import partial

import msgspec

from custody.kit import clock

# In the state folder: the address of the page, for this user's programs.
FILE = "mailbox.url"
KEPT = 20
_LINE_BYTES, _LETTER_BYTES, _HEADERS = 4_096, 256 * 1024, 64
_SECONDS = 30.0
_AT_ONCE = 16
_HOST = "127.0.0.1"
_CSP = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_HEAD = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    '<meta http-equiv="refresh" content="5"><title>Mail in development</title><h1>Mail in development</h1>'
    "<p>What would be mailed, the newest first. Nothing leaves this machine, and a restart forgets it.</p>"
)


class Letter(msgspec.Struct, frozen=True):
    """A letter that was taken in, in printable characters alone."""

    to: str
    subject: str
    text: str
    at: str

    def __repr__(self) -> str:
        return "Letter()"


class Mailbox:
    """A mail server and a page, both on loopback at free ports. `arrived` is told of each letter."""

    def __init__(self, arrived: Callable[[Letter], None]) -> None:
        self._arrived = arrived
        self._letters: deque[Letter] = deque(maxlen=KEPT)
        self._secret = secrets.token_urlsafe(24)  # noqa: TID251 - of an address of this machine
        self._servers: list[asyncio.Server] = []
        self._open = asyncio.Semaphore(_AT_ONCE)

    def __repr__(self) -> str:
        return "Mailbox()"

    async def start(self) -> None:
        """Take connections from now on."""
        for serve in (self._mail, self._page):
            handle = partial(self._limit, serve)
            self._servers.append(await asyncio.start_server(handle, _HOST, 0, limit=_LINE_BYTES))

    async def stop(self) -> None:
        """Forget everything."""
        for server in self._servers:
            server.close()
        self._letters.clear()

    @property
    def smtp_url(self) -> str:
        """The URL where mail is taken in."""
        return f"smtp://{_HOST}:{self._port(0)}"

    @property
    def page_url(self) -> str:
        """The URL where it is read, by those who know this address."""
        return f"http://{_HOST}:{self._port(1)}/{self._secret}"

    def _port(self, index: int) -> int:
        return int(self._servers[index].sockets[0].getsockname()[1])

    async def _limit(
        self,
        serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        # Who hangs up, is too slow or writes too much is gone.
        with contextlib.suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            async with self._open, asyncio.timeout(_SECONDS):
                await serve(reader, writer)
                await writer.drain()
        writer.close()

    async def _mail(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 custody\r\n")
        to = ""
        while line := await reader.readuntil(b"\n"):
            word, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
            word = word.upper()
            if word == "RCPT":
                to = rest.partition(":")[2].strip(" <>")
            if word == "DATA":
                writer.write(b"354 go on\r\n")
                self._take(to, await _read_letter(reader))
            if word == "QUIT":
                return writer.write(b"221 bye\r\n")
            known = word in {"EHLO", "HELO", "MAIL", "RCPT", "DATA", "RSET", "NOOP"}
            writer.write(b"250 ok\r\n" if known else b"502 not here\r\n")

    def _take(self, to: str, raw: bytes) -> None:
        mail = message_from_bytes(raw, policy=policy.default)
        body = mail.get_body(("plain",))
        text = "" if body is None else str(body.get_content()).replace("\r\n", "\n")
        at = f"{clock.now():%H:%M:%S}"
        letter = Letter(_printable(to), _printable(str(mail["Subject"])), _printable(text, "\n"), at)
        self._letters.appendleft(letter)
        self._arrived(letter)

    async def _page(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\n")).decode("latin-1").split()
        headers: dict[str, str] = {}
        while len(headers) < _HEADERS and (line := (await reader.readuntil(b"\n")).decode("latin-1").strip()):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        path = request[1] if len(request) == 3 and request[0] == "GET" else ""
        # A name that leads here for a moment would let another site's page read the answer.
        ours = headers.get("host") == f"{_HOST}:{self._port(1)}"
        if not ours or not hmac.compare_digest(path.encode(), f"/{self._secret}".encode()):
            return writer.write(_response("404 Not Found", "text/plain", "There is nothing here.\n"))
        if "text/html" in headers.get("accept", ""):
            return writer.write(_response("200 OK", "text/html", _HEAD + "".join(map(_as_html, self._letters))))
        return writer.write(_response("200 OK", "text/plain", "\n".join(map(as_text, self._letters))))


def as_text(letter: Letter) -> str:
    """A letter as the terminal shows it."""
    return f"{letter.at} mail to {letter.to}: {letter.subject}\n{letter.text.rstrip()}\n"


def _as_html(letter: Letter) -> str:
    title = html.escape(f"{letter.at} to {letter.to}: {letter.subject}")
    return f"<h2>{title}</h2><pre>{html.escape(letter.text)}</pre>"


def _response(status: str, kind: str, text: str) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        f"Content-Security-Policy: {_CSP}\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
        "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


async def _read_letter(reader: asyncio.StreamReader) -> bytes:
    """The lines of a letter up to a single dot; of two dots at a line's beginning one is ours."""
    found = bytearray()
    while (line := await reader.readuntil(b"\n")).rstrip(b"\r\n") != b".":
        found += line.removeprefix(b".") if line.startswith(b"..") else line
        if len(found) > _LETTER_BYTES:
            raise ValueError
    return bytes(found)


def _printable(text: str, kept: str = "") -> str:
    """Make safe for a terminal what anybody on this machine can send."""
    return "".join(one if one.isprintable() or one in kept else " " for one in text)

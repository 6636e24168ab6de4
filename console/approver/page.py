"""One page at a loopback origin of its own, where an approver's key is asked for one thing. Decision 0059.

The service does not serve this origin, so it cannot ask these keys. Everything else on this machine may try to reach
the page: it answers under its exact name and port only, to one ticket once, for five minutes.
"""

import asyncio
import base64
import errno
import hmac
import html
import re
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from typing import Annotated, Final

import msgspec
from aiohttp import web
from msgspec import Meta

from console.approver.matter import client_data, from_base64url
from console.wire.failures import Failure
from words.texts.lines import Heading, Line

RP_ID: Final = "approver.custody.localhost"
PAGE_SECONDS: Final = 300.0
# A page that was closed does not ask what became of its answer.
_READ_SECONDS: Final = 10.0
MAX_ANSWER_BYTES: Final = 16_384
# Of 128 bits: the address must fit on a line of a small terminal.
_TICKET_BYTES: Final = 16
_CHALLENGE_CHARACTERS: Final = 1_366
_TRIES: Final = 8
_IN_USE: Final = errno.EADDRINUSE
_PART: Final = re.compile("TASK|TITLE|BUTTON|BODY")
_FILES: Final = {"page.js": "text/javascript", "page.css": "text/css"}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Permissions-Policy": "publickey-credentials-get=(self), publickey-credentials-create=(self)",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "custody",
}


class NotAnswered(Failure):
    """Nobody answered on the page in time."""


class Task(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The script's request to the authenticator; `credentials` are the keys that may answer, or must not."""

    does: str
    challenge: str
    credentials: list[str]
    rp_id: str = RP_ID
    milliseconds: int = int(PAGE_SECONDS * 1_000)
    user: str = ""
    name: str = ""
    ticket: str = ""


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The authenticator's answer: of a vote a signature, of a new key its public half."""

    ticket: Annotated[str, Meta(max_length=64)]
    credential_id: Annotated[str, Meta(min_length=1, max_length=1_364)]
    client_data: Annotated[str, Meta(min_length=1, max_length=2_731)] = msgspec.field(name="clientDataJSON")
    authenticator_data: Annotated[str, Meta(max_length=_CHALLENGE_CHARACTERS)] = ""
    signature: Annotated[str, Meta(max_length=96)] = ""
    public_key: Annotated[str, Meta(max_length=256)] = ""


class _Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The page asks what became of its answer."""

    ticket: Annotated[str, Meta(max_length=64)]


class Told(msgspec.Struct, frozen=True):
    """The outcome of an answer, in a sentence; `done` where it is what the person wanted."""

    said: str
    done: bool


class Page:
    """The page, while it stands."""

    def __init__(
        self,
        task: Task,
        title: str,
        lines: Sequence[Line],
        button: str,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.port = 0
        self._ticket: str | None = _random()
        self._pass: str | None = None
        self._task, self._title, self._lines, self._button = task, title, lines, button
        self._now, self._ends_at = now, now() + PAGE_SECONDS
        self._answered: str | None = None
        self._answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._told: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._read = asyncio.Event()
        self.stands = asyncio.Event()
        """Set once a browser can open it."""

    @property
    def origin(self) -> str:
        """Origin of the page."""
        return f"http://{RP_ID}:{self.port}"

    @property
    def address(self) -> str:
        """Address that the person opens, once."""
        return f"{self.origin}/{self._ticket or ''}"

    async def answer(self) -> Answer:
        """Wait for the authenticator's answer; NotAnswered where nobody answers within the page's time."""
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                return await self._answer
        except TimeoutError:
            raise NotAnswered("Nobody answered on the page within five minutes. Nothing was sent.") from None

    def fail(self, failure: Failure) -> None:
        """Tell the one who waits for an answer why the page cannot be shown."""
        self.stands.set()
        if not self._answer.done():
            self._answer.set_exception(failure)

    def tell(self, said: str, *, done: bool) -> None:
        """Say on the page what became of its answer; the first word counts."""
        if not self._told.done():
            self._told.set_result(Told(said, done))

    async def over(self) -> None:
        """Wait until nobody needs the page any more: what became of it was read there, or nobody asks for it."""
        told = await self._told
        if self._answered is not None and told.said:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._read.wait(), _READ_SECONDS)

    def application(self) -> web.Application:
        """Make the application that serves the page, with every refusal before anything is read."""
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_ANSWER_BYTES)
        app.on_response_prepare.append(_with_headers)
        app.add_routes(
            [
                web.get("/{ticket}", self._show, allow_head=False),
                web.post("/answer", self._take),
                web.post("/outcome", self._tell),
            ]
        )
        return app

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        # Another name for this address is somebody else's page whose name was turned to us.
        if request.headers.getall("Host", []) != [f"{RP_ID}:{self.port}"]:
            raise web.HTTPForbidden(text="This page has another name.")
        if self._now() >= self._ends_at:
            raise web.HTTPForbidden(text="The time of this page is up. Begin again in the console.")
        return await handler(request)

    async def _show(self, request: web.Request) -> web.StreamResponse:
        """The page for the ticket, once; its script and its looks hold nothing secret."""
        wanted = request.match_info["ticket"]
        if wanted in _FILES:
            return web.Response(text=_read(wanted), content_type=_FILES[wanted])
        # A browser that only looks ahead must not use it up.
        if "Sec-Purpose" in request.headers or not _equal(wanted, self._ticket):
            raise web.HTTPForbidden(text="This address works once. Begin again in the console.")
        self._ticket = None
        self._pass = _random()
        return web.Response(text=self._render(self._pass), content_type="text/html")

    async def _take(self, request: web.Request) -> web.StreamResponse:
        """The authenticator's answer, once."""
        answer = await self._body(request, Answer)
        if self._answer.done() or not _equal(answer.ticket, self._pass):
            raise web.HTTPForbidden(text="This page was answered already, or is not the one that was asked.")
        if not self._is_ours(answer):
            raise web.HTTPBadRequest(text="The answer is to another question.")
        self._answered, self._pass = self._pass, None
        self._answer.set_result(answer)
        return web.Response(status=204)

    async def _tell(self, request: web.Request) -> web.StreamResponse:
        """Tell the page that gave the answer what became of it, as soon as the console knows."""
        question = await self._body(request, _Question)
        if not _equal(question.ticket, self._answered):
            raise web.HTTPForbidden(text="This page gave no answer.")
        told = await asyncio.shield(self._told)
        self._read.set()
        return web.Response(body=msgspec.json.encode(told), content_type="application/json")

    async def _body[Body](self, request: web.Request, shape: type[Body]) -> Body:
        """Read what our own page sent, and no other."""
        if request.headers.getall("Origin", []) != [self.origin]:
            raise web.HTTPForbidden(text="Another page sent this.")
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="Send JSON.")
        try:
            return msgspec.json.decode(await request.read(), type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise web.HTTPBadRequest(text="The answer cannot be read.") from None

    def _is_ours(self, answer: Answer) -> bool:
        """Check that by the browser's word the key answered this page's question, asked by this page."""
        try:
            said = client_data(from_base64url(answer.client_data))
        except (ValueError, RecursionError):
            return False
        kind = "webauthn.get" if self._task.does == "vote" else "webauthn.create"
        asked = (said.get("type"), said.get("challenge"), said.get("origin"))
        return asked == (kind, self._task.challenge, self.origin) and said.get("crossOrigin", False) is False

    def _render(self, ticket: str) -> str:
        task = msgspec.json.encode(msgspec.structs.replace(self._task, ticket=ticket)).decode()
        parts = {name: html.escape(text) for name, text in (("TASK", task), ("TITLE", self._title))}
        parts["BUTTON"] = html.escape(self._button)
        parts["BODY"] = "\n".join(_line_html(one) for one in self._lines)
        # In one go: no text of others is looked through for the names of parts.
        return _PART.sub(lambda found: parts[found[0]], _read("page.html"))


@asynccontextmanager
async def serve(page: Page) -> AsyncIterator[Page]:
    """Serve the page on this machine alone, at a port that nobody chose, until it is answered or left."""
    listeners = _listeners()
    page.port = listeners[0].getsockname()[1]
    # No access log: the ticket would stand in it.
    runner = web.AppRunner(page.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        for listener in listeners:
            await web.SockSite(runner, listener).start()
        page.stands.set()
        yield page
    finally:
        await runner.cleanup()
        for listener in listeners:
            listener.close()


def _listeners() -> list[socket.socket]:
    """Both loopback addresses at one port: a browser may try either, and nobody else may answer at the other."""
    for _ in range(_TRIES):
        first = socket.create_server(("127.0.0.1", 0))
        try:
            return [first, socket.create_server(("::1", first.getsockname()[1]), family=socket.AF_INET6)]
        except OSError as problem:
            if problem.errno != _IN_USE:
                # A machine without IPv6.
                return [first]
            first.close()
    raise Failure("No port of this machine is free on both of its loopback addresses. Try again.")


async def _with_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


def _line_html(line: Line) -> str:
    text = html.escape(line.text)
    return f"<h3>{text}</h3>" if isinstance(line, Heading) else f'<p class="line {line.tone or ""}">{text}</p>'


def _read(name: str) -> str:
    return files("console.approver").joinpath(name).read_text()


def _equal(shown: str, wanted: str | None) -> bool:
    return wanted is not None and hmac.compare_digest(shown.encode(errors="replace"), wanted.encode())


def _random() -> str:
    """Letters and digits alone: it may be copied by hand."""
    raw = secrets.token_bytes(_TICKET_BYTES)  # noqa: TID251 - the console imports nothing of Custody
    return base64.b32encode(raw).decode().rstrip("=").lower()

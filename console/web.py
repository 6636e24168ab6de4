"""The console in a browser of this machine. Decision 0035.

Who reaches this port acts as the person whose console it is, and every page that is open in the same browser may try.
So nothing is answered without a cookie that one address, shown once in the terminal, is exchanged for; only under the
name that we listen to; and the page may load, open and frame nothing from elsewhere.
"""

import asyncio
import hmac
import secrets
import shlex
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal

from aiohttp import WSCloseCode, web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from console.entry.settings import BadSetting, parser

HOST: Final = "127.0.0.1"
COOKIE: Final = "custody-console"
# Each is a process; a reloaded page starts before the old one has ended.
MOST_VISITORS: Final = 4
_END_SECONDS: Final = 3.0
_MOST_COLUMNS: Final = 1_000
# What reading a message of the page's may come to, where it is none of textual-serve's.
_MALFORMED: Final = (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Custody</title>
<link rel="stylesheet" href="static/css/xterm.css">
<style>
@font-face { font-family: "Roboto Mono"; src: url("static/fonts/RobotoMono-VariableFont_wght.ttf"); }
html, body { margin: 0; height: 100%; background: #12161c; color: #d6dbe3; font-family: "Roboto Mono", monospace; }
#terminal { height: 100vh; }
.word { position: absolute; top: 40%; width: 100%; text-align: center; z-index: 9; pointer-events: none; }
.-first-byte .begun, .ended { display: none; }
.-closed .begun { display: none; }
.-closed .ended { display: block; pointer-events: auto; background: #12161c; padding: 2em 0; }
a { color: #8fb8de; }
</style>
<script src="static/js/textual.js"></script>
<script src="focus.js"></script>
</head>
<body>
<p class="word begun">Connecting</p>
<p class="word ended">This console has ended. <a href="">Open it again</a></p>
<div id="terminal" class="textual-terminal" data-session-websocket-url="SOCKET" data-font-size="16"></div>
</body>
</html>
"""
# Keys go to the terminal without a click, once there is a console, and whenever one comes back to the page.
_FOCUS = """const focus = () =>
  document.body.matches(".-loaded:not(.-closed)") && document.querySelector(".xterm-helper-textarea").focus();
addEventListener("focus", focus);
addEventListener("load", () => new MutationObserver(focus).observe(document.body, {attributes: true}));
"""


class Visitor(AppService):
    """One console, as a process, for one page. Of what it sends, only its screen and its end go to the browser."""

    def _build_environment(self, width: int = 80, height: int = 24) -> dict[str, str]:
        return super()._build_environment(width, height) | {"TEXTUAL_DRIVER": "console.browser_driver:BrowserDriver"}

    async def on_meta(self, data: bytes) -> None:
        """Addresses to open and files to take do not pass."""
        if b'"exit"' in data:
            await self.remote_close()

    async def on_packed(self, payload: bytes) -> None:
        """Nor do pieces of files."""

    async def run(self) -> None:
        """Also a console that could not start ends its page."""
        await super().run()
        await self.remote_close()

    async def set_terminal_size(self, width: int, height: int) -> None:
        """The page's size, as far as there are such screens: a console draws all of it."""
        await super().set_terminal_size(_within(width), _within(height))

    async def stop(self) -> None:
        """End it, kindly at first."""
        if (process := self._process) is None:
            return
        try:
            await asyncio.wait_for(super().stop(), _END_SECONDS)
        except Exception:  # noqa: S110 - whatever went wrong with its goodbye, what follows ends it
            pass
        finally:
            if process.returncode is None:
                process.kill()
            self.stdin.close()
            await process.wait()


class Site(Server):
    """textual-serve, closed to everybody but who has the ticket."""

    def __init__(self, command: str, port: int) -> None:
        super().__init__(command, host=HOST, port=port, title="Custody")
        self.ticket: str | None = _random()
        self._pass = _random()
        # Cookies know no ports: what else listens on this address would be sent ours, were it not for a path that
        # nobody else knows.
        self._place = f"/{_random()}"
        self._visitors: dict[web.WebSocketResponse, Visitor] = {}

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.on_response_prepare.append(self._with_headers)
        app.on_shutdown.append(self.on_shutdown)
        app.add_routes(
            [
                web.get("/", self._enter, allow_head=False),
                web.get(f"{self._place}/", self._page, allow_head=False),
                web.get(f"{self._place}/focus.js", self._focus, allow_head=False),
                web.get(f"{self._place}/ws", self.handle_websocket, allow_head=False),
                web.static(f"{self._place}/static", self.statics_path),
            ]
        )
        return app

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        # Another name for this address is somebody else's page whose name was turned to us.
        if request.headers.getall("Host", []) != [f"{HOST}:{self.port}"]:
            raise web.HTTPForbidden
        if request.path != "/" and not _equal(request.cookies.get(COOKIE), self._pass):
            raise web.HTTPForbidden
        return await handler(request)

    async def _with_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(
            {
                # `sandbox` without popups, modals and downloads: nothing written on the screen leads out of it.
                "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
                f"font-src 'self'; connect-src ws://{HOST}:{self.port}; base-uri 'none'; form-action 'none'; "
                "frame-ancestors 'none'; sandbox allow-scripts allow-same-origin",
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
                "X-Frame-Options": "DENY",
                "Referrer-Policy": "no-referrer",
                "Cross-Origin-Opener-Policy": "same-origin",
                "Cross-Origin-Resource-Policy": "same-origin",
                "Server": "custody",
            }
        )

    async def _enter(self, request: web.Request) -> web.StreamResponse:
        """The ticket for the cookie, once."""
        # A browser that only looks ahead must not use it up.
        if "Sec-Purpose" in request.headers or not _equal(request.query.get("ticket"), self.ticket):
            raise web.HTTPForbidden
        self.ticket = None
        answer = web.Response(status=303, headers={"Location": f"{self._place}/"})
        answer.set_cookie(COOKIE, self._pass, path=f"{self._place}/", httponly=True, samesite="Strict")
        return answer

    async def _page(self, request: web.Request) -> web.StreamResponse:
        page = _PAGE.replace("SOCKET", f"ws://{HOST}:{self.port}{self._place}/ws")
        return web.Response(text=page, content_type="text/html")

    async def _focus(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=_FOCUS, content_type="text/javascript")

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Run a console for a page, as long as the page is there."""
        # Browsers send cookies with a WebSocket that somebody else's page opens; who opens it they say here.
        if request.headers.getall("Origin", []) != [f"http://{HOST}:{self.port}"]:
            raise web.HTTPForbidden
        if len(self._visitors) >= MOST_VISITORS:
            raise web.HTTPServiceUnavailable
        wire = web.WebSocketResponse(heartbeat=15)
        visitor = self._visitors[wire] = Visitor(
            self.command,
            write_bytes=wire.send_bytes,
            write_str=wire.send_str,
            close=_closing(wire),
            download_manager=self.download_manager,
        )
        try:
            await wire.prepare(request)
            await visitor.start(_columns(request, "width", 80), _columns(request, "height", 24))
            await self._process_messages(wire, visitor)
        except _MALFORMED:
            await wire.close(code=WSCloseCode.INVALID_TEXT)
        finally:
            await visitor.stop()
            del self._visitors[wire]
        return wire

    async def on_shutdown(self, app: web.Application) -> None:
        """End every page, and its console with it."""
        await asyncio.gather(*(wire.close(code=WSCloseCode.GOING_AWAY) for wire in list(self._visitors)))


def serve(arguments: Sequence[str], port: int) -> int:
    """Show the console to one browser of this machine until Ctrl-C."""
    try:
        listener = socket.create_server((HOST, port))
    except (OSError, OverflowError) as problem:
        raise BadSetting(f"port {port} of {HOST} cannot be used: {problem}; choose another with --port") from None
    site = Site(command(arguments), listener.getsockname()[1])
    print(
        f"The console is at\n  {site.public_url}/?ticket={site.ticket}\n"
        "The address works once, and gives your access to anyone on this machine who opens it. Ctrl-C ends it.",
        flush=True,
    )
    # No access log: the ticket would stand in it.
    web.run_app(site._make_app(), sock=listener, print=None, access_log=None, shutdown_timeout=2 * _END_SECONDS)
    return 0


def command(arguments: Sequence[str]) -> str:
    """The shell's line for one console: ours, without what makes it a site. No credential is ever among the words."""
    words = []
    for name, value in vars(parser().parse_args(arguments)).items():
        option = f"--{name.replace('_', '-')}"
        if name not in ("web", "port") and value not in (None, False):
            words.append(option if value is True else f"{option}={value}")
    return "exec " + shlex.join([sys.executable, "-P", "-m", "console", *words])


def _closing(wire: web.WebSocketResponse) -> Callable[[], Awaitable[Any]]:
    async def close() -> None:
        if wire.prepared and not wire.closed:
            await wire.close()

    return close


def _columns(request: web.Request, name: Literal["width", "height"], default: int) -> int:
    return _within(to_int(request.query.get(name, ""), default))


def _within(columns: int) -> int:
    return min(max(int(columns), 1), _MOST_COLUMNS)


def _equal(shown: str | None, wanted: str | None) -> bool:
    if shown is None or wanted is None:
        return False
    return hmac.compare_digest(shown.encode(errors="replace"), wanted.encode())


def _random() -> str:
    return secrets.token_urlsafe(32)  # noqa: TID251 - the console imports nothing of Custody

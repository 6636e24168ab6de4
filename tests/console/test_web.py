"""The console in a browser: who gets in, from where, and what its page may load and open. Decision 0035."""

import asyncio
import json
import re
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as dial
from websockets.exceptions import InvalidStatus

from console.web import COOKIE, MOST_VISITORS, Site, command
from tests.fixtures.server import free_ports

# Stands in for the console: ends with the first byte it is sent.
QUIET = "exec head -c 1"
# Asks for everything that a console may ask of its page, then draws a word.
EAGER = f"""exec {sys.executable} -S -c {
    shlex.quote('''
import os, json, sys
def send(kind, body): os.write(1, kind + len(body).to_bytes(4, "big") + body)
os.write(1, b"__GANGLION__\\n")
send(b"M", json.dumps({"type": "open_url", "url": "https://evil.example", "new_tab": True}).encode())
send(b"M", json.dumps({"type": "deliver_file_start", "key": "k", "path": "/x", "open_method": "browser",
                       "mime_type": "text/html", "encoding": "", "name": None}).encode())
send(b"D", b"drawn")
sys.stdin.read(1)
''')
}"""

# Draws what it is told of the page's size; does not end when it is asked to.
STUBBORN = f"""exec {sys.executable} -S -c {
    shlex.quote('''
import os, sys
def packet():
    head = sys.stdin.buffer.read(5)
    return sys.stdin.buffer.read(int.from_bytes(head[1:], "big")) if head else b""
os.write(1, b"__GANGLION__\\n")
while True:
    said = packet()
    if b"resize" in said:
        os.write(1, b"D" + len(said).to_bytes(4, "big") + said)
''')
}"""


class Place:
    """A site that is up, and a browser that may be let in."""

    def __init__(self, site: Site, browser: httpx.AsyncClient) -> None:
        self.site, self.browser = site, browser
        self.ticket, self.path, self.cookie = site.ticket or "", "", ""

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.site.port}"

    async def enter(self) -> httpx.Response:
        """Trade the ticket for the cookie, as a browser does."""
        answer = await self.browser.get("/", params={"ticket": self.ticket})
        self.path = answer.headers["Location"]
        self.cookie = f"{COOKIE}={answer.cookies[COOKIE]}"
        return answer

    async def status(self, path: str, **headers: str) -> int:
        """Return the status of a path below the place, asked with exactly these headers."""
        self.browser.cookies.clear()
        return (await self.browser.get(self.path + path, headers=headers)).status_code

    def dial(self, **headers: str) -> dial:
        """A WebSocket with these headers; without any, the one that our own page opens."""
        given = headers or {"Cookie": self.cookie, "Origin": self.origin}
        return dial(f"ws://127.0.0.1:{self.site.port}{self.path}ws", additional_headers=given, proxy=None)


@asynccontextmanager
async def at(line: str = QUIET) -> AsyncIterator[Place]:
    """A site whose consoles are this shell line."""
    (port,) = free_ports(1)
    site = Site(line, port)
    async with (
        _running(await site._make_app(), port),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as browser,
    ):
        yield Place(site, browser)


@asynccontextmanager
async def _running(app: web.Application, port: int) -> AsyncIterator[None]:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=5)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield
    finally:
        await runner.cleanup()


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """A site, and a browser that was let in."""
    async with at() as found:
        await found.enter()
        yield found


async def refusal_status(place: Place, **headers: str) -> int:
    """The status with which a WebSocket is refused; 101 if it is not."""
    try:
        async with place.dial(**headers):
            return 101
    except InvalidStatus as answer:
        return answer.response.status_code


async def test_the_ticket_is_traded_for_a_cookie_and_gone_from_the_address() -> None:
    async with at() as place:
        answer = await place.enter()

    assert answer.status_code == 303
    assert len(place.ticket) >= 43
    assert place.ticket not in answer.headers["Location"]
    cookie = answer.headers["Set-Cookie"]
    assert place.ticket not in cookie
    assert cookie.endswith(f"; HttpOnly; Path={place.path}; SameSite=Strict")


async def test_the_ticket_works_once(place: Place) -> None:
    again = await place.browser.get("/", params={"ticket": place.ticket})

    assert (again.status_code, "Set-Cookie" in again.headers) == (403, False)


@pytest.mark.parametrize("query", ["", "?ticket=", "?ticket=guess", "?ticket=%C3%A9%00", "?token=x"])
async def test_a_guess_gets_nothing_and_uses_nothing_up(query: str) -> None:
    async with at() as place:
        guess = await place.browser.get(f"/{query}")
        entered = await place.enter()

    assert (guess.status_code, "Set-Cookie" in guess.headers, entered.status_code) == (403, False, 303)


async def test_a_browser_that_looks_ahead_does_not_use_the_ticket_up() -> None:
    async with at() as place:
        ahead = await place.browser.get("/", params={"ticket": place.ticket}, headers={"Sec-Purpose": "prefetch"})
        entered = await place.enter()

    assert (ahead.status_code, entered.status_code) == (403, 303)


@pytest.mark.parametrize("path", ["", "static/js/textual.js", "static/css/xterm.css"])
async def test_nothing_is_served_without_the_cookie(place: Place, path: str) -> None:
    without = await place.status(path)
    wrong = await place.status(path, Cookie=f"{COOKIE}={place.ticket}")
    right = await place.status(path, Cookie=place.cookie)

    assert (without, wrong, right) == (403, 403, 200)


async def test_no_console_is_started_without_the_cookie(place: Place) -> None:
    without = await refusal_status(place, Origin=place.origin)
    wrong = await refusal_status(place, Origin=place.origin, Cookie=f"{COOKIE}=x")

    assert (without, wrong, await refusal_status(place)) == (403, 403, 101)


@pytest.mark.parametrize("host", ["localhost:{0}", "evil.example:{0}", "127.0.0.1", "127.0.0.1:1", "127.0.0.2:{0}"])
async def test_under_another_name_nobody_is_here(place: Place, host: str) -> None:
    other = await place.status("", Cookie=place.cookie, Host=host.format(place.site.port))
    ours = await place.status("", Cookie=place.cookie, Host=f"127.0.0.1:{place.site.port}")

    assert (other, ours) == (403, 200)


async def test_under_another_name_the_ticket_is_not_taken_either() -> None:
    async with at() as place:
        wrong = await place.browser.get("/", params={"ticket": place.ticket}, headers={"Host": "evil.example"})
        entered = await place.enter()

    assert (wrong.status_code, entered.status_code) == (403, 303)


@pytest.mark.parametrize(
    "origin", ["", "null", "https://evil.example", "http://localhost:{0}", "https://127.0.0.1:{0}"]
)
async def test_somebody_elses_page_starts_no_console(place: Place, origin: str) -> None:
    given = {"Origin": origin.format(place.site.port)} if origin else {}

    assert await refusal_status(place, Cookie=place.cookie, **given) == 403
    assert await refusal_status(place, Cookie=place.cookie, Origin=place.origin) == 101


@pytest.mark.parametrize("path", ["", "static/js/textual.js", "nothing-here"])
async def test_every_answer_keeps_to_itself(place: Place, path: str) -> None:
    place.browser.cookies.clear()
    answers = [await place.browser.get(place.path + path, headers={"Cookie": cookie}) for cookie in (place.cookie, "")]

    for headers in (answer.headers for answer in answers):
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert policy["connect-src"] == f"ws://127.0.0.1:{place.site.port}"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["sandbox"] == "allow-scripts allow-same-origin"
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


async def test_the_page_loads_only_what_is_here(place: Place) -> None:
    page = (await place.browser.get(place.path, headers={"Cookie": place.cookie})).text

    found = re.findall(r'(?:href=|src=|[ ]url\()"([^"]+)"', page)
    font = "static/fonts/RobotoMono-VariableFont_wght.ttf"
    assert found == ["static/css/xterm.css", font, "static/js/textual.js", "focus.js"]
    assert [await place.status(path, Cookie=place.cookie) for path in found] == [200, 200, 200, 200]
    assert re.findall(r"\w+://[^/\"]+", page) == [f"ws://127.0.0.1:{place.site.port}"]


@pytest.mark.parametrize("path", ["static/", "download/k", "index.html"])
async def test_there_is_nothing_else(place: Place, path: str) -> None:
    assert await place.status(path, Cookie=place.cookie) in {403, 404}


async def test_only_so_many_at_once(place: Place) -> None:
    wires: list[ClientConnection] = [await place.dial() for _ in range(MOST_VISITORS)]

    one_more = await refusal_status(place)
    await wires.pop().close()
    # Its process takes a moment to end.
    async with asyncio.timeout(60):
        while await refusal_status(place) != 101:
            pass

    for wire in wires:
        await wire.close()
    assert one_more == 503


async def test_a_console_opens_no_page_and_hands_out_no_file() -> None:
    async with at(EAGER) as place:
        await place.enter()
        async with place.dial() as wire:
            ours = await wire.recv()

    assert ours == b"drawn"
    # The control: without us both would have reached the page.
    assert await said_without_us() == ["open_url", "deliver_file_start"]


async def said_without_us() -> list[str]:
    """Return what textual-serve, as it comes, tells the page of an eager console before it draws."""
    told: list[str] = []
    drawn = asyncio.Event()

    async def tell(text: str) -> None:
        told.append(json.loads(text)[0])

    async def draw(screen: bytes) -> None:
        drawn.set()

    async def close() -> None:
        """There is no page to close."""

    stock = AppService(EAGER, write_bytes=draw, write_str=tell, close=close, download_manager=DownloadManager())
    await stock.start(80, 24)
    await drawn.wait()
    await stock.stop()
    assert stock._process is not None
    stock.stdin.close()
    await stock._process.wait()
    await stock.stdin.wait_closed()
    return told


@pytest.mark.long
async def test_no_page_is_larger_than_screens_are() -> None:
    async with at(STUBBORN) as place:
        await place.enter()
        async with place.dial() as wire:
            await wire.send(json.dumps(["resize", {"width": 10**9, "height": -5}]))

            told = json.loads(await wire.recv())

    assert (told["width"], told["height"]) == (1000, 1)


@pytest.mark.long
async def test_a_console_that_does_not_end_when_asked_is_ended() -> None:
    async with at(STUBBORN) as place:
        await place.enter()
        async with place.dial():
            (visitor,) = place.site._visitors.values()
        async with asyncio.timeout(60):
            while place.site._visitors:
                await asyncio.sleep(0)

    assert visitor._process is not None
    assert visitor._process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    "said",
    ["{}", "[]", "no JSON", '["stdin", 5]', '["resize", {}]', '["resize", {"width": "x", "height": 1}]', "[" * 100_000],
)
async def test_a_malformed_message_ends_that_page_alone(place: Place, said: str) -> None:
    async with place.dial() as wire:
        await wire.send(said)
        await wire.wait_closed()

    assert await refusal_status(place) == 101


def test_a_console_is_told_who_it_is_for_and_nothing_is_read_by_the_shell() -> None:
    odd = "a b'; touch /tmp/x; $(id)"

    line = command(["--web", "--port", "8", "--profile", odd, "--read-only", "--theme=light", "--url", "https://a.b"])

    ours = [sys.executable, "-P", "-m", "console", f"--profile={odd}", "--url=https://a.b"]
    assert shlex.split(line) == ["exec", *ours, "--read-only", "--theme=light"]

"""`custody console --web` as people start it: its processes, and the queue in a real browser. Decision 0035."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page
from websockets.sync.client import connect

from console.web import COOKIE
from tests.fixtures.callers import ADDRESS, Tenant
from tests.fixtures.eventually import eventually
from tests.fixtures.server import STOP_SECONDS, Service
from tests.outside.browser import browser_page
from tests.outside.proc import children, is_over, words_of
from tests.outside.processes import PROJECT, die_with
from tests.outside.terminal import PATIENCE_SECONDS

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
THRESHOLD = {"type": "auto-approve-threshold", "enabled": True, "config": {"threshold": "0"}}
# What a terminal is sent that is not text: colours, places, modes.
CONTROLS = re.compile(r"\x1b(?:\[[0-9;?<>=$]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")


class Site:
    """A site that runs as a process, and the address that it printed."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process, self.address = process, address
        self.origin = address.split("/?", maxsplit=1)[0]

    def enter(self) -> tuple[str, dict[str, str]]:
        """Use the ticket: the address of the WebSocket, and the headers that it wants."""
        entered = httpx.get(self.address, trust_env=False, timeout=PATIENCE_SECONDS)
        where = f"{self.origin}{entered.headers['Location']}ws?width=120&height=40"
        headers = {"Cookie": f"{COOKIE}={entered.cookies[COOKIE]}", "Origin": self.origin}
        return where.replace("http:", "ws:"), headers

    def consoles(self) -> list[int]:
        """The pids of the consoles that run for it."""
        return list(children(self.process.pid))


@contextmanager
def serve(service: Service, tenant: Tenant, folder: Path, *more: str) -> Iterator[Site]:
    """`custody console --web` with the tenant's key in a file."""
    folder.mkdir()
    key_file = folder / "key"
    key_file.touch(0o600)
    key_file.write_text(tenant.key)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "SERVICE_URL": service.url,
        "SERVICE_KEY_FILE": str(key_file),
    }
    process = subprocess.Popen(
        [PROJECT / ".venv/bin/custody", "console", "--web", *more],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=die_with(os.getpid()),  # noqa: PLW1509
    )
    try:
        yield Site(process, _address(process))
    finally:
        process.kill()
        process.communicate()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = ""
    while not (found := re.search(r"http://127\.0\.0\.1:\d+/\?ticket=\S+", said)):
        line = process.stdout.readline()
        assert line, said
        said += line
    return found[0]


@ON_LINUX
def test_a_console_is_a_process_with_no_key_among_its_words_that_ends_with_its_page(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    with serve(service, tenant, folder) as site:
        where, headers = site.enter()
        with connect(where, additional_headers=headers, proxy=None) as wire:
            drawn = ""
            while "with the tenant key" not in drawn:
                drawn += wire.recv(timeout=PATIENCE_SECONDS).decode()
            (pid,) = site.consoles()
            words = words_of(pid)
        eventually(lambda: is_over(pid))

    assert words[1:] == ["-P", "-m", "console"]


@ON_LINUX
@pytest.mark.long
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_consoles_end_with_the_site(service: Service, tenant: Tenant, folder: Path, end: signal.Signals) -> None:
    with serve(service, tenant, folder) as site:
        where, headers = site.enter()
        with connect(where, additional_headers=headers, proxy=None) as wire:
            # Behind help nothing is drawn again, so no failing write ends the console before the test does.
            drawn = ""
            while "Esc closes" not in drawn:
                drawn = CONTROLS.sub("", drawn + wire.recv(timeout=PATIENCE_SECONDS).decode())
                if "1 Approvals" in drawn:
                    wire.send('["stdin", "?"]')
                    drawn = drawn.replace("1 Approvals", "")
            (pid,) = site.consoles()
            site.process.send_signal(end)
            eventually(lambda: is_over(pid), seconds=PATIENCE_SECONDS)

        assert site.process.wait(STOP_SECONDS) == (-signal.SIGKILL if end == signal.SIGKILL else 0)


class Shown:
    """A page, and the text that was drawn on it so far (the terminal itself is a picture)."""

    def __init__(self, page: Page) -> None:
        self.page, self._bytes = page, b""
        page.on("websocket", lambda wire: wire.on("framereceived", self._arm))

    def _arm(self, frame: bytes | str) -> None:
        self._bytes += frame if isinstance(frame, bytes) else b""

    def sees(self, *words: str) -> None:
        """Wait until all of this was drawn since the last time, then start over."""
        for _ in range(PATIENCE_SECONDS * 20):
            text = CONTROLS.sub("", self._bytes.decode(errors="replace"))
            if all(word in text for word in words):
                self._bytes = b""
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"{words} never came:\n{text[-3000:]}")


@pytest.mark.long
def test_the_queue_is_shown_in_a_browser_and_decided_with_its_keyboard(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    agent = tenant.agent(THRESHOLD)
    order = agent.sign(value=2 * 10**18).json()["data"]
    asked: list[str] = []

    with serve(service, tenant, folder) as site, browser_page(site.origin, folder / "page.png") as visit:
        shown = Shown(visit.page)
        visit.page.on("request", lambda request: asked.append(request.url))
        visit.page.goto(site.address.removeprefix(site.origin))
        shown.sees(agent.id, "2 ETH")
        address = visit.page.url
        # No click: the page gives its keys to the console by itself.
        visit.page.keyboard.press("a")
        shown.sees("Approve this?", ADDRESS, "2 ETH", agent.id, "Approve (y)")
        visit.page.keyboard.press("y")
        eventually(lambda: tenant.ok("GET", "/approvals/stats")["approved"] == 1, seconds=PATIENCE_SECONDS)
        again = visit.page.request.get(site.address)
        popups = visit.page.evaluate("window.open('about:blank')")

    assert tenant.ok("GET", f"/vault/{agent.id}/transactions/{order['txId']}")["status"] == "signed"
    assert "ticket" not in address
    assert again.status == 403
    assert popups is None
    # Nothing was asked of anybody else, and nothing that the page wanted was kept from it.
    assert {url.split("/")[2] for url in asked} == {site.origin.removeprefix("http://")}
    blocked = [fault for fault in visit.faults if "Blocked opening" in fault]
    assert visit.faults == blocked
    assert "sandboxed" in blocked[0]

"""The page on which an approver's key is asked: one name, one ticket, one answer, five minutes. Decision 0059."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from console.approver.matter import base64url
from console.approver.page import MAX_ANSWER_BYTES, PAGE_SECONDS, RP_ID, Page, Task, serve
from words.texts.lines import Heading, Line

CHALLENGE = base64url(b"what the key signs")
HOSTILE = "TICKET BODY <script>alert(1)</script> \" ' &lt; TASK"


class Browser:
    """A page that stands, and somebody who asks for it."""

    def __init__(self, page: Page, clock: list[float]) -> None:
        self.page, self.clock = page, clock
        self.ticket = page.address.rpartition("/")[2]

    async def ask(self, path: str, method: str = "GET", **options: Any) -> httpx.Response:
        """Ask with the right name, unless told otherwise; the address is given, for no resolver here knows it."""
        headers = {"Host": f"{RP_ID}:{self.page.port}", **options.pop("headers", {})}
        address = f"http://{options.pop('at', '127.0.0.1')}:{self.page.port}{path}"
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            return await client.request(method, address, headers=headers, **options)

    async def open_page(self) -> str:
        """Open the page; the ticket for its answer."""
        shown = await self.ask(f"/{self.ticket}")
        assert shown.status_code == 200, shown.text
        task = shown.text.partition('data-task="')[2].partition('"')[0].replace("&quot;", '"')
        found: str = json.loads(task)["ticket"]
        return found

    def body(self, ticket: str, **changed: Any) -> dict[str, Any]:
        """An answer of the authenticator; `client` replaces fields of what the browser says."""
        said = {"type": "webauthn.get", "challenge": CHALLENGE, "origin": self.page.origin, "crossOrigin": False}
        said |= changed.pop("client", {})
        answer = {"ticket": ticket, "credentialId": "AQ", "clientDataJSON": base64url(json.dumps(said).encode())}
        return {**answer, "authenticatorData": "AQ", "signature": "AQ", **changed}

    async def answer(self, body: Any, **headers: str) -> int:
        """Hand in an answer from our own page, unless told otherwise."""
        given = {"Origin": self.page.origin, "Content-Type": "application/json", **headers}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return (await self.ask("/answer", "POST", headers=given, content=content)).status_code


@asynccontextmanager
async def standing() -> AsyncIterator[Browser]:
    """A page that asks for a vote."""
    clock = [0.0]
    task = Task(does="vote", challenge=CHALLENGE, credentials=["AQ"])
    lines = [Heading("What it does"), Line(HOSTILE, "bad")]
    async with serve(Page(task, "Vote for this order?", lines, "Vote with your key", lambda: clock[0])) as page:
        yield Browser(page, clock)


async def test_an_answer_is_taken_once() -> None:
    async with standing() as browser:
        ticket = await browser.open_page()
        statuses = [await browser.answer(browser.body(ticket)) for _ in range(2)]

        assert statuses == [204, 403]
        assert (await browser.page.answer()).credential_id == "AQ"


async def test_the_address_works_once_and_not_for_a_browser_that_looks_ahead() -> None:
    async with standing() as browser:
        ahead = await browser.ask(f"/{browser.ticket}", headers={"Sec-Purpose": "prefetch"})
        wrong = await browser.ask("/" + "A" * len(browser.ticket))
        first, second = [await browser.ask(f"/{browser.ticket}") for _ in range(2)]

    assert [one.status_code for one in (ahead, wrong, first, second)] == [403, 403, 200, 403]


@pytest.mark.parametrize("host", ["localhost:{}", "127.0.0.1:{}", "evil.example:{}", RP_ID, f"{RP_ID}.:{{}}", ""])
async def test_no_other_name_leads_to_the_page(host: str) -> None:
    async with standing() as browser:
        named = {"Host": host.format(browser.page.port)}
        for path in (f"/{browser.ticket}", "/page.js", "/page.css"):
            assert (await browser.ask(path, headers=named)).status_code in (400, 403)
        ticket = await browser.open_page()
        assert await browser.answer(browser.body(ticket), **named) in (400, 403)
        assert await browser.answer(browser.body(ticket)) == 204


async def test_text_of_others_stays_text_and_the_page_loads_nothing_foreign() -> None:
    async with standing() as browser:
        shown = await browser.ask(f"/{browser.ticket}")

    policy = shown.headers["Content-Security-Policy"]
    assert "<script>alert" not in shown.text
    assert "TICKET BODY &lt;script&gt;alert(1)&lt;/script&gt; &quot; &#x27; &amp;lt; TASK" in shown.text
    assert "unsafe" not in policy
    assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy.split("; "))
    assert (shown.headers["Referrer-Policy"], shown.headers["X-Frame-Options"]) == ("no-referrer", "DENY")
    assert shown.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        pytest.param({"ticket": "A" * 22}, 403, id="another ticket"),
        pytest.param({"ticket": ""}, 403, id="no ticket"),
        pytest.param({"client": {"challenge": base64url(b"another item")}}, 400, id="another item"),
        pytest.param({"client": {"origin": "http://localhost:1"}}, 400, id="another origin"),
        pytest.param({"client": {"crossOrigin": True}}, 400, id="inside another page"),
        pytest.param({"client": {"type": "webauthn.create"}}, 400, id="a new key"),
        pytest.param({"clientDataJSON": "!"}, 400, id="not base64url"),
        pytest.param({"clientDataJSON": base64url(b"[]")}, 400, id="no object"),
        pytest.param({"more": 1}, 400, id="an unknown field"),
        pytest.param({"signature": "A" * 97}, 400, id="too long a signature"),
        pytest.param({"signature": "A" * MAX_ANSWER_BYTES}, 413, id="too long"),
    ],
)
async def test_the_page_refuses_a_strange_answer_and_uses_nothing_up(changed: dict[str, Any], status: int) -> None:
    async with standing() as browser:
        ticket = await browser.open_page()

        assert await browser.answer(browser.body(**{"ticket": ticket, **changed})) == status
        assert await browser.answer(browser.body(ticket)) == 204


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Origin": "http://localhost:8080"}, 403), ({"Origin": "null"}, 403), ({"Content-Type": "text/plain"}, 415)],
    ids=["another page", "no page", "a form"],
)
async def test_another_page_cannot_answer(headers: dict[str, str], status: int) -> None:
    async with standing() as browser:
        ticket = await browser.open_page()

        assert await browser.answer(browser.body(ticket), **headers) == status
        assert await browser.answer(b"{" * 100) == 400
        assert await browser.answer(browser.body(ticket)) == 204


async def test_nothing_is_answered_before_the_page_was_opened_or_after_its_time() -> None:
    async with standing() as browser:
        assert await browser.answer(browser.body("")) == 403
        ticket = await browser.open_page()
        browser.clock[0] = PAGE_SECONDS

        assert await browser.answer(browser.body(ticket)) == 403
        assert (await browser.ask("/page.js")).status_code == 403


async def test_the_page_goes_when_it_is_left() -> None:
    async with standing() as browser:
        pass

    with pytest.raises(httpx.ConnectError):
        await browser.ask("/page.js")


async def test_the_page_listens_on_one_address_of_this_machine() -> None:
    async with standing() as browser:
        with pytest.raises(httpx.ConnectError):
            await browser.ask("/page.js", at="127.0.0.2")
        assert (await browser.ask("/page.js")).status_code == 200


async def outcome(browser: Browser, ticket: str, **headers: str) -> httpx.Response:
    """Ask what became of the answer, from our own page unless told otherwise."""
    given = {"Origin": browser.page.origin, "Content-Type": "application/json", **headers}
    return await browser.ask("/outcome", "POST", headers=given, content=json.dumps({"ticket": ticket}))


async def test_the_page_that_answered_is_told_what_became_of_it() -> None:
    async with standing() as browser:
        ticket = await browser.open_page()
        assert await browser.answer(browser.body(ticket)) == 204
        asked = asyncio.create_task(outcome(browser, ticket))
        browser.page.tell("Approved by you.", done=True)
        # The first word counts.
        browser.page.tell("Nothing happened.", done=False)

        told = await asked
        assert (told.status_code, told.json()) == (200, {"said": "Approved by you.", "done": True})
        await asyncio.wait_for(browser.page.over(), 60)


async def test_strangers_are_not_told_what_became_of_it() -> None:
    async with standing() as browser:
        ticket = await browser.open_page()
        browser.page.tell("Approved by you.", done=True)
        before = await outcome(browser, ticket)
        assert await browser.answer(browser.body(ticket)) == 204
        strangers = [
            await outcome(browser, "A" * len(ticket)),
            await outcome(browser, ""),
            await outcome(browser, ticket, Origin="http://localhost:8080"),
        ]

        assert [one.status_code for one in (before, *strangers)] == [403, 403, 403, 403]
        assert (await outcome(browser, ticket)).status_code == 200


async def test_a_page_that_was_not_answered_needs_no_last_word() -> None:
    async with standing() as browser:
        await browser.open_page()
        browser.page.tell("The console went back.", done=False)

        await asyncio.wait_for(browser.page.over(), 60)

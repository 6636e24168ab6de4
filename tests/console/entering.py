"""Getting in, as tests of the console do it: codes, who approves them, and time that passes when a test says so."""

import asyncio
import re
import time
from datetime import timedelta
from pathlib import Path

from console.wire.tokens import Tokens, TokenStore
from tests.fixtures.consoles import PATIENCE_SECONDS, Driven
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from words.texts.moments import local_now

_ANSWERED_SECONDS = 3.0


class Waits:
    """Stands in for sleeping between polls: `seconds` says how long was to be waited, each time."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._passing = asyncio.Semaphore(0)

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await self._passing.acquire()

    def pass_one(self) -> None:
        """Let the wait that is on, or the next one, be over."""
        self._passing.release()


async def code_on(console: Driven) -> str:
    """The code that is shown."""
    await console.sees("This code expires in")
    found = re.search(r"┃ +((?:[A-Z0-9-] ){8}[A-Z0-9]) +┃", console.text)
    assert found, console.text
    return found[1].replace(" ", "")


def decide(person: Person, code: str, action: str = "approve") -> None:
    """Decide on the page, as a person does."""
    person.ok("POST", "/auth/device/verify", {"user_code": code, "action": action})


async def signed_in(console: Driven) -> None:
    """Wait until somebody is in, and sees it."""
    await console.until(lambda: console.app.person is not None, "the sign-in")
    await console.sees("1 Approvals")


async def confirm(console: Driven, words: str) -> None:
    """Press the button's key until it counts, for one pressed before all is drawn decides nothing; then see these."""
    asked = console.app.screen
    deadline = time.monotonic() + PATIENCE_SECONDS

    def counts() -> bool:
        return console.app.screen is not asked or words in console.flat

    while not counts() and time.monotonic() < deadline:
        await console.press("y" if "(y)" in console.flat else "enter")
        # What it asks for may take its time to be answered; a second press would close what is shown then.
        again = time.monotonic() + _ANSWERED_SECONDS
        while not counts() and time.monotonic() < again:
            await console.pilot.pause(0.01)
    await console.sees(words)


def keep_session(service: Service, person: Person, folder: Path, seconds: float = 900, **changed: str) -> TokenStore:
    """The tokens of a person's session, as a console of the profile kept them; they end in so many seconds."""
    store = TokenStore(folder, "default", service.url)
    given = {"token": person.session["token"], "refresh_token": person.session["refreshToken"], **changed}
    ends_at = local_now() + timedelta(seconds=seconds)
    store.write(Tokens(**given, ends_at=ends_at, user=person.id, tenant=person.tenant))
    return store

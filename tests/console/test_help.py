"""Help: every key from the bindings themselves, so that none is missing or old."""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.binding import Binding

from console.app import Console
from console.screens.help import NEVER, WORDS
from console.widgets.plain_text import PlainText
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import NARROW, WIDE, Driven, driven
from tests.fixtures.server import Service


async def opened(console: Driven) -> str:
    """Ask for help; every text of it, also what one has to scroll to."""
    await console.until(lambda: console.app.person, "the sign-in")
    await console.press("question_mark")
    await console.sees("Esc closes")
    return "\n".join(str(part.content) for part in console.app.screen.query(PlainText))


async def test_every_key_of_every_place_is_there(service: Service, tenant: Tenant, folder: Path) -> None:
    async with driven(service.url, folder, key=tenant.key) as console:
        text = await opened(console)

    own = [kind.__dict__.get("BINDINGS", []) for kind in [Console, *Console.MODES.values()]]
    wanted = [binding for bindings in own for binding in Binding.make_bindings(bindings)]
    assert len(wanted) > len(Console.MODES)
    assert [binding.description for binding in wanted if binding.description not in text] == []
    assert text.split("Webhooks\n")[-1].split("\n")[:2] == ["t", "Retry"]


async def test_the_words_and_what_never_happens_are_there(service: Service, tenant: Tenant, folder: Path) -> None:
    async with driven(service.url, folder, key=tenant.key) as console:
        text = await opened(console)

    assert [word for word, meaning in WORDS if f"{word}\n{meaning}" not in text] == []
    assert "\n".join(NEVER) in text


@pytest.mark.parametrize("key", ["question_mark", "escape"])
async def test_it_closes_by_the_key_that_opened_it_and_by_escape(
    service: Service, tenant: Tenant, folder: Path, key: str
) -> None:
    async with driven(service.url, folder, key=tenant.key) as console:
        await opened(console)
        await console.press(key)

        await console.gone("Esc closes")


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_it_scrolls(
    service: Service, tenant: Tenant, folder: Path, size: tuple[int, int], pictures: SnapshotAssertion
) -> None:
    async with driven(service.url, folder, key=tenant.key, size=size) as console:
        await console.until(lambda: console.app.person, "the sign-in")
        await console.press("6")
        await console.sees("No secrets")
        await opened(console)
        first = await console.picture()
        await console.press("end")
        await console.sees(NEVER[-1])

        assert first == pictures

"""Help: every key from the bindings themselves, so that none is missing or old."""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.binding import Binding

from console.app import Console
from console.screens.help import NEVER, WORDS
from console.widgets.plain_text import PlainText
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import NARROW, WIDE, Driven, driving
from tests.fixtures.server import Service

pytestmark = pytest.mark.long


async def open_help(console: Driven) -> str:
    """Ask for help; every text of it, also what one has to scroll to."""
    await console.press("question_mark")
    await console.sees("Esc closes")
    return "\n".join(str(part.content) for part in console.app.screen.query(PlainText))


@pytest.mark.parametrize(("size", "close"), [(WIDE, "question_mark"), (NARROW, "escape")], ids=["wide", "narrow"])
async def test_every_key_and_word_is_there_it_scrolls_and_closes(
    service: Service, tenant: Tenant, folder: Path, pictures: SnapshotAssertion, size: tuple[int, int], close: str
) -> None:
    async with driving(service.url, folder, key=tenant.key, size=size) as console:
        await console.until(lambda: console.app.person, "the sign-in")
        await console.press("6")
        await console.sees("No secrets", "No credential", "x Explain")
        text = await open_help(console)
        first = await console.picture()
        await console.press("end")
        await console.sees(NEVER[-1])
        await console.press(close)
        await console.sees_no("Esc closes")

    own = [kind.__dict__.get("BINDINGS", []) for kind in [Console, *Console.MODES.values()]]
    wanted = [binding for bindings in own for binding in Binding.make_bindings(bindings)]
    assert len(wanted) > len(Console.MODES)
    assert [binding.description for binding in wanted if binding.description not in text] == []
    assert text.split("Webhooks\n")[-1].split("\n")[:2] == ["t", "Retry"]
    assert [word for word, meaning in WORDS if f"{word}\n{meaning}" not in text] == []
    assert "\n".join(NEVER) in text
    assert first == pictures

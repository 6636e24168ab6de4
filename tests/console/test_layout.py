"""That the console can be read: in any terminal, in both themes, without colours. Decisions 11."""

import random
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.color import Color
from textual.widgets import Footer

from console.widgets.heading import PLACES, Navigation
from console.widgets.listing import Listing
from console.widgets.too_small import TooSmall
from tests.console.waiting import cautious, queued, unlimited
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import NARROW, WIDE, Driven, driven
from tests.fixtures.server import Service

LEAST_CONTRAST = 4.5


def luminance(colour: Color) -> float:
    """As WCAG 2 defines it."""
    parts = [part / 255 for part in colour.get_truecolor()]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def pale(console: Driven) -> set[tuple[str, str]]:
    """What is written in a colour too near to the one behind it; not what a question lies over, which is dimmed."""
    screen = console.app.screen
    asked = [child.region for child in screen.children] if screen.is_modal else [screen.region]
    found = set()
    for y, strip in enumerate(screen._compositor.render_strips()):
        x = 0
        for text, style, _ in strip:
            meant = any(region.contains(x, y) for region in asked) and any(letter.isalnum() for letter in text)
            x += cell_len(text)
            if meant and style and style.color and style.bgcolor:
                dark, light = sorted(map(luminance, (style.color, style.bgcolor)))
                if (light + 0.05) / (dark + 0.05) < LEAST_CONTRAST:
                    found.add((text.strip(), f"{style.color.name} on {style.bgcolor.name}"))
    return found


@pytest.mark.parametrize("theme", ["dark", "light"])
async def test_every_text_stands_out_from_what_is_behind_it(
    service: Service, tenant: Tenant, folder: Path, theme: str
) -> None:
    agent = cautious(tenant)
    queued(agent)
    unlimited(agent)
    async with driven(service.url, folder, key=tenant.key, theme=theme) as console:
        await console.sees("2 waiting")
        found = pale(console)
        await console.press("space")
        for keys in (["a"], ["escape", "down", "a"], ["escape", "d"], ["escape", "slash"], ["escape", "f"]):
            await console.press(*keys)
            await console.pilot.pause()
            found |= pale(console)
        await console.press("escape")
        console.app.tell("Something was done.")
        console.app.tell("Something was not done.", "error")
        for number, (place, _) in enumerate(PLACES, 1):
            await console.press(str(number))
            await console.until(lambda place=place: console.app.current_mode == place, place)  # type: ignore[misc]
            await console.pilot.pause()
            found |= pale(console)
        console.app.screen.trouble("Something is wrong.")  # type: ignore[attr-defined]
        for key in ("question_mark", "ctrl+p"):
            await console.press(key)
            await console.pilot.pause()
            found |= pale(console)

    assert found == set()

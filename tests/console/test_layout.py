"""That the console can be read: in any terminal, in both themes, without colours."""

import random
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.color import Color
from textual.widgets import Footer

from console import themes
from console.widgets.heading import PLACES, Navigation
from console.widgets.listing import Listing
from console.widgets.too_small import TooSmall
from tests.console.waiting import cautious, item, queue_order, queue_unlimited
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import NARROW, WIDE, Driven, driving
from tests.fixtures.server import Service

pytestmark = pytest.mark.long

LEAST_CONTRAST = 4.5


def luminance(colour: Color) -> float:
    """As WCAG 2 defines it."""
    parts = [part / 255 for part in colour.get_truecolor()]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


async def pale(console: Driven) -> set[tuple[str, str]]:
    """Find text in a colour too near to the one behind it, by night and by day."""
    found = set()
    for _ in range(2):
        themes.turn(console.app)
        await console.pilot.pause()
        found |= pale_now(console)
    return found


def pale_now(console: Driven) -> set[tuple[str, str]]:
    """The same as it is; not what a question lies over, which is dimmed."""
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


async def test_every_text_stands_out_from_what_is_behind_it_in_both_themes(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    agent = cautious(tenant)
    queue_order(agent)
    queue_unlimited(agent)
    found = set()
    async with driving(service.url, folder, key=tenant.key) as console:
        await console.sees("2 waiting")
        await console.press("space")
        for keys in (["a"], ["escape", "d"], ["escape", "slash"], ["escape", "f"]):
            await console.press(*keys)
            found |= await pale(console)
        await console.press("escape")
        console.app.tell("Something was done.")
        console.app.tell("Something was not done.", "error")
        for number, (place, _) in enumerate(PLACES, 1):
            await console.press(str(number))
            await console.until(lambda place=place: console.app.current_mode == place, place)  # type: ignore[misc]
            console.app.screen.trouble("Something is wrong.")  # type: ignore[attr-defined]
            found |= await pale(console)
        for key in ("question_mark", "ctrl+p"):
            await console.press(key)
            found |= await pale(console)

    assert found == set()


SIZES = random.Random(6).choices(
    [(200, 60), (140, 44), (80, 24), (120, 30), (50, 14), (49, 13), (40, 10), (20, 3)], k=14
)


async def test_a_terminal_may_change_its_size_at_any_moment(service: Service, tenant: Tenant, folder: Path) -> None:
    agent = cautious(tenant)
    for value in range(1, 5):
        queue_order(agent, value)
    async with driving(service.url, folder, key=tenant.key) as console:
        for size in SIZES[:4]:
            # While it signs in and loads.
            await console.pilot.resize_terminal(*size)
        await console.pilot.resize_terminal(*NARROW)
        await console.sees("4 waiting")
        await console.press("down", "slash", *"payer", "enter", "d")
        await console.write("not ours")
        for size in SIZES:
            await console.pilot.resize_terminal(*size)
            strips = console.app.screen._compositor.render_strips()
            assert [cell_len(strip.text) for strip in strips] == [size[0]] * size[1]
        await console.pilot.resize_terminal(*WIDE)
        await console.sees("Deny this?", "not ours")
        await console.press("escape")

        assert console.one(Listing).position == 1
        assert console.app.focused is console.one(Listing)


async def test_a_terminal_that_is_too_small_says_so_and_decides_nothing(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    key = queue_order(cautious(tenant))
    async with driving(service.url, folder, key=tenant.key) as console:
        await console.sees("1 waiting")
        await console.press("a")
        await console.sees("Approve this?", "Approve (y)")
        await console.pilot.resize_terminal(40, 10)
        await console.sees("40x10 is too small. Make it 50x14.")
        await console.press("y")
        await console.pilot.resize_terminal(*WIDE)
        await console.sees("Approve this?")

    assert item(tenant, key)["status"] == "pending"


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (140, " 1 Approvals (1)  2 Agents  3 Transactions  4 Policies  5 Webhooks  6 Secrets  7 Audit"),
        (80, " 1 Approvals (1)  2 Agents  3 Tx  4 Policies  5 Webhooks  6 Secrets  7 Audit"),
        (50, " 1 Approvals (1)  2  3  4  5  6  7"),
    ],
)
async def test_the_places_stand_in_one_line_with_what_waits(
    service: Service, tenant: Tenant, folder: Path, width: int, line: str
) -> None:
    queue_order(cautious(tenant))
    async with driving(service.url, folder, key=tenant.key, size=(width, 24)) as console:
        await console.sees("1 waiting", "(1)")

        assert console.text.splitlines()[1] == line
        assert console.one(Navigation).size.height == console.one(Footer).size.height == 1
        assert not console.one(TooSmall).display

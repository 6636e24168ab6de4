"""The command palette: everything by name, and names from outside as nothing but text."""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.command import CommandList

from console.commands import find
from console.screens.agents import Agents
from console.session_control import SIGN_IN_MODE
from tests.fixtures.callers import Tenant
from tests.fixtures.consoles import Driven, driving
from tests.fixtures.server import Service

pytestmark = pytest.mark.long


async def open_palette(console: Driven, query: str = "") -> None:
    """Open the palette, and look for something in it."""
    await console.until(lambda: console.app.person, "the sign-in")
    await console.press("6")
    await console.sees("No secrets")
    await console.press("ctrl+p")
    await console.sees("Go to Webhooks")
    # Textual shows what it has gathered every quarter of a second, so on a busy machine a part of the list comes first.
    await console.until(lambda: console.app.screen.has_class("-ready"), "the whole list")
    await console.write(query)


def offers(console: Driven) -> list[str]:
    """List the palette's offers, each without its second line."""
    return [str(option.prompt).split("\n")[0] for option in console.one(CommandList).options]


def offers_in_full(console: Driven) -> list[str]:
    """List the palette's offers, with both of their lines."""
    return [str(option.prompt) for option in console.one(CommandList).options]


async def test_it_offers_places_and_the_acts_of_the_screen_and_nothing_of_textual(
    service: Service, tenant: Tenant, folder: Path, pictures: SnapshotAssertion
) -> None:
    async with driving(service.url, folder, key=tenant.key) as console:
        await open_palette(console)

        found = offers(console)
        assert {"Explain a request", "Reload", "Help", "Dark or light", "Quit", "Go to Audit"} <= set(found)
        assert not {"Screenshot", "Maximize", "Theme", "Keys", "Scroll Left"} & set(found)
        assert len(found) == len(set(found))
        assert [option for option in offers_in_full(console) if "z freezes the selected one" in option]
        assert await console.picture() == pictures


async def test_places_themes_and_acts_are_reached_by_name(service: Service, tenant: Tenant, folder: Path) -> None:
    async with driving(service.url, folder, key=tenant.key, read_only=True) as console:
        await open_palette(console)
        assert [name for name in offers(console) if "reeze" in name] == []
        await console.write("dark")
        await console.until(lambda: offers(console) == ["Dark or light"], "the one act")
        await console.press("enter")
        await console.until(lambda: console.app.theme == "custody-light", "the light theme")

        await open_palette(console, "explain")
        await console.until(lambda: offers(console) == ["Explain a request"], "the act of the screen")
        await console.press("enter")
        await console.sees("Which route would a request match?")
        await console.press("escape")

        await open_palette(console, "webh")
        await console.until(lambda: offers(console) == ["Go to Webhooks"], "the one place")
        await console.press("enter")
        await console.until(lambda: console.app.current_mode == "webhooks", "the place")


async def test_a_hostile_name_is_text_and_holds_nothing_up(service: Service, tenant: Tenant, folder: Path) -> None:
    # Letters in so many orders keep a matcher busy that tries them all, as Textual's own does.
    tenant.ok("POST", "/agents", {"id": "hostile", "name": "[red]loud[/red][@click=app.quit]" + "a" * 150 + "b"})
    async with driving(service.url, folder, key=tenant.key) as console:
        await open_palette(console, "aaab")
        await console.sees("aaab")
        await console.press(*["backspace"] * 4, *"loud")

        await console.sees("Find agent [red]loud[/red][@click=app.quit]aaaa", "(183 characters)")


async def test_an_agent_is_found_by_its_name(service: Service, tenant: Tenant, folder: Path) -> None:
    for number in range(30):
        tenant.ok("POST", "/agents", {"id": f"buyer-{number}", "name": f"Buyer {number}"})
    async with driving(service.url, folder, key=tenant.key) as console:
        await open_palette(console, "agent buyer 17")
        await console.until(lambda: offers(console) == ["Find agent Buyer 17 (buyer-17)"], "the one agent")
        await console.press("enter")

        await console.until(lambda: console.app.current_mode == "agents", "the agents")
        await console.sees("▸ Buyer 17")


async def test_a_found_agent_stays_under_the_cursor_when_one_comes_back(
    service: Service, tenant: Tenant, folder: Path
) -> None:
    for name in ("ann", "bob"):
        tenant.ok("POST", "/agents", {"id": name, "name": name})
    async with driving(service.url, folder, key=tenant.key) as console:
        await console.until(lambda: console.app.person, "the sign-in")
        await console.press("2")
        await console.until(lambda: console.app.chosen_agent, "rest")
        page, former = console.app.screen, console.app.chosen_agent
        assert isinstance(page, Agents)
        other = "ann" if former == "bob" else "bob"
        # The service is quicker than the cursor comes to rest.
        console.app.rest = 60
        before = page.all_agents
        await open_palette(console, f"find agent {other}")
        await console.until(lambda: offers(console) == [f"Find agent {other} ({other})"], "the one agent")
        await console.press("enter")
        await console.until(lambda: page.all_agents is not before, "the list again")

        agent = page.agent
        assert agent is not None
        assert agent.id == other


async def test_at_the_sign_in_nothing_leads_past_it(service: Service, tenant: Tenant, folder: Path) -> None:
    tenant.ok("POST", "/agents", {"id": "buyer", "name": "Buyer"})
    async with driving(service.url, folder, key=tenant.key) as console:
        await console.until(lambda: console.app.person, "the sign-in")
        await console.press("i")
        await console.sees("This code expires in")
        await console.press("ctrl+p")
        await console.sees("Go to Webhooks")
        await console.write("agent buyer")
        await console.sees("No matches found")
        await console.press("escape")
        # Nor what was chosen in the palette before.
        await find(console.app, "agents", "buyer")

        assert console.app.current_mode == SIGN_IN_MODE
        await console.press("escape")
        await console.until(lambda: console.app.person, "the way back")

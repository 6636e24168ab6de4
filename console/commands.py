"""The command palette: everything by name, places, acts of the screen, and agents and approvals that are known.

Names come from outside, so they are matched as plain text and within bounds (Textual's own matcher takes ever longer
on long names), and shown as Content that is never read as markup. Textual reads the help of a hit as markup, always:
no name may stand there.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from console.application import Application
from console.tasks import spawn
from console.widgets.heading import PLACES
from console.widgets.listing import Listing
from console.wire.failures import Failure
from console.wire.shapes_known import KnownAgent, KnownApproval
from console.work import work
from words.texts.plain import clip

# What is asked for when the palette opens; more than anybody reads.
MOST_AGENTS: Final = 1_000
MOST_APPROVALS: Final = 200
MOST_HITS: Final = 20
MOST_CHARACTERS: Final = 80
PATIENCE_SECONDS: Final = 3.0
# Places have lines of their own, Textual's own acts make no sense here, and the palette is open already.
_NO_COMMANDS: Final = ("go(", "command_palette", "app.", "screen.")


@dataclass(frozen=True)
class Command:
    """One line of the palette; `help` contains only our own text."""

    name: str
    help: str
    run: Callable[[], Any]


class Commands(Provider):
    """Commands that can be run from here."""

    async def startup(self) -> None:
        # Not waited for: the palette opens at once, whatever the service does.
        self._asked = spawn(self._ask(), "known names", set())

    async def shutdown(self) -> None:
        self._asked.cancel()
        await asyncio.wait([self._asked])
        if not self._asked.cancelled():
            # Looked at, or asyncio would complain that nobody did.
            self._asked.exception()

    async def discover(self) -> Hits:
        for one in self._static():
            yield DiscoveryHit(Content(one.name), one.run, text=one.name, help=one.help)

    async def search(self, query: str) -> Hits:
        for one in self._static():
            if hit := _hit(query, one):
                yield hit
        count = 0
        for one in await self._known_names():
            if count < MOST_HITS and (hit := _hit(query, one)):
                count += 1
                yield hit

    def _static(self) -> Iterator[Command]:
        app = self._console
        for binding, node in self._bindings():
            run = partial(app.run_action, binding.action, default_namespace=node)
            yield Command(binding.description, f"Key {app.get_key_display(binding)}", run)
        for number, (place, name) in enumerate(PLACES, 1):
            yield Command(f"Go to {name}", f"Key {number}", partial(app.action_go, place))
        if app.person is not None and app.person.user is not None and not app.client.read_only:
            yield Command("Set up an authenticator", "Set up an authenticator app as second factor", app.enrol)
            yield Command("Set up an approver key", "Make a key by which you vote on orders", app.enrol_approver_key)
        if app.person is not None and app.person.user is not None:
            yield Command(
                "Your approver keys", "Show, make and revoke the keys by which you vote", app.show_approver_keys
            )
        if not app.client.read_only:
            where = "Go to the agents; there z freezes the selected one"
            yield Command("Freeze or unfreeze an agent", where, partial(app.action_go, "agents"))

    def _bindings(self) -> Iterator[tuple[Any, Any]]:
        """List the keys of this screen and of the console, each act once, under the key of the footer."""
        found = dict[str, tuple[Any, Any]]()
        for active in self.screen.active_bindings.values():
            binding = active.binding
            ours = active.node in (self.screen, self.app) and binding.description and not binding.system
            if ours and active.enabled and not binding.action.startswith(_NO_COMMANDS):
                found[binding.action] = (binding, active.node)
        yield from found.values()

    async def _known_names(self) -> list[Command]:
        if self._console.person is None:
            # During sign-in there is no screen to go to.
            return []
        try:
            return await asyncio.wait_for(asyncio.shield(self._asked), PATIENCE_SECONDS)
        except (TimeoutError, Failure):
            return []

    async def _ask(self) -> list[Command]:
        app = self._console
        agents = await app.client.get("/agents", list[KnownAgent], limit=MOST_AGENTS)
        items = await app.client.get("/approvals", list[KnownApproval], status="pending", limit=MOST_APPROVALS)
        named = [("agents", one.id, f"Find agent {_name(one.name)} ({one.id})") for one in agents]
        waiting = [("approvals", one.id, f"Find approval {one.id} of {_name(one.agent_name)}") for one in items]
        return [Command(name, "", partial(self._find, place, key)) for place, key, name in named + waiting]

    def _find(self, place: str, key: str) -> None:
        work(self._console, "find", find, self._console, place, key)

    @property
    def _console(self) -> Application:
        return cast(Application, self.app)


async def find(app: Application, place: str, key: str) -> None:
    """Go to a place and put the cursor of its list on a thing, once it is loaded."""
    if app.person is None:
        return
    if place == "agents":
        # Arriving, that list goes to the agent that was chosen last.
        app.chosen_agent = key
    await app.switch_mode(place)
    page: Any = app.screen
    listing = page.query(Listing).first()
    if not listing.select(key):
        await page.reload().wait()
    if not listing.select(key):
        app.tell("It is not in this list: it was decided, or a filter hides it.")
    listing.focus()


def _name(text: str) -> str:
    return clip(text, MOST_CHARACTERS)


def _hit(query: str, command: Command) -> Hit | None:
    """All words of the query somewhere in the name; the earlier, the better."""
    name, words = command.name.casefold(), query.casefold().split()
    if not words or not all(word in name for word in words):
        return None
    shown = Content(command.name)
    for word in words:
        # Folding can change lengths; then nothing is underlined rather than the wrong letters.
        at = name.find(word) if len(name) == len(command.name) else -1
        if at >= 0:
            shown = shown.stylize("bold underline", at, at + len(word))
    return Hit(1 / (1 + name.find(words[0])), shown, command.run, text=command.name, help=command.help)

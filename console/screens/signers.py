"""An agent's signers and key quorums: who else must agree, and taking that right away."""

import asyncio
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from console.agents.signers_in_words import in_full, key_of, kind_of, name_of, permissions_of, rules_of
from console.dialogs.change_signer import Act, ChangeSigner
from console.dialogs.shown import Shown
from console.screens.guarded import GuardedPage
from console.widgets.listing import Cell, Column, Listing
from console.widgets.plain_text import PlainText
from console.wire.shapes_signers import KeyQuorum, Named, Signer
from words.shapes import Agent, PolicyRule
from words.texts.fields import pluralize

_EMPTY: Final = "This agent has no signers. The API makes them: POST /agents/:agentId/signers"


class Signers(GuardedPage):
    """A list over the agents; Esc goes back to them."""

    PLACE = "agents"
    WHAT = "Signers and key quorums are"
    BINDINGS: ClassVar[list[BindingType]] = [
        # Of two for one key the one that is possible is shown and done.
        Binding("p", "change('pause')", "Pause"),
        Binding("p", "change('resume')", "Resume"),
        Binding("x", "change('revoke')", "Revoke"),
        Binding("r", "reload", "Reload"),
        Binding("escape", "leave", "Back"),
    ]

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self._agent = agent
        self._rules: list[PolicyRule] = []

    def inside(self) -> ComposeResult:
        yield PlainText("", id="signers-caption", classes="caption")
        yield Listing[Named](
            [
                Column("Name", name_of, 14, share=3),
                Column("What it is", kind_of, 15, share=1),
                Column("State", _state, 8),
                Column("May authorise", permissions_of, 16, share=3),
                Column("Rules", rules_of, 8, wide=True),
                Column("Key", key_of, 18, wide=True),
            ],
            lambda one: one.id,
            empty="Loading…",
        )

    async def ask(self) -> None:
        client, path = self.app.client, f"/agents/{self._agent.id}"
        signers, quorums, self._rules = await asyncio.gather(
            client.get(f"{path}/signers", list[Signer]),
            client.get(f"{path}/key-quorums", list[KeyQuorum]),
            client.get(f"{path}/policies", list[PolicyRule]),
        )
        self._list.empty = _EMPTY
        self._list.show([*quorums, *signers])
        parts = [pluralize(len(signers), "signer", "signers"), pluralize(len(quorums), "key quorum", "key quorums")]
        caption = f"{self._agent.name} ({self._agent.id}): {', '.join(parts)}. The API makes and changes them."
        self.query_one("#signers-caption", PlainText).update(caption)
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "change":
            one = self._list.row if self.is_mounted else None
            if one is None or one.status == "revoked" or self.app.client.read_only or self.has_class("-closed"):
                return False
            wanted = {"pause": "active", "resume": "paused"}.get(str(parameters[0]), one.status)
            return one.status == wanted
        return super().check_action(action, parameters)

    def on_listing_highlighted(self) -> None:
        self.refresh_bindings()

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        event.stop()
        title = "Key quorum" if isinstance(event.row, KeyQuorum) else "Signer"
        self.app.push_screen(Shown(title, in_full(event.row, self._list.rows, self._rules)))

    def action_change(self, act: Act) -> None:
        """Ask about the one under the cursor."""
        if (one := self._list.row) is not None:
            self.app.push_screen(ChangeSigner(one, self._agent, act), self._report_change)

    def _report_change(self, one: Named | None) -> None:
        if one is not None:
            self.app.tell(f"{name_of(one)} is {one.status}.")
            self.reload()

    @property
    def _list(self) -> Listing[Named]:
        return self.query_one(Listing)


def _state(one: Named) -> Cell:
    return one.status if one.status == "active" else (one.status, "warn" if one.status == "paused" else "quiet")

"""Pausing, resuming and revoking an agent's signer or key quorum."""

from typing import Final, Literal

from textual.app import ComposeResult

from console.agents.signers_in_words import kind_of, name_of, permissions_of
from console.dialogs.careful import Careful
from console.widgets.line_view import LineView
from console.wire.shapes_signers import KeyQuorum, Named, Signer
from words.shapes import Agent
from words.texts.lines import Line

Act = Literal["pause", "resume", "revoke"]
_MEANS: Final[dict[Act, list[Line]]] = {
    "pause": [Line("It authorises nothing until it is resumed, alone or in a quorum.", "bad")],
    "resume": [Line("From then on what it authorises is signed again, as far as the agent's rules let it.", "warn")],
    "revoke": [
        Line("It authorises nothing any more, alone or in a quorum. This cannot be undone.", "bad"),
        Line("A quorum of which it is a member counts it no more, and may then be out of reach."),
    ],
}


class ChangeSigner(Careful[Named]):
    """Answers with it as it is then."""

    LEAVING = "The outcome is unknown; the list will show it."

    def __init__(self, one: Named, agent: Agent, act: Act) -> None:
        super().__init__()
        self._one, self._agent, self._act = one, agent, act
        what = "key quorum" if isinstance(one, KeyQuorum) else "signer"
        self.TITLE_TEXT = f"{act.capitalize()} this {what}?"
        self.CONFIRM = act.capitalize()
        self.VARIANT = "warning" if act == "resume" else "error"

    def essentials(self) -> ComposeResult:
        one = self._one
        yield LineView(
            [
                Line(f"agent    {self._agent.name} ({self._agent.id})"),
                Line(f"name     {name_of(one)}"),
                Line(f"id       {one.id}"),
                Line(f"is       {kind_of(one)}, {one.status}"),
                Line(f"may authorise: {permissions_of(one)}"),
                Line(""),
                *_MEANS[self._act],
            ]
        )

    async def perform(self) -> Named:
        one = self._one
        place = "key-quorums" if isinstance(one, KeyQuorum) else "signers"
        shape: type[Named] = KeyQuorum if isinstance(one, KeyQuorum) else Signer
        path = f"/agents/{self._agent.id}/{place}/{one.id}"
        if self._act == "revoke":
            return await self.send("DELETE", path, shape)
        body = {"status": "paused" if self._act == "pause" else "active"}
        return await self.send("PATCH", path, shape, body)

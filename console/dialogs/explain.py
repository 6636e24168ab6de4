"""A trial of the credential routes: the one that a request would fall to. Nothing is sent and nothing is written."""

from collections.abc import Mapping
from typing import ClassVar

import msgspec
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input

from console.dialogs.ask import Ask
from console.widgets.plain_text import PlainText
from console.wire.failures import Answered
from console.wire.shapes_secrets import Explanation


class Request(msgspec.Struct, frozen=True):
    """A request of an agent, as somebody typed it."""

    agent: str = ""
    method: str = "GET"
    url: str = ""


class Explain(Ask[tuple[Request, Explanation]]):
    """Answers with what was asked and what the API said of it."""

    DEFAULT_CSS = """
    Explain .field { height: 1; margin-top: 1; }
    Explain .field PlainText { width: 8; color: $text-muted; }
    Explain .field Input { width: 1fr; background: $panel; padding: 0 1; }
    Explain .field Input:focus { background: $primary-darken-1; }
    """
    TITLE_TEXT = "Which route would a request match?"
    CONFIRM = "Explain"
    LEAVING = ""
    # The fields in the order of the screen, with the API's names for them.
    FIELDS: ClassVar[Mapping[str, str]] = {"agent": "agentId", "method": "method", "url": "url"}

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    def essentials(self) -> ComposeResult:
        yield PlainText("Nothing is sent: this evaluates the proxy's rules for such a request.")

    def fields(self) -> ComposeResult:
        hints = {"agent": "the agent's id", "method": "GET", "url": "https://host/path"}
        for name, hint in hints.items():
            with Horizontal(classes="field"):
                yield PlainText(name.upper() if name == "url" else name.capitalize())
                yield Input(getattr(self._request, name), placeholder=hint, compact=True, id=name)

    def on_mount(self) -> None:
        self.query_one("#url" if self._request.agent else "#agent", Input).focus()

    async def perform(self) -> tuple[Request, Explanation]:
        typed = {name: self.query_one(f"#{name}", Input).value.strip() for name in self.FIELDS}
        body = {self.FIELDS[name]: value for name, value in typed.items()}
        try:
            found = await self.app.client.send("POST", "/secrets/routes/explain", Explanation, body)
        except Answered as failure:
            self._point_at(failure)
            raise
        return Request(**typed), found

    def _point_at(self, failure: Answered) -> None:
        named = failure.data.get("fields")
        for name, theirs in self.FIELDS.items():
            if isinstance(named, list) and theirs in named:
                self.query_one(f"#{name}", Input).focus()
                return

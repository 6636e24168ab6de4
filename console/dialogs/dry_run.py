"""Trying out a typed-in order: what signing would come to now. Nothing is signed or written."""

from dataclasses import replace
from typing import Final

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Button, Input, TextArea

from console.dialogs.ask import Ask
from console.orders.order_context import fetch_context
from console.rules.dry_run_in_words import data_of, dry_run_in_words, order_of
from console.rules.typed_order import (
    BITCOIN,
    EVM,
    MESSAGE,
    SOLANA,
    TYPED_DATA,
    BadField,
    coin_of,
    field_of,
    question,
    said_back,
)
from console.widgets.choice import Choice
from console.widgets.line_view import LineView
from console.widgets.pasted_text import PastedText
from console.widgets.plain_text import PlainText
from console.widgets.typed_field import TypedField
from console.wire.failures import Answered, Failure
from console.wire.shapes_agents import Account, Simulated
from console.work import work
from words.shapes import Agent
from words.texts.lines import Line

_KINDS: Final = (
    (EVM, "EVM"),
    (TYPED_DATA, "typed data"),
    (MESSAGE, "message"),
    (SOLANA, "Solana"),
    (BITCOIN, "Bitcoin PSBT"),
)
# The fields for JSON, with what is pasted into each.
_PASTED: Final = {
    "document": "paste the document: domain, types, primaryType, message",
    "body": 'paste the body: {"chainFamily": "evm", "message": "…"}',
}
# Which field says the chain of an amount.
_AMOUNTS: Final = {"value": (EVM, "chain"), "declared": (SOLANA, "cluster")}
_OUTDATED: Final = "The input has changed. Press Enter to simulate it."


class DryRun(Ask[list[Line]]):
    """A form that stays open with the answer beside it, or, in a narrow terminal, over it until Esc."""

    TITLE_TEXT = "Simulate a transaction: nothing is signed or written"
    CONFIRM = "Try"
    LEAVING = ""
    # In CSS, not DEFAULT_CSS: it must win over what the application says of every question.
    CSS = """
    DryRun #question { width: 96%; max-width: 160; height: 96%; max-height: 96%; padding: 0 1; }
    DryRun #question-title { margin-bottom: 0; }
    DryRun #essentials { max-height: 2; margin-bottom: 1; }
    DryRun #question-trouble { margin-top: 0; }
    DryRun #answers { margin-top: 0; }
    """
    DEFAULT_CSS = """
    DryRun #dry-run { height: 1fr; }
    DryRun #dry-form { width: 58; padding-right: 1; }
    DryRun #dry-answer { width: 1fr; padding-left: 1; border-left: solid $panel; scrollbar-size-vertical: 1; }
    DryRun Choice { margin-bottom: 1; }
    DryRun .dry-kind { height: auto; }
    DryRun #dry-typed_data, DryRun #dry-message { height: 1fr; }
    DryRun TextArea { height: 1fr; min-height: 5; }
    DryRun .dry-wrong { height: auto; color: $text-error; }
    DryRun.-narrow #dry-form { width: 1fr; }
    DryRun.-narrow #dry-answer { display: none; border-left: none; padding-left: 0; }
    DryRun.-narrow.-answered #dry-answer { display: block; }
    DryRun.-narrow.-answered #dry-form { display: none; }
    """

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self._agent = agent
        self._kind = EVM
        # What is, or was last, asked about: the kind and everything that was typed.
        self._asked: tuple[str, dict[str, str]] | None = None

    def essentials(self) -> ComposeResult:
        yield PlainText(f"as {self._agent.name} ({self._agent.id})")

    def fields(self) -> ComposeResult:
        with Horizontal(id="dry-run"):
            with VerticalScroll(id="dry-form", can_focus=False):
                yield Choice(_KINDS, id="kind")
                with Vertical(id="dry-evm", classes="dry-kind"):
                    yield TypedField("to", "to", "0x…")
                    yield TypedField("value", "value", "0, 0.5, 0.5 ETH, 20 wei")
                    yield TypedField("chain", "chain id", "empty: the service's own")
                    yield TypedField("data", "data", "0x…, empty for a plain payment")
                with Vertical(id="dry-typed_data", classes="dry-kind"):
                    yield from self._paste_field("document")
                with Vertical(id="dry-message", classes="dry-kind"):
                    yield from self._paste_field("body")
                with Vertical(id="dry-solana", classes="dry-kind"):
                    yield TypedField("transaction", "message", "base64")
                    yield TypedField("recipient", "to", "the recipient's address")
                    yield TypedField("declared", "value", "0, 0.5, 0.5 SOL, 20 lamports")
                    yield TypedField("cluster", "chain id", "101 is mainnet, 102 devnet")
                with Vertical(id="dry-bitcoin", classes="dry-kind"):
                    yield TypedField("scope", "scope", "bitcoin:mainnet:p2wpkh:0:0:0")
                    yield TypedField("psbt", "PSBT", "base64")
            with VerticalScroll(id="dry-answer", can_focus=True):
                yield LineView([Line("The result appears here.", "quiet")])

    def on_mount(self) -> None:
        self._show_kind()
        # A form and its answer need the lines.
        for button in self.query(Button):
            button.compact = True
        self.query_one("#to", Input).focus()
        work(self, "prefill", self._prefill, exclusive=False)

    def on_choice_changed(self, event: Choice.Changed) -> None:
        event.stop()
        self._kind = event.choice.value
        self._show_kind()
        self._outdate()

    def on_pasted_text_submitted(self) -> None:
        self.action_confirm()

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        self._outdate()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        for field, (kind, chain) in _AMOUNTS.items():
            if event.input.id in (field, chain):
                typed = self._field(field).text
                coin = coin_of(kind, self._field(chain).text.strip())
                self._field(field).note(said_back(field, typed, coin) if typed.strip() else "")
        if event.input.id not in _AMOUNTS:
            self._field(event.input.id or "").note("")
        self._outdate()

    def action_step_back(self) -> None:
        # In a narrow terminal the answer lies over the form: back to it first.
        if self._hides_form():
            self.set_class(False, "-answered")
            self._name_enter()
            self.query_one("#to" if self._kind == EVM else "#kind").focus()
        else:
            super().action_step_back()

    def on_resize(self) -> None:
        self._name_enter()

    def action_confirm(self) -> None:
        if self._hides_form():
            self.action_step_back()
        else:
            super().action_confirm()

    async def perform(self) -> list[Line]:
        self._forget_notes()
        kind, given = self._asked = self._stands
        try:
            body = question(kind, given)
            path = f"/vault/{self._agent.id}/simulate"
            answer = await self.app.client.send("POST", path, Simulated, body)
        except BadField as bad:
            self._point_at(bad.field, bad.sentence)
            raise Failure("Not sent: correct the marked field.") from None
        except Answered as failure:
            if field := field_of(kind, failure.data):
                if self._asked != self._stands:
                    raise Failure(_OUTDATED) from None
                self._point_at(field, failure.sentence)
            raise
        order = order_of(self._agent, body, answer)
        known = replace(await fetch_context(self.app.client, order), data=data_of(body))
        return dry_run_in_words(order, answer, known)

    def conclude(self, result: list[Line]) -> None:
        if self._asked != self._stands:
            # The fields can be changed while it is asked.
            self._say(_OUTDATED)
            return
        self._say("")
        self.query_one("#dry-answer LineView", LineView).show(result)
        self.query_one("#dry-answer").scroll_home(animate=False)
        self.set_class(True, "-answered")
        self._name_enter()
        if self._hides_form():
            self.query_one("#dry-answer").focus()

    def _outdate(self) -> None:
        """An answer stands beside what it was asked for, or not at all."""
        if self.has_class("-answered"):
            self.query_one("#dry-answer LineView", LineView).show([Line(_OUTDATED, "warn")])
            self.set_class(False, "-answered")

    def _name_enter(self) -> None:
        """Name on its button what Enter does now."""
        button = self.query_one("#confirm", Button)
        button.label = "Change it (Enter)" if self._hides_form() else f"{self.CONFIRM} (Enter)"
        button.refresh(layout=True)

    @property
    def _stands(self) -> tuple[str, dict[str, str]]:
        """The values in the form now."""
        return self._kind, self._values()

    def _values(self) -> dict[str, str]:
        typed = {field.id or "": field.text for field in self.query(TypedField)}
        return {name.removeprefix("field-"): text for name, text in typed.items()} | {
            name: self.query_one(f"#{name}", TextArea).text for name in _PASTED
        }

    def _paste_field(self, name: str) -> ComposeResult:
        yield PastedText(placeholder=_PASTED[name], id=name)
        yield PlainText("", id=f"{name}-wrong", classes="dry-wrong")

    def _point_at(self, field: str, sentence: str) -> None:
        if field in _PASTED:
            self.query_one(f"#{field}-wrong", PlainText).update(f"! {sentence}")
        else:
            self._field(field).note(sentence, wrong=True)
        self.query_one(f"#{field}").focus()

    def _forget_notes(self) -> None:
        for name in _PASTED:
            self.query_one(f"#{name}-wrong", PlainText).update("")
        for field in self.query(TypedField):
            if (field.id or "").removeprefix("field-") not in _AMOUNTS:
                field.note("")

    def _field(self, name: str) -> TypedField:
        return self.query_one(f"#field-{name}", TypedField)

    def _hides_form(self) -> bool:
        return self.has_class("-answered") and self.has_class("-narrow")

    def _show_kind(self) -> None:
        for kind, _ in _KINDS:
            self.query_one(f"#dry-{kind}").display = kind == self._kind

    async def _prefill(self) -> None:
        """Write the service's own chain where none is typed, so that amounts have a name; it can do without."""
        try:
            account = await self.app.client.get(f"/agents/{self._agent.id}/account", Account)
        except Failure:
            return
        line = self.query_one("#chain", Input)
        if not line.value and self._asked is None:
            line.value = str(account.portfolio.chain_id)

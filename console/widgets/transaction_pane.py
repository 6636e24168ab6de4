"""The pane of one transaction: what it does, what became of it, and what is known around it once one rests there."""

from typing import Any

from textual.timer import Timer

from console.application import Application
from console.orders.order_context import fetch_context
from console.widgets.order_pane import OrderPane
from console.wire.failures import Failure
from console.work import work
from words.orders.order import Known, of_transaction
from words.orders.outcome_lines import outcome_lines
from words.shapes import Transaction


class TransactionPane(OrderPane):
    """Draws at once what the list knows, and asks for the rest when the cursor has come to rest."""

    app: Application

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._row: Transaction | None = None
        self._agent_name = ""
        # What is known, and the row that it was asked for: a newer one knows better what became of it.
        self._found: tuple[Transaction, Known] | None = None
        self._rest: Timer | None = None

    def look_at(self, row: Transaction | None, agent_name: str = "") -> None:
        """Show this one; or none."""
        self._row, self._agent_name = row, agent_name
        self._draw()
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(self.app.rest, self._ask)

    def look_again(self) -> None:
        """Fetch its context again."""
        self._found = None
        self._ask()

    def _ask(self) -> None:
        row = self._row
        if row is not None and (self._found is None or self._found[0] != row):
            work(self, "around", self._fetch, row)

    async def _fetch(self, row: Transaction) -> None:
        try:
            known = await fetch_context(self.app.client, of_transaction(row))
        except Failure as failure:
            if self.app.signed_out(failure):
                return
            known = Known(trouble=failure.sentence)
        self._found = row, known
        self._draw()

    def _draw(self) -> None:
        row = self._row
        if row is None:
            self.show(None)
            return
        asked_for, known = self._found or (row, None)
        if asked_for.id != row.id:
            known = None
        newest = known.transaction if known and known.transaction and asked_for == row else row
        self.show(of_transaction(newest, self._agent_name), known, outcome=outcome_lines(newest))

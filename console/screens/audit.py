"""The audit trail: searched by what one types, page by page."""

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll

from console.screens.guarded import GuardedPage
from console.widgets.filter_line import FilterLine
from console.widgets.listing import Column, Listing
from console.widgets.plain_text import PlainText
from console.wire.failures import Answered, Forbidden
from console.wire.shapes_audit import AuditEvent, AuditPage, in_full
from words.texts import filters
from words.texts.fields import pluralize
from words.texts.moments import moment

PAGE = 100
AHEAD = 30
# Behind a page the API counts so many rows and no further.
COUNTED = 1_000
KINDS = frozenset({"user", "agent", "system"})


class Audit(GuardedPage):
    """Rows, newest first, and everything about the one under the cursor."""

    PLACE = "audit"
    WHAT = "The audit trail is"
    EVERY_SECONDS = 5.0
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Search", key_display="/"),
        Binding("r", "reload", "Reload"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._query: dict[str, str] = {}
        self._refused = False
        self._rows: dict[int, AuditEvent] = {}
        self._total = 0
        self._more = False

    def inside(self) -> ComposeResult:
        yield FilterLine(
            "/ filters: action:tx.* actor:user:ID resource:agent:ID from:7d to:1d meta.kind:evm", self._fields
        )
        yield PlainText("", id="caption")
        with Container(id="both"):
            yield Listing[AuditEvent](
                [
                    Column("Number", lambda row: str(row.seq), 8, right=True),
                    Column("Time (UTC)", lambda row: _time(row.created_at), 14),
                    Column("Action", lambda row: row.action, 14, 3),
                    Column("Actor", lambda row: f"{row.actor_type} {row.actor_id}", 12, 3),
                    Column("Resource", lambda row: f"{row.resource_type} {row.resource_id}", 10, 2),
                ],
                lambda row: str(row.seq),
                empty="Loading…",
                id="rows",
            )
            with VerticalScroll(id="row-pane", can_focus=True):
                yield PlainText("", id="row")

    def on_mount(self) -> None:
        self.watch(self._listing, "scroll_y", self._look_ahead, init=False)

    async def ask(self) -> None:
        """The newest page; rows never change, so what is loaded already stays below it, unless there is a gap."""
        try:
            found = await self._page(1)
        except Forbidden:
            raise
        except Answered as refusal:
            if refusal.status != 400:
                raise
            # What was typed cannot be searched for.
            self._refuse(refusal)
            return
        if self._refused:
            self._refused = False
            self.query_one(FilterLine).trouble("")
        fresh = {row.seq: row for row in found.data}
        whole = found.pagination.total <= len(fresh)
        self._rows = fresh if whole or not fresh.keys() & self._rows.keys() else self._rows | fresh
        self._total = found.pagination.total
        self._show()
        while self._more and len(self._rows) < self._total:
            self._more = False
            older = await self._page(len(self._rows) // PAGE + 1)
            self._rows |= {row.seq: row for row in older.data}
            self._total = older.pagination.total
            self._show()

    def on_listing_highlighted(self, event: Listing.Highlighted) -> None:
        self.query_one("#row", PlainText).update(in_full(event.row) if event.row else "")
        self.query_one("#row-pane", VerticalScroll).scroll_home(animate=False)
        self._look_ahead()

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        self.query_one("#row-pane").focus()

    def on_filter_line_asked(self, event: FilterLine.Asked) -> None:
        self._query = event.query
        self._refused = False
        # What another search found must not be read as found by this one.
        self._rows, self._total, self._more = {}, 0, False
        self._listing.empty = "Loading…"
        self._listing.show([])
        self.query_one("#caption", PlainText).update("")
        self._listing.focus()
        self.reload()

    def on_filter_line_left(self) -> None:
        self._listing.focus()

    def action_filter(self) -> None:
        self.query_one(FilterLine).enter()

    async def _page(self, number: int) -> AuditPage:
        return await self.app.client.get("/audit/events", AuditPage, page=number, limit=PAGE, **self._query)

    def _fields(self) -> dict[str, filters.Reader]:
        return {
            "action": filters.beginning("action", "actionPrefix"),
            "actor": filters.kind_and_id(KINDS, "actorType", "actorId"),
            "resource": filters.kind_and_id(None, "resourceType", "resourceId"),
            "request": filters.exactly("requestId"),
            "from": filters.time("from", "dateFrom", self.app.now),
            "to": filters.time("to", "dateTo", self.app.now, end=True),
            "meta.": filters.exactly("metadata."),
        }

    def _refuse(self, refusal: Answered) -> None:
        """Show at the line why the API does not search for it; earlier rows are not shown as its answer."""
        self._refused = True
        self.query_one(FilterLine).trouble(refusal.sentence)
        self._rows, self._total = {}, 0
        self._show()

    def _show(self) -> None:
        listing = self._listing
        listing.empty = "No row matches the filter." if self._query else "No rows."
        listing.show([self._rows[seq] for seq in sorted(self._rows, reverse=True)])
        least = "at least " if self._total >= COUNTED else ""
        count = f"{least}{pluralize(self._total, 'row', 'rows')}, newest first"
        self.query_one("#caption", PlainText).update(count if self._rows else "")

    def _look_ahead(self, *_: Any) -> None:
        if not self._more and self._listing.ends_within(AHEAD) and 0 < len(self._rows) < self._total:
            self._more = True
            self.reload()

    @property
    def _listing(self) -> Listing[AuditEvent]:
        return self.query_one("#rows", Listing)


def _time(text: str) -> str:
    found = moment(text)
    return found.strftime("%m-%d %H:%M:%S") if found else "-"

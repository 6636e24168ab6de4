"""Webhooks: where events go, what became of each delivery, and sending one again."""

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from console.dialogs.send_again import Replay, Retry
from console.dialogs.shown import Shown
from console.screens.guarded import GuardedPage
from console.widgets.filter_line import FilterLine
from console.widgets.listing import Column, Listing
from console.widgets.plain_text import PlainText
from console.wire.failures import Answered
from console.wire.shapes_webhooks import (
    Delivery,
    Endpoint,
    delivery_state,
    delivery_text,
    endpoint_state,
    endpoint_text,
    pause,
)
from words.texts import filters
from words.texts.fields import pluralize
from words.texts.moments import ago, moment
from words.texts.plain import short

# The list's own line for nothing needs more room than a list without rows takes.
NO_ENDPOINTS = "No endpoints: no events are delivered. Create one with POST /webhooks."
PAGE = 100
# Beyond this a filter finds what one looks for, and looking live would ask for too much.
MOST = 2_000
# So many lines before the end of what is loaded the next page is fetched.
AHEAD = 30
FIELDS: dict[str, filters.Reader] = {
    "status": filters.one_of(
        "status", "status", failed="failed", delivered="delivered", pending="pending", processing="processing"
    ),
    "event": filters.exactly("eventType"),
    "error": filters.one_of("error", "hasError", yes="true", no="false"),
}


class Webhooks(GuardedPage):
    """Endpoints above, the deliveries of the one under the cursor below."""

    PLACE = "webhooks"
    WHAT = "Webhooks are"
    EVERY_SECONDS = 3.0
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "send_again('retry')", "Retry"),
        Binding("y", "send_again('replay')", "Replay"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("r", "reload", "Reload"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._endpoint: Endpoint | None = None
        self._query: dict[str, str] = {}
        self._refused = False
        self._most = PAGE
        self._total = 0
        self._at_least = False

    def inside(self) -> ComposeResult:
        yield Listing[Endpoint](
            [
                Column("Address", lambda one: one.url, 16, 3),
                Column("State", endpoint_state, 12, 2),
                Column("Events", lambda one: ", ".join(one.events), 12, 2),
                Column("Retries", pause, 16, wide=True),
                Column("Made", lambda one: self._ago(one.created_at), 5, right=True),
            ],
            lambda one: one.id,
            empty="",
            id="endpoints",
        )
        yield PlainText("", id="caption", classes="caption")
        yield FilterLine("/ filters: status:failed event:tx.signed error:yes", lambda: FIELDS)
        yield Listing[Delivery](
            [
                Column("Event", lambda one: one.event_type, 16, 1),
                Column("State", lambda one: delivery_state(one, self.app.now()), 30, 1),
                Column("Tries", lambda one: f"{one.attempts} of {one.max_attempts}", 7, right=True),
                Column("Error", lambda one: ("yes", "bad") if one.has_error else "no", 5),
                Column("Made", lambda one: self._ago(one.created_at), 5, right=True),
                Column("Delivered", lambda one: self._ago(one.delivered_at), 9, right=True, wide=True),
                Column("Replay of", lambda one: short(one.replayed_from_delivery_id or "-"), 14, wide=True),
            ],
            lambda one: one.id,
            empty="Loading…",
            id="deliveries",
        )

    def on_mount(self) -> None:
        self.watch(self._deliveries, "scroll_y", self._look_ahead, init=False)

    async def ask(self) -> None:
        client = self.app.client
        self._endpoints.show(await client.get("/webhooks", list[Endpoint]))
        self._endpoint = self._endpoints.row
        try:
            deliveries = await self._read(self._endpoint)
        except Answered as refusal:
            if refusal.status != 400:
                raise
            # What cannot be filtered by stands at the line; what was found before is not shown as its answer.
            self._refused = True
            self.query_one(FilterLine).trouble(refusal.sentence)
            deliveries, self._total, self._at_least = [], 0, False
        else:
            if self._refused:
                self._refused = False
                self.query_one(FilterLine).trouble("")
        none_yet = "No deliveries yet." if self._endpoint else ""
        self._deliveries.empty = "No delivery matches the filter." if self._query and self._endpoint else none_yet
        self._deliveries.show(deliveries)
        self._draw_caption()

    async def _read(self, endpoint: Endpoint | None) -> list[Delivery]:
        client, deliveries, cursor, self._total = self.app.client, dict[str, Delivery](), None, 0
        while endpoint is not None and len(deliveries) < self._most:
            page = await client.get_page(
                f"/webhooks/{endpoint.id}/deliveries", Delivery, limit=PAGE, cursor=cursor, **self._query
            )
            self._total, self._at_least, cursor = page.total, page.at_least, page.cursor
            before = len(deliveries)
            deliveries |= {one.id: one for one in page.items}
            if len(deliveries) == before or cursor is None:
                break
        return list(deliveries.values())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "send_again" and (
            self.app.client.read_only or self.has_class("-closed") or not self._deliveries.rows
        ):
            return False
        return super().check_action(action, parameters)

    def on_listing_highlighted(self, event: Listing.Highlighted) -> None:
        if event.listing is self._endpoints and event.row != self._endpoint:
            if self._endpoint is None or event.row is None or event.row.id != self._endpoint.id:
                self._start_anew()
            self.reload()
        elif event.listing is self._deliveries:
            self._look_ahead()

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        if isinstance(event.row, Endpoint):
            self.app.push_screen(Shown("Webhook", endpoint_text(event.row)))
        else:
            text = delivery_text(event.row, self._endpoint.url if self._endpoint else "-", self.app.now())
            self.app.push_screen(Shown("Delivery", text))

    def on_filter_line_asked(self, event: FilterLine.Asked) -> None:
        self._query = event.query
        self._refused = False
        self._start_anew()
        self._deliveries.focus()
        self.reload()

    def on_filter_line_left(self) -> None:
        self._deliveries.focus()

    def action_filter(self) -> None:
        self.query_one(FilterLine).enter()

    async def action_send_again(self, act: str) -> None:
        delivery, endpoint = self._deliveries.row, self._endpoint
        if delivery is None or endpoint is None:
            self.app.tell("No delivery is selected.")
            return
        question = (Retry if act == "retry" else Replay)(delivery, endpoint, self.app.now())
        self.app.push_screen(question, self._sent_again)

    def _sent_again(self, answer: Delivery | None) -> None:
        if answer is not None:
            new = answer.replayed_from_delivery_id is not None
            self.app.tell("A new delivery was queued." if new else "The delivery is being retried.")
            self.reload()

    def _start_anew(self) -> None:
        # What went to another address, or what another filter found, must not be read as what is asked for now.
        self._deliveries.empty = "Loading…"
        self._deliveries.show([])
        self.query_one("#caption", PlainText).update("")
        self._most, self._total = PAGE, 0

    def _look_ahead(self, *_: Any) -> None:
        listing = self._deliveries
        seen = max(listing.position, round(listing.scroll_y) + listing.size.height)
        if self._most <= seen + AHEAD and self._most <= len(listing.rows) < min(self._total, MOST):
            self._most += PAGE
            self.reload()

    def _draw_caption(self) -> None:
        shown, count = len(self._deliveries.rows), pluralize(self._total, "delivery", "deliveries")
        count = f"at least {count}" if self._at_least else count
        count = count if shown == self._total else f"the newest {shown:,} of {count}"
        where = f" to {self._endpoint.url}" if self._endpoint else ""
        self.query_one("#caption", PlainText).update(f"{count}{where}" if self._endpoint else NO_ENDPOINTS)

    def _ago(self, text: str | None) -> str:
        return ago(moment(text), self.app.now())

    @property
    def _endpoints(self) -> Listing[Endpoint]:
        return self.query_one("#endpoints", Listing)

    @property
    def _deliveries(self) -> Listing[Delivery]:
        return self.query_one("#deliveries", Listing)

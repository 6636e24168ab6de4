"""The first two lines of every screen: whose console this is, and where one can go."""

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import reactive

from console.widgets.plain_text import PlainText

# In the order of their keys, 1 and on.
PLACES = (
    ("approvals", "Approvals"),
    ("agents", "Agents"),
    ("transactions", "Transactions"),
    ("policies", "Policies"),
    ("webhooks", "Webhooks"),
    ("secrets", "Secrets"),
    ("audit", "Audit"),
)

# Cells beside a name.
_AROUND = 2


class Heading(PlainText):
    """Profile, service, person; and what is special about this start."""

    DEFAULT_CSS = "Heading { height: 1; padding: 0 1; background: $panel; color: $text-muted; text-wrap: nowrap; }"


class Place(PlainText):
    """One place of the navigation; a click goes there."""

    DEFAULT_CSS = """
    Place { width: auto; padding: 0 1; color: $text-muted; }
    Place:hover { text-style: underline; }
    Place.-here { color: $text; background: $primary-muted; text-style: bold; }
    """

    class Clicked(Message):
        """Go there."""

        def __init__(self, place: str) -> None:
            self.place = place
            super().__init__()

    def __init__(self, place: str, label: str) -> None:
        super().__init__(label, id=f"place-{place}")
        self._place = place

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Clicked(self._place))


class Navigation(Horizontal):
    """The places, with the key of each, and how many approvals wait: always in one line, whatever its length."""

    DEFAULT_CSS = "Navigation { height: 1; background: $surface; }"
    waiting: reactive[int | None] = reactive(None)

    def __init__(self, here: str) -> None:
        super().__init__()
        self._here = here

    def compose(self) -> ComposeResult:
        for place, label in self._labels(self.app.size.width).items():
            shown = Place(place, label)
            shown.set_class(place == self._here, "-here")
            yield shown

    def watch_waiting(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        labels = self._labels(self.size.width or self.app.size.width)
        for place, label in labels.items():
            for shown in self.query(f"#place-{place}").results(Place):
                shown.update(label)

    def _labels(self, width: int) -> dict[str, str]:
        """The longest names that fit; in the narrowest only where one is has a name, and what waits has its number."""
        count = f" ({self.waiting:,})" if self.waiting else ""
        whole = dict(PLACES)
        briefly = whole | {"transactions": "Tx"}
        least = {place: name if place == self._here else "" for place, name in briefly.items()}
        for names in (whole, briefly, least):
            labels = {
                place: f"{number} {name}{count if number == 1 else ''}".rstrip()
                for number, (place, name) in enumerate(names.items(), 1)
            }
            if sum(len(label) + _AROUND for label in labels.values()) <= width:
                break
        return labels

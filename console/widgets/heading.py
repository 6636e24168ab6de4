"""The first two lines of every screen: whose console this is, and where one can go."""

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.reactive import reactive

from console.widgets.plain_text import PlainText

# In the order of their keys, 1 and on.
PLACES = (
    ("approvals", "Approvals"), ("agents", "Agents"), ("transactions", "Transactions"), ("policies", "Policies"),
    ("webhooks", "Webhooks"), ("secrets", "Secrets"), ("audit", "Audit"),
)  # fmt: skip


class Heading(PlainText):
    """Profile, service, person; and what is special about this start."""

    DEFAULT_CSS = "Heading { height: 1; padding: 0 1; background: $panel; color: $text-muted; text-wrap: nowrap; }"


class Place(PlainText):
    """One place of the navigation; a click goes there."""

    DEFAULT_CSS = """
    Place { width: auto; padding: 0 1; color: $text-muted; }
    .-narrow Place { padding: 0 1 0 0; }
    Place:hover { text-style: underline; }
    Place.-here { color: $text; background: $primary-darken-1; text-style: bold; }
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
    """The places, with the key of each, and how many approvals wait."""

    DEFAULT_CSS = "Navigation { height: 1; background: $surface; }"
    waiting: reactive[int | None] = reactive(None)

    def __init__(self, here: str) -> None:
        super().__init__()
        self._here = here

    def compose(self) -> ComposeResult:
        for number, (place, _) in enumerate(PLACES, 1):
            label = Place(place, _label(number, self.waiting))
            label.set_class(place == self._here, "-here")
            yield label

    def watch_waiting(self) -> None:
        for label in self.query("#place-approvals").results(Place):
            label.update(_label(1, self.waiting))


def _label(number: int, waiting: int | None) -> str:
    name = PLACES[number - 1][1]
    return f"{number} {name} ({waiting:,})" if number == 1 and waiting else f"{number} {name}"

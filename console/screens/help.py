"""What the keys do, what the words mean, and what the console never does. Keys come from the bindings themselves."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen

from console.dialogs.ask import Ask
from console.texts.fields import Field
from console.widgets.field_rows import FieldRows
from console.widgets.heading import PLACES
from console.widgets.listing import Listing
from console.widgets.plain_text import PlainText

if TYPE_CHECKING:
    from console.app import Console

WORDS = (
    ("pending", "waits for a person; nothing is signed before somebody approves"),
    (
        "digest",
        "a fingerprint of exactly the order that is shown; each decision carries it, so nothing else is decided",
    ),
    ("hard rule", "an order that fails it is refused at once; nobody can approve it"),
    ("soft rule", "an order that fails it waits for a person"),
    ("UNLIMITED", "an approval for all that the wallet has or will ever have of a token: take it for what it says"),
    ("raw", "an amount in the smallest unit, as the chain counts it; the readable one is made from it"),
    ("opaque", "bytes whose meaning nobody here can tell; approve them only if you can"),
    ("frozen", "nothing is signed for an agent, and nothing goes out through the proxy; what waits, waits on"),
    ("expired", "nobody decided in time; the order counts as denied"),
    ("delivery", "one event on its way to one webhook, over all its attempts"),
    ("retry", "the same delivery once more, under the same id"),
    ("replay", "the same event as a new delivery"),
    ("credential route", "says into which requests of agents the proxy puts a secret, and where"),
    ("second factor", "a code or key beside the sign-in; some things want one that was shown lately"),
)
NEVER = (
    "It never holds a key that signs, and cannot have one shown.",
    "It never shows the value of a secret: the service has no way to ask for one.",
    "It never decides anything but the order on the screen, and never without a question.",
    "It never obeys what is written in a name or a reason: what a terminal would obey is written out, like \\x1b.",
    "With --read-only it changes nothing; you sign in and out, and show a second factor, all the same.",
    "It never acts by itself: it only looks again, every few seconds.",
)


class Help(ModalScreen[None]):
    """Scrolls; `?` and esc close it."""

    DEFAULT_CSS = """
    Help { align: center middle; background: $background 60%; }
    Help > Vertical { width: 94%; max-width: 110; height: 92%; padding: 1 2; background: $surface;
        border: tall $primary; }
    Help #help-title { text-style: bold; margin-bottom: 1; }
    Help #help-close { color: $text-muted; margin-top: 1; }
    Help .help-heading { text-style: bold; color: $text-accent; margin-top: 1; }
    Help VerticalScroll { scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,f1,q", "dismiss", "Close", show=False)]
    app: "Console"

    def compose(self) -> ComposeResult:
        with Vertical():
            yield PlainText("Help", id="help-title")
            with VerticalScroll():
                for heading, fields in self._parts():
                    yield PlainText(heading, classes="help-heading")
                    yield FieldRows(fields)
                yield PlainText("What the console never does", classes="help-heading")
                yield PlainText("\n".join(NEVER))
            yield PlainText("↑ ↓ scroll, Esc closes", id="help-close")

    def _parts(self) -> Iterator[tuple[str, Sequence[Field]]]:
        # The place one comes from goes first: that is what one asks about.
        here = self.app.current_mode
        places = {place: (name, self._keys(_of_mode(self.app.MODES[place]))) for place, name in PLACES}
        if here in places:
            name, keys = places.pop(here)
            yield f"{name} (you are here)", keys
        yield "Everywhere", self._keys(_bindings(type(self.app)))
        yield "In lists", self._keys(_bindings(Listing))
        yield "In questions", self._keys(_bindings(Ask))
        yield from (part for part in places.values() if part[1])
        yield "Words", WORDS

    def _keys(self, bindings: Iterable[Binding]) -> list[Field]:
        shown = dict[tuple[str, str], list[str]]()
        for one in bindings:
            shown.setdefault((one.action, one.description), []).append(self.app.get_key_display(one))
        return [(" ".join(dict.fromkeys(keys)), what) for (_, what), keys in shown.items()]


def _of_mode(screen: Any) -> Iterator[Binding]:
    """A place's own bindings and those that it shares with some others."""
    for kind in screen.__mro__:
        if kind.__module__.startswith("console."):
            yield from _bindings(kind)


def _bindings(kind: Any) -> Iterator[Binding]:
    yield from Binding.make_bindings(kind.__dict__.get("BINDINGS", ()))

"""Keys, terms, and what the console never does. Keys come from the bindings themselves."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen

from console.dialogs.ask import Ask
from console.dialogs.careful import Careful
from console.widgets.field_rows import FieldRows
from console.widgets.heading import PLACES
from console.widgets.listing import Listing
from console.widgets.plain_text import PlainText
from words.texts.fields import Field

WORDS = (
    ("pending", "waiting for a decision; not signed unless a person approves"),
    (
        "digest",
        "a fingerprint of exactly the order shown; each decision includes it, so it applies to no other order",
    ),
    ("hard rule", "an order that fails it is refused at once; approval is not possible"),
    ("soft rule", "an order that fails it needs approval"),
    (
        "votes",
        "named people agree, each with a key of their own on their own machine; below the number nothing is signed",
    ),
    ("signer", "somebody else who must agree to what an agent asks; the API makes and changes them, u lists them"),
    ("UNLIMITED", "a permission to spend all of a token that the wallet has or will ever have"),
    ("raw", "an amount in the smallest unit of the chain; the readable amount is derived from it"),
    ("unread", "bytes that cannot be decoded here; approve them only if you know their meaning"),
    ("frozen", "no order is signed and no request is proxied; pending approvals stay pending"),
    ("expired", "not decided in time; the order counts as denied"),
    ("delivery", "one event sent to one webhook, with all its attempts"),
    ("retry", "the same delivery again, under the same id"),
    ("replay", "the same event as a new delivery"),
    ("credential route", "defines into which requests the proxy puts a secret, and where"),
    ("second factor", "a code or passkey besides the sign-in; some actions require a recent one"),
)
NEVER = (
    "It never holds a signing key, and cannot display one.",
    "It never shows the value of a secret: the service has no API for that.",
    "It never decides anything but the order on the screen, and always asks first.",
    "It never interprets text in a name or a reason: terminal control codes are printed, like \\x1b.",
    "With --read-only it changes nothing; you sign in and out, and show a second factor, all the same.",
    "It never acts on its own: it only refreshes every few seconds.",
)


class Help(ModalScreen[None]):
    """Scrolls; `?` and esc close it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,f1,q", "dismiss", "Close", show=False)]

    def compose(self) -> ComposeResult:
        with Vertical():
            yield PlainText("Help", classes="over-title")
            with VerticalScroll():
                for heading, fields in self._parts():
                    yield PlainText(heading, classes="help-heading")
                    yield FieldRows(fields)
                yield PlainText("What the console never does", classes="help-heading")
                yield PlainText("\n".join(NEVER))
            yield PlainText("↑ ↓ scroll, Esc closes", classes="over-keys")

    def _parts(self) -> Iterator[tuple[str, Sequence[Field]]]:
        # The place one comes from goes first: that is what one asks about.
        here = self.app.current_mode
        places = {place: (name, self._keys(_of_mode(self.app.MODES[place]))) for place, name in PLACES}
        if here in places:
            name, keys = places.pop(here)
            yield f"{name} (you are here)", keys
        yield "Everywhere", self._keys(_bindings(type(self.app)))
        yield "In lists", self._keys(_bindings(Listing))
        yield "In questions", self._keys([*_bindings(Ask), *_bindings(Careful)])
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

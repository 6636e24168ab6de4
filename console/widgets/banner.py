"""Current problems, in one or two lines under the navigation: nothing there is the best news."""

from datetime import datetime, timedelta

from textual.reactive import reactive

from console.application import Application
from console.widgets.plain_text import PlainText
from words.texts.moments import span

# Younger than this nobody calls it old.
_NEW = timedelta(seconds=2)


class Banner(PlainText):
    """Shown only while there is something to say; never takes the focus, never hides what one was looking at."""

    DEFAULT_CSS = """
    Banner {
        display: none; height: auto; max-height: 4; padding: 0 1;
        background: $warning-muted; color: $text-warning;
    }
    Banner.-shown { display: block; }
    """
    away: reactive[str] = reactive("")
    """A sentence about the service that cannot be reached; goes first."""
    known_at: reactive[datetime | None] = reactive(None)
    """Time at which the content of the screen was true."""

    app: Application

    def __init__(self) -> None:
        super().__init__("")
        self._said = ""
        self._trouble = ""
        self._again_at: datetime | None = None

    def on_mount(self) -> None:
        self.set_interval(1, self._draw)

    def say(self, sentence: str, *, again_in: float | None = None) -> None:
        """Say what is wrong with this screen, and when it is asked again by itself; nothing, when it is empty."""
        self._trouble = sentence
        self._again_at = None if again_in is None else self.app.now() + timedelta(seconds=again_in)
        self._draw()

    def watch_away(self) -> None:
        self._draw()

    def watch_known_at(self) -> None:
        self._draw()

    def _draw(self) -> None:
        now = self.app.now()
        sentence = self.away or (self._trouble and with_next_try(self._trouble, self._again_at, now))
        age = now - self.known_at if self.known_at is not None else _NEW
        if sentence and age > _NEW:
            sentence = f"{sentence} The data shown is {span(age)} old."
        shown = f"! {sentence}" if sentence else ""
        if shown != self._said:
            self._said = shown
            self.set_class(bool(sentence), "-shown")
            self.update(shown)


def with_next_try(sentence: str, again_at: datetime | None, now: datetime) -> str:
    """A sentence about what does not work, and when it is asked again."""
    if again_at is None:
        return sentence
    wait = -((now - again_at) // timedelta(seconds=1))
    return f"{sentence} Retrying in {span(timedelta(seconds=wait))}." if wait > 0 else f"{sentence} Asking again."

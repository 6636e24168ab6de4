"""What is wrong, in one or two lines under the navigation: nothing there is the best news."""

from datetime import datetime

from textual.reactive import reactive

from console.widgets.plain_text import PlainText


class Banner(PlainText):
    """Shown only while there is something to say; never takes the focus, never hides what one was looking at."""

    DEFAULT_CSS = """
    Banner { display: none; height: auto; padding: 0 1; background: $warning-muted; color: $text-warning; }
    Banner.-shown { display: block; }
    """
    trouble: reactive[str] = reactive("")
    """A sentence about this screen."""
    away: reactive[str] = reactive("")
    """A sentence about the service that cannot be reached; goes first."""

    def watch_trouble(self) -> None:
        self._draw()

    def watch_away(self) -> None:
        self._draw()

    def _draw(self) -> None:
        sentence = self.away or self.trouble
        self.set_class(bool(sentence), "-shown")
        self.update(f"! {sentence}" if sentence else "")


def away_sentence(sentence: str, *, retry_at: datetime | None, heard_at: datetime | None, now: datetime) -> str:
    """What the banner says while the service is away: since when, and when it is asked again."""
    wait = max(0, int((retry_at - now).total_seconds())) if retry_at else 0
    again = f"Asking again in {wait}s." if wait else "Asking again."
    known = f" What you see is {max(0, int((now - heard_at).total_seconds()))}s old." if heard_at else ""
    return f"{sentence} {again}{known}"

"""A screen that gives an answer and goes, also when another one has come to lie over it meanwhile."""

from textual.screen import Screen


class Closing[Result](Screen[Result]):
    """Only the screen on top can be dismissed: what was answered below another is given once that one has gone."""

    _given: tuple[Result] | None = None

    def close(self, result: Result) -> None:
        """Give the answer and go."""
        self._given = (result,)
        if self.app.screen is self:
            self.dismiss(result)

    def on_screen_resume(self) -> None:
        if self._given is not None and self.app.screen is self:
            self.dismiss(self._given[0])

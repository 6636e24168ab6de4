"""What questions share in which something is decided: they are read to the end before they can be answered."""

from typing import ClassVar, Final

from textual import events
from textual.geometry import Size
from textual.widgets import Button, Input

from console.dialogs.ask import Ask, Essentials
from console.widgets.too_small import TooSmall

MORE_IS_KNOWN: Final = "More has become known: read it from the top."
_LEAST_LINES: Final = 3


class Careful[Result](Ask[Result]):
    """What does not fit into the terminal is read on with the key that would confirm.

    So nobody confirms what they have seen only the beginning of. After each page there is a short pause before the key
    counts, which the button shows; a key pressed in it begins the pause anew, so that one that is held down gets
    nowhere. What changes below one's eyes, and what a terminal of another size has moved, is read from the top.
    """

    LEAVING: ClassVar[str] = "It may have happened or not; the queue will tell."
    # Whether the end must have been on the screen; to refuse something costs nothing.
    TO_THE_END: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._round = 0
        self._was_armed = False
        # What the button says: a key means what stood there when it was pressed.
        self._reads_on = False
        self._finished = False
        self._seen_size: Size | None = None

    @property
    def unread(self) -> bool:
        """Whether the end of the essentials has not been on the screen."""
        area = self._area
        return self.TO_THE_END and not self._finished and round(area.scroll_y) < area.max_scroll_y

    @property
    def _area(self) -> Essentials:
        return self.query_one(Essentials)

    def begin(self) -> None:
        self._wait_again()

    def action_confirm(self) -> None:
        if self._finished or self.stepping_back:
            self.action_step_back()
        elif self._busy or not self._round or self.query_one(TooSmall).display:
            # Busy, not begun, or not to be seen.
            return
        elif not self._drawn:
            self._wait_again()
        elif self.unread:
            self._area.scroll_page_down(animate=False)
            self._wait_again()
        elif self._reads_on:
            self._wait_again()
        else:
            super().action_confirm()

    def on_resize(self, event: events.Resize) -> None:
        before, self._seen_size = self._seen_size, event.size
        if self._round and before not in (None, event.size):
            self._read_again()

    def more_is_known(self) -> None:
        """What is shown is not what it was."""
        if self._was_armed:
            self.tell(MORE_IS_KNOWN)
        self._read_again()

    def finish(self) -> None:
        """Nothing is left to confirm: what became of it is read, and one goes back."""
        self._finished = True
        for field in self.query(Input):
            field.display = False
        self.query_one("#confirm", Button).display = False
        cancel = self.query_one("#cancel", Button)
        cancel.label = "Close (Esc)"
        cancel.focus()

    def draw(self) -> None:
        """Say on the button what its key does now, and below the essentials whether they go on."""
        self._fit()
        button = self.query_one("#confirm", Button)
        self._reads_on = self.unread
        does = "Read on" if self._reads_on else self.CONFIRM
        label = f"{does} (Enter)" if self._drawn else "Read first…"
        if str(button.label) != label:
            button.label = label
            button.refresh(layout=True)
        button.set_class(not self._drawn, "-early")
        area = self._area
        below = round(area.scroll_y) < area.max_scroll_y
        self.query_one("#question").border_subtitle = "▼ more below" if below else ""

    def _say(self, sentence: str, *, busy: bool = False) -> None:
        super()._say(sentence, busy=busy)
        self.call_after_refresh(self.draw)

    def _read_again(self) -> None:
        self._area.scroll_to(y=0, animate=False, immediate=True)
        self._wait_again()

    def _wait_again(self) -> None:
        self._drawn = False
        self._round += 1
        self.draw()
        self.call_after_refresh(self._wait, self._round)

    def _wait(self, turn: int) -> None:
        if pause := self.app.pause:
            self.set_timer(pause, lambda: self._armed(turn))
        else:
            self._armed(turn)

    def _armed(self, turn: int) -> None:
        if turn == self._round:
            self._drawn = self._was_armed = True
            self.draw()

    def _fit(self) -> None:
        """Give the essentials all lines that nothing else of the question needs."""
        frame = self.query_one("#question")
        others = sum(
            child.outer_size.height + child.styles.margin.height
            for child in frame.children if child.display and child.id != "essentials"
        )  # fmt: skip
        area = self._area
        room = max(_LEAST_LINES, self.size.height - frame.gutter.height - others - area.styles.margin.height)
        if area.styles.max_height is None or area.styles.max_height.value != room:
            area.styles.max_height = room

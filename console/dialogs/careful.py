"""The base of questions that decide something: they are read to the end before they can be answered."""

from typing import ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.widgets import Button, Input

from console.dialogs.ask import Ask, Essentials
from console.widgets.too_small import TooSmall
from console.wire.failures import Failure

MORE_IS_KNOWN: Final = "New information has arrived: read it from the top."
_LEAST_LINES: Final = 3


class NotRead(Failure):
    """A warning came that was not on the screen."""


class Careful[Result](Ask[Result]):
    """A question that does not fit into the terminal is read on with the key that would confirm.

    So nobody confirms what they have seen only the beginning of. After each page there is a short pause before the key
    counts, which the button shows; a key pressed during the pause restarts it, so that a key held down gets
    nowhere. What changes below one's eyes, and what a terminal of another size has moved, is read from the top.
    Where a danger is shown the last step has a key of its own: Enter only reads on, and nothing is confirmed by habit.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "accept", "Confirm despite a warning", show=False)]

    LEAVING = "The outcome is unknown; the queue will show it."
    # Whether the end must have been on the screen; to refuse something costs nothing.
    TO_THE_END: bool = True

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
        """True if the end of the essentials has not been on the screen."""
        area = self._area
        return self.TO_THE_END and not self._finished and round(area.scroll_y) < area.max_scroll_y

    @property
    def dangerous(self) -> bool:
        """True if a danger is shown, so that Enter does not confirm."""
        return False

    @property
    def confirm_key(self) -> str:
        return "y" if self.dangerous else super().confirm_key

    @property
    def _area(self) -> Essentials:
        return self.query_one(Essentials)

    def begin(self) -> None:
        self._wait_again()

    def action_confirm(self) -> None:
        if self._finished or self.stepping_back:
            self.action_step_back()
        elif self._not_yet():
            return
        elif self.unread:
            self._area.scroll_page_down(animate=False)
            self._wait_again()
        elif self._reads_on:
            self._wait_again()
        elif self.dangerous:
            self.tell(f"There is a warning above. {self.confirm_key}: {self.CONFIRM}")
        else:
            super().action_confirm()

    def action_accept(self) -> None:
        """Confirm where a danger is shown, once all of it was read; elsewhere the key does nothing."""
        if self._finished or not self.dangerous or self._not_yet():
            return
        if self.unread or self._reads_on:
            self.tell("Read on first (Enter).")
        else:
            self.begin_asking()

    def _not_yet(self) -> bool:
        """Tell whether keys are ignored: busy, not started, not visible, or too early, which restarts the pause."""
        if self._busy or not self._round or self.query_one(TooSmall).display:
            return True
        if not self._is_armed:
            self._wait_again()
            return True
        return False

    def on_resize(self, event: events.Resize) -> None:
        before, self._seen_size = self._seen_size, event.size
        if self._round and before not in (None, event.size):
            self._read_again()

    def more_is_known(self) -> None:
        """Start reading again from the top: the essentials have changed."""
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
        key = "Enter" if self._reads_on else self.confirm_key
        label = f"{does} ({key})" if self._is_armed else "Read first…"
        if str(button.label) != label:
            button.label = label
            button.refresh(layout=True)
        button.set_class(not self._is_armed, "-early")
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
        self._is_armed = False
        self._round += 1
        self.draw()
        self.call_after_refresh(self._wait, self._round)

    def _wait(self, turn: int) -> None:
        if pause := self.app.pause:
            self.set_timer(pause, lambda: self._arm_after(turn))
        else:
            self._arm_after(turn)

    def _arm_after(self, turn: int) -> None:
        if turn == self._round:
            self._is_armed = self._was_armed = True
            self.draw()

    def _fit(self) -> None:
        """Give the essentials all lines that nothing else of the question needs."""
        frame = self.query_one("#question")
        others = sum(
            child.outer_size.height + child.styles.margin.height
            for child in frame.children
            if child.display and child.id != "essentials"
        )
        area = self._area
        room = max(_LEAST_LINES, self.size.height - frame.gutter.height - others - area.styles.margin.height)
        if area.styles.max_height is None or area.styles.max_height.value != room:
            area.styles.max_height = room

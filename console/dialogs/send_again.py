"""Sending an event to a receiver again: the same delivery now, or a new one."""

from datetime import datetime
from typing import ClassVar

from textual.app import ComposeResult

from console.dialogs.ask import Ask
from console.widgets.field_rows import FieldRows
from console.widgets.plain_text import PlainText
from console.wire.failures import Conflicted, Failure
from console.wire.shapes_webhooks import Delivery, Endpoint, delivery_state

# Where another key helps, it is named; the other refusals say it all by themselves.
MEANINGS = {
    "delivery_delivered": "This delivery succeeded. To send its event again, press Esc and y (replay).",
    "retry_budget_used": "This delivery has used all its attempts. To send its event again, press Esc and y (replay).",
    "delivery_under_way": "This delivery is being sent, or waits for its first attempt. Wait for the result first.",
}


class _SendAgain(Ask[Delivery]):
    """Repeats what is sent where."""

    ACT: ClassVar[str] = ""
    MEANS: ClassVar[str] = ""

    def __init__(self, delivery: Delivery, endpoint: Endpoint, now: datetime) -> None:
        super().__init__()
        self._delivery = delivery
        self._endpoint = endpoint
        self._now = now

    def essentials(self) -> ComposeResult:
        delivery = self._delivery
        so_far = f"{delivery_state(delivery, self._now)[0]}, {delivery.attempts} of {delivery.max_attempts} attempts"
        yield FieldRows(
            [
                ("Event", delivery.event_type),
                ("To", self._endpoint.url),
                ("Delivery", delivery.id),
                ("So far", so_far),
            ]
        )
        yield PlainText(f"\n{self.MEANS}")

    async def perform(self) -> Delivery:
        path = f"/webhooks/deliveries/{self._delivery.id}/{self.ACT}"
        try:
            return await self.send("POST", path, Delivery)
        except Conflicted as refusal:
            raise Failure(MEANINGS.get(refusal.code, refusal.sentence)) from None


class Retry(_SendAgain):
    """Try a failed delivery now."""

    TITLE_TEXT = "Try this delivery again now?"
    CONFIRM = "Retry"
    ACT = "retry"
    MEANS = "The same event is sent to this URL at once, under the same delivery id. Its earlier attempts still count."


class Replay(_SendAgain):
    """Send the event of a delivery once more."""

    TITLE_TEXT = "Send this event again?"
    CONFIRM = "Replay"
    ACT = "replay"
    MEANS = (
        "A new delivery of the same event is sent to this URL, with its own id, signature and attempts. The receiver "
        "gets the event twice if the first delivery arrived."
    )

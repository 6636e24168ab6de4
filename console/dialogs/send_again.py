"""Sending an event to a receiver again: the same delivery now, or a new one. Spec 2/3.2, 4.7."""

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
    "delivery_delivered": "This delivery has arrived. To send its event once more, press Esc and y: replay.",
    "retry_budget_used": "This delivery was tried as often as its webhook allows. To send its event once more, press "
    "Esc and y: replay.",
    "delivery_under_way": "This delivery is being sent, or waits for its first attempt. See what becomes of it first.",
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
        yield FieldRows([
            ("Event", delivery.event_type), ("To", self._endpoint.url), ("Delivery", delivery.id), ("So far", so_far),
        ])  # fmt: skip
        yield PlainText(f"\n{self.MEANS}")

    async def perform(self) -> Delivery:
        path = f"/webhooks/deliveries/{self._delivery.id}/{self.ACT}"
        try:
            return await self.app.act(lambda: self.app.client.send("POST", path, Delivery, key=self.key))
        except Conflicted as refusal:
            raise Failure(MEANINGS.get(refusal.code, refusal.sentence)) from None


class Retry(_SendAgain):
    """Try a failed delivery now."""

    TITLE_TEXT = "Try this delivery again now?"
    CONFIRM = "Retry"
    ACT = "retry"
    MEANS = (
        "The same event goes to this address under the same delivery id, at once instead of later. The attempts that "
        "it has had still count."
    )


class Replay(_SendAgain):
    """Send the event of a delivery once more."""

    TITLE_TEXT = "Send this event once more?"
    CONFIRM = "Replay"
    ACT = "replay"
    MEANS = (
        "A new delivery of the same event goes to this address, with an id, a signature and attempts of its own. The "
        "receiver will have heard of the event before if the first one arrived."
    )

"""Asks before approving one item."""

from console.dialogs.deciding import DecidingAtOnce


class Approve(DecidingAtOnce):
    """Answers with what came of it; the item is signed, and sent if its agent wanted that."""

    TITLE_TEXT = "Approve this?"
    CONFIRM = "Approve"
    VARIANT = "success"
    WAY = "approve"

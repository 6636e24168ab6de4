"""What each rule said of an order, in words; what refuses first, then what asks for a person. Pure. Spec 1/2.4."""

from collections.abc import Sequence
from typing import Final

from console.plain import clipped
from console.said import Said
from console.shapes import PolicyResult

# A threshold never refuses: that it did not pass is why somebody is asked, and no fault of the order.
_SOFT: Final = "auto-approve-threshold"
_TYPE_CHARACTERS: Final = 64
_REASON_CHARACTERS: Final = 600


def results(found: Sequence[PolicyResult], *, refused: bool) -> list[Said]:
    """One line for each; where the order was not refused, what did not pass has asked for a person."""
    return [_said(one, refused=refused) for one in sorted(found, key=lambda one: _rank(one, refused=refused))]


def _rank(result: PolicyResult, *, refused: bool) -> int:
    return 2 if result.passed else 1 if _asks(result, refused=refused) else 0


def _asks(result: PolicyResult, *, refused: bool) -> bool:
    return result.type == _SOFT or not refused


def _said(result: PolicyResult, *, refused: bool) -> Said:
    text = f"{clipped(result.type, _TYPE_CHARACTERS)}: {clipped(result.reason, _REASON_CHARACTERS)}"
    if result.passed:
        return Said(f"✓ passed  {text}", "good")
    if _asks(result, refused=refused):
        return Said(f"? asks for a person  {text}", "warn")
    return Said(f"✗ FAILED  {text}", "bad")

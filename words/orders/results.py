"""Results of the rules for an order, in words: refusals first, then rules that ask for a person. Pure."""

import re
from collections.abc import Sequence, Set
from typing import Final

from words.shapes import PolicyResult
from words.texts.amounts import coins
from words.texts.chains import BTC, SOL, native_coin
from words.texts.lines import Line
from words.texts.plain import clip

# A threshold never refuses: that it did not pass is why somebody is asked, and no fault of the order.
_SOFT: Final = "auto-approve-threshold"
_TYPE_CHARACTERS: Final = 64
_REASON_CHARACTERS: Final = 600
# As the service writes amounts: bare digits and the smallest unit. What is part of a longer word is none.
_AMOUNT: Final = re.compile(r"(?<![\w.,:-])([0-9]{1,78}) (wei|lamports|satoshi|sat)\b")


def results(
    found: Sequence[PolicyResult], *, refused: bool, chain_id: int | None = None, own: Set[str] = frozenset()
) -> list[Line]:
    """One line for each; where the order was not refused, what did not pass has asked for a person.

    `own` are the ids of rules that the agent itself set, which vouch for nothing.
    """
    ranked = sorted(found, key=lambda one: _rank(one, refused=refused))
    return [_describe(one, chain_id, refused=refused, is_own=one.policy_id in own) for one in ranked]


def readable(sentence: str, chain_id: int | None) -> str:
    """A sentence of the service with its amounts in the coin's unit too; the raw figure stays beside it."""

    def amount(found: re.Match[str]) -> str:
        ether = native_coin("evm:native", chain_id)
        coin = {"wei": ether, "lamports": SOL}.get(found[2], BTC)
        return coins(found[1], coin) if coin else found[0]

    return _AMOUNT.sub(amount, sentence)


def _rank(result: PolicyResult, *, refused: bool) -> int:
    return 2 if result.passed else 1 if _asks(result, refused=refused) else 0


def _asks(result: PolicyResult, *, refused: bool) -> bool:
    return result.type == _SOFT or not refused


def _describe(result: PolicyResult, chain_id: int | None, *, refused: bool, is_own: bool) -> Line:
    reason = clip(readable(result.reason, chain_id), _REASON_CHARACTERS)
    whose = " (not set by the tenant)" if is_own else ""
    text = f"{clip(result.type, _TYPE_CHARACTERS)}{whose}: {reason}"
    if result.passed:
        return Line(f"✓ passed  {text}", None if is_own else "good")
    if _asks(result, refused=refused):
        return Line(f"? needs approval  {text}", "warn")
    return Line(f"✗ FAILED  {text}", "bad")

"""The terms of `approval-quorum` in words: how many of which people, each with which keys. Pure."""

from typing import Any, Final

from console.approver.matter import group_digits
from console.rules.rule_limits import amounts_of
from console.rules.rule_terms import NAME_CHARACTERS, Terms, is_text
from words.texts.lines import Line
from words.texts.plain import clip

_FIELDS: Final = {"userId", "keys"}
_NATIVES: Final = ""


def approval_quorum(terms: Terms) -> list[Line]:
    """Describe how many votes an order needs, out of whom, and from which amount on."""
    threshold, approvers = terms.number("threshold"), terms.items("approvers", _is_approver)
    asset, above = terms.text("asset", _NATIVES), terms.amount("above")
    lines = [_votes(threshold, approvers)]
    if above is not None:
        lines += [Line(f"for orders above {text}") for text in amounts_of(above, asset, terms.names)]
        lines.append(Line("up to that, no votes are needed by this rule", "quiet"))
    elif not terms.unread("above"):
        lines.append(Line("for every order"))
    for one in approvers or ():
        lines.append(Line(f"user {clip(one['userId'], NAME_CHARACTERS)}, with a key of fingerprint:"))
        lines += [Line(f"  {group_digits(clip(key, NAME_CHARACTERS))}") for key in one["keys"]]
    lines.append(Line("only votes loosen the rules while this one is enabled", "quiet"))
    return lines


def _votes(threshold: int | None, approvers: list[Any] | None) -> Line:
    need = "an unknown number" if threshold is None else f"{threshold:,}"
    return Line(f"needs votes of {need} of {len(approvers):,} named people" if approvers else f"votes needed: {need}")


def _is_approver(one: object) -> bool:
    if not isinstance(one, dict) or one.keys() != _FIELDS:
        return False
    keys = one["keys"]
    return is_text(one["userId"]) and isinstance(keys, list) and all(map(is_text, keys))

"""Cases, and the outcome of many."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from custody.policies.types import Facts


class Case(msgspec.Struct, frozen=True):
    """An order and rules. `plain` is the order before something was added to it or hidden, if that is all.

    `hidden` says that the bytes are written in a way that contracts read and nobody else must.
    """

    number: int
    order: Any
    plain: Any
    rules: list[dict[str, Any]]
    facts: Facts
    hidden: bool = False


class Violation(msgspec.Struct, frozen=True):
    """The objection of a law to a verdict."""

    law: str
    why: str
    case: Case

    def __str__(self) -> str:
        case = self.case
        plain = f"\n  plain: {case.plain}" if case.plain is not None else ""
        return (
            f"case {case.number} breaks law {self.law}: {self.why}\n  order: {case.order}{plain}\n"
            f"  rules: {msgspec.json.encode(case.rules).decode()}\n"
            f"  uncovered: {case.facts.uncovered}, spent: {msgspec.json.encode(case.facts.spend).decode()}"
        )


type Run = Callable[[Case, Tally], list[Violation]]


class Tally:
    """A count of the outcomes of cases."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def count(self, what: str, *, by: int = 1) -> None:
        """One more."""
        self.counts[what] += by


def smaller(run: Run, case: Case) -> Case:
    """The same violation with fewer rules."""
    broken = {one.law for one in run(case, Tally())}
    for rule in list(case.rules):
        fewer = msgspec.structs.replace(case, rules=[one for one in case.rules if one is not rule])
        if broken <= {one.law for one in run(fewer, Tally())}:
            case = fewer
    return case

"""Judge a priced call by the agent's rules: those on dollars, and when it may act at all. Pure.

A call moves nothing on a chain and pays whom its route names, so rules on recipients, chains and contracts say nothing
of it, and a limit on the number of orders counts orders. Nobody can be asked while a call waits: what would wait for a
person is refused.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from custody.chains.types import Subject
from custody.chains.units import USD
from custody.policies.fleet import EVERY_AGENT
from custody.policies.judge import judge
from custody.policies.rules import ParsedRule
from custody.policies.types import Facts, Spend, Verdict

# For so much longer a bucket of dollars counts than its window says.
_REACH: Final = timedelta(minutes=1)
_TIMES: Final = "time-window"
CALL: Final = Subject("", "call", None, None, None, ())


def judge_call(rules: Sequence[ParsedRule], micro_usd: int, facts: Facts) -> Verdict:
    """Judge a call that costs so much."""
    fitting = [rule for rule in rules if rule.type == _TIMES or getattr(rule.terms, "asset", None) == USD]
    limited = any(rule.enabled and rule.hard for rule in rules if rule.policy_set != EVERY_AGENT)
    empty = "allow" if limited else facts.empty_policy
    return judge(fitting, CALL, msgspec.structs.replace(facts, worth={USD: micro_usd}, empty_policy=empty))


def room_after(rules: Sequence[ParsedRule], micro_usd: int, facts: Facts) -> int | None:
    """The seconds until a refused call may have room, because some of what was spent leaves a window; None: never."""
    # What was ever spent leaves no window.
    ever = Spend(0, 0, facts.spend[USD].total if USD in facts.spend else 0)
    shared = {one: {USD: Spend(0, 0, spend[USD].total)} for one, spend in facts.shared.items() if USD in spend}
    emptied = msgspec.structs.replace(facts, spend={**facts.spend, USD: ever}, shared=shared)
    if judge_call(rules, micro_usd, emptied).decision != "sign":
        return None
    reached = facts.now - _REACH
    return int((_next_hour(reached) - reached).total_seconds()) + 1


def _next_hour(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)

"""The time after which an order that waits is signed by itself: only where nothing but rules `delay` holds it back."""

from datetime import datetime, timedelta
from typing import Final

import msgspec

from custody.policies.kinds.delay import MOST_MINUTES, TYPE, Delay
from signer.signing_attempt import Judged

# An item that was not released so long after its time waits for a person: so long it is noted that it was decided.
RELEASED_WITHIN: Final = timedelta(days=7)
_LONGER: Final = 60 * MOST_MINUTES


def released_until(release_at: datetime) -> int:
    """Until when an item may be released at most, in seconds since 1970."""
    return int((release_at + RELEASED_WITHIN).timestamp())


def seconds_of(judged: Judged) -> int | None:
    """Find after how many seconds this order would be signed by itself; None where a person must decide it."""
    failed = {one.policy_id for one in judged.verdict.results if not one.passed}
    holding = [rule for rule in judged.rules.rules if rule.id in failed]
    if len(holding) != len(failed):
        # The evaluation itself has it wait, or a rule that is gone.
        return None
    later = msgspec.structs.replace(judged.against, waited=_LONGER)
    # As if all of that time were over: an ended rule, and what has no bound, still ask.
    if not all(rule.type == TYPE and rule.check(judged.decoded.subject, later)[0] for rule in holding):
        return None
    return max(60 * rule.terms.minutes for rule in holding if isinstance(rule.terms, Delay))

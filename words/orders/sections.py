"""All that is known of an order, section by section. Pure."""

from words.orders.before import before
from words.orders.details import details
from words.orders.limits import limits
from words.orders.order import Known, Order
from words.orders.results import results
from words.orders.votes import votes_section
from words.orders.words import essentials
from words.texts.lines import Heading, Line


def sections(
    order: Order, known: Known | None, *, outcome: list[Line] | None = None, me: str | None = None
) -> list[Line]:
    """All that is known of an order, section by section; `me` is the person who reads it."""
    found = known or Known()
    said = [Heading("What it does"), *essentials(order, found)]
    if outcome:
        said += [Line(""), Heading("Outcome"), *outcome]
    said += [*votes_section(order.votes, me), Line(""), Heading("Rules"), *rules(order, found)]
    if known is None:
        return [*said, Line(""), Line("Loading context…", "quiet")]
    said += [Line(""), Heading("Limits"), *(limits(order, found) or [Line("No rolling limit of this agent is known.")])]
    said += [Line(""), Heading("Before"), *before(order, found)]
    said += [Line(""), Heading("Details"), *details(order, found)]
    return said


def rules(order: Order, known: Known) -> list[Line]:
    """Describe the result of each rule."""
    if not order.policy_results:
        return [Line("No rule results.", "warn")]
    # An item of the queue was never refused by a rule, whatever a person made of it.
    return results(
        order.policy_results,
        refused=order.status == "rejected" and not order.digest,
        chain_id=order.chain_id,
        own=known.own_rules,
    )

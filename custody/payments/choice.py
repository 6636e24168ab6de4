"""The choice among what a server offers: its own order, and the first that may be paid."""

import msgspec

from custody.chains.table import ChainTable
from custody.payments import solana_payment
from custody.payments.demand import Demand
from custody.payments.offers import Scheme, Terms, terms_of

EXACT: frozenset[Scheme] = frozenset({"exact"})


class Allowed(msgspec.Struct, frozen=True):
    """The bounds of a choice: schemes, and assets by their whole names; None for any that is understood."""

    schemes: frozenset[Scheme] = EXACT
    assets: frozenset[str] | None = None


def choose(demand: Demand, chains: ChainTable, allowed: Allowed) -> Terms | None:
    """The first offer that is understood and allowed; how much it asks for, and for whom, is the judge's to look at."""
    for offer in demand.offers:
        terms = terms_of(offer, chains)
        if terms is None or terms.scheme not in allowed.schemes or solana_payment.names_sponsor(terms):
            continue
        if allowed.assets is None or terms.asset in allowed.assets:
            return terms
    return None

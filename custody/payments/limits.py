"""The limits that a payment route sets on one payment; the agent's rules judge it besides."""

from collections.abc import Mapping

import msgspec

from custody.payments.offers import Scheme, Terms


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a call may cost, by whole asset names, to whom, and how.

    Where nobody is listed in `pay_to`, a rule of the agent must name who is paid, or a person decides; unless the route
    says that anybody may be.
    """

    max_per_call: Mapping[str, int]
    pay_to: frozenset[str] = frozenset()
    schemes: frozenset[Scheme] = frozenset({"exact"})
    allow_unknown_pay_to: bool = False

    @property
    def names_payee(self) -> bool:
        """Say whether the route itself vouches for whom it lets be paid."""
        return bool(self.pay_to) or self.allow_unknown_pay_to

    def problem_of(self, terms: Terms) -> str | None:
        """Say what the route refuses about a payment; None where it lets it be made."""
        most = self.max_per_call.get(terms.asset)
        if most is None or terms.scheme not in self.schemes:
            return "The payment route does not pay in this asset, or by this scheme."
        if terms.amount > most:
            return f"The server demands {terms.amount} of {terms.asset}, and the payment route allows {most} a call."
        if self.pay_to and terms.pay_to not in self.pay_to:
            return f"The payment route does not list {terms.pay_to}, which the server wants to be paid."
        return None

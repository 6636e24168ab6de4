"""A payment that an agent asks for by itself, held to the payment routes of the places that it is said to be for.

A route only takes away here. The place is the word of the agent and of the server that demands, and no request was
seen: a route refuses what costs too much or goes to somebody else, and about whom it lets be paid the rules decide.
"""

from typing import Any

from custody.chains.payment_orders import PaymentOrder
from custody.credentials.coverage import place_covers
from custody.credentials.payment_routes import PaymentRouteFields
from custody.credentials.target import MalformedTarget, Target, parse_target
from custody.kit.refs import AgentRef
from custody.payments.orders import terms_in
from custody.payments.places import places_of
from custody.payments.refusals import PaymentRefused
from signer.context import Signer
from signer.payment_routes import limits_of, open_sealed

_NEAR = "SELECT * FROM payment_routes_near($1, $2)"


async def find_problem(signer: Signer, ref: AgentRef, order: object) -> PaymentRefused | None:
    """The refusal of a payment that the route of one of its places does not let be made."""
    if not isinstance(order, PaymentOrder):
        return None
    terms = terms_in(order, signer.chains)
    for host, path in places_of(order):
        try:
            target = parse_target(host, path, addresses=True)
        except MalformedTarget:
            # No route is for such a place.
            continue
        said = await _route(signer, ref, target)
        if said is not None and (problem := limits_of(said).problem_of(terms)) is not None:
            return PaymentRefused(problem)
    return None


async def _route(signer: Signer, ref: AgentRef, target: Target) -> PaymentRouteFields | None:
    """The first route that covers a place, whatever its method: nobody knows what was asked for there."""
    rows: list[Any] = await signer.pool.fetch(_NEAR, ref.tenant, target.host)
    for row in rows:
        said = open_sealed(signer.sealer, ref.tenant, str(row["id"]), (row["fields"], row["mac"]))
        if place_covers(said, target, said.method, ref.agent):
            return said
    return None

"""Priced calls: each is charged before it leaves, and what a metered one leaves of that comes back."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.credentials.prices import MOST_MICRO_USD, Counts
from custody.kit.errors import Forbidden
from custody.kit.shapes import TenantId, Uuid
from custody.protocol.command import AGENT, Command, command, refuses
from custody.protocol.signer.order_refusals import Busy
from custody.protocol.signer.refusals import CredentialRouteAbsent


class BudgetExceeded(Forbidden):
    """The agent's rules leave no room for the price of this call."""


class Charged(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The charge of a call, committed: it may leave for half a minute."""

    micro_usd: Annotated[int, Meta(ge=0, le=MOST_MICRO_USD)]


class ChargeEnded(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The end of a metered call's charge: what came back of it now."""

    returned: Annotated[int, Meta(ge=0, le=MOST_MICRO_USD)]


@command("signer", senders=("proxy",), proofs=AGENT, repeatable=True, replays_itself=True)
@refuses(BudgetExceeded, Busy, CredentialRouteAbsent)
class ChargeCall(Command[Charged], frozen=True):
    """Charge the agent's budget `usd` for one call by a route, at the price that is sealed in the route.

    The same `call` is charged once, however often it is asked for.
    """

    route: Uuid
    call: Uuid


@command("signer", senders=("proxy",), repeatable=True)
class EndCharge(Command[ChargeEnded], frozen=True):
    """Say what a metered call used; what its sealed prices leave of the charge comes back, once. The id proves it."""

    tenant: TenantId
    call: Uuid
    counts: Counts

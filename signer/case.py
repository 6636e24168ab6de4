"""One order on its way, and the errors that end it early."""

import msgspec

from custody.kit.errors import Conflict, NotFound, Unavailable
from custody.kit.refs import AgentRef
from signer.context import Ask
from signer.draft import Draft
from signer.proofs import ProvenAgent, ProvenSession, ProvenTenant


class AgentAbsent(NotFound):
    """There is no such agent."""


class Sealed(Unavailable):
    """The stored keys or policies of this agent are not what the signer wrote; nothing is signed. Tell the operator."""


class KeyReused(Conflict):
    """This Idempotency-Key was used for another request."""


class Claim(msgspec.Struct, frozen=True):
    """An approval that is turned into a signature: the same path, judged again, claimed in the same write."""

    approval_id: str
    counted_this_hour: bool
    counted_today: bool


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One order on its way."""

    ref: AgentRef
    tx_id: str
    draft: Draft
    ask: Ask[ProvenAgent] | Ask[ProvenTenant] | Ask[ProvenSession]
    claim: Claim | None = None

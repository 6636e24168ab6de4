"""One order on its way."""

from datetime import datetime

import msgspec

from custody.kit.refs import AgentRef
from custody.protocol.signer.intents import Proposed
from custody.protocol.signer.orders import BatchSigned, Decided
from custody.worker.call import Call
from custody.worker.proofs import ProvenAgent, ProvenSession, ProvenTenant
from signer.ballots import GivenVote
from signer.intents.sealed import Sealed
from signer.orders.kind import AnyKind, Draft
from signer.signed_request import Evidence

type Outcome = Decided | BatchSigned | Proposed


class Claim(msgspec.Struct, frozen=True):
    """An approval that is turned into a signature: the same path, judged again, claimed in the same write."""

    approval_id: str
    requested_at: datetime
    comment: str | None = None
    vote: GivenVote | None = None
    # By whom the order was authorised when it was asked for, as its row says under the approval's MAC.
    authorization: str | None = None


class IntentClaim(msgspec.Struct, frozen=True):
    """An authorised intent that is carried out: the same path, claimed in the same write."""

    intent: Sealed
    # The state that the write must find.
    mac: bytes


class Proposal(msgspec.Struct, frozen=True):
    """A batch of calls that will wait as an intent unless a rule refuses it."""

    tx_ids: tuple[str, ...]


class SigningAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One order on its way."""

    ref: AgentRef
    tx_id: str
    kind: AnyKind
    draft: Draft
    call: Call[ProvenAgent] | Call[ProvenTenant] | Call[ProvenSession]
    claim: Claim | None = None
    intent: IntentClaim | None = None
    proposal: Proposal | None = None
    # What was shown of signers, if anything was.
    evidence: Evidence | None = None

    @property
    def is_approved(self) -> bool:
        """Whether a person has agreed to it: then soft rules no longer queue it."""
        return self.claim is not None or self.intent is not None

    @property
    def is_authorized(self) -> bool:
        """Whether signers were shown, now or when the order was queued."""
        return self.evidence is not None or (self.claim is not None and self.claim.authorization is not None)

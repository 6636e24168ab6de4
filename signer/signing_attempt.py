"""One order on its way."""

from datetime import datetime

import msgspec

from custody.kit.refs import AgentRef
from custody.worker.call import Call
from custody.worker.proofs import ProvenAgent, ProvenSession, ProvenTenant
from signer.orders.kind import AnyKind, Draft
from signer.signed_request import Evidence
from signer.votes import GivenVote


class Claim(msgspec.Struct, frozen=True):
    """An approval that is turned into a signature: the same path, judged again, claimed in the same write."""

    approval_id: str
    requested_at: datetime
    comment: str | None = None
    vote: GivenVote | None = None
    # By whom the order was authorised when it was asked for, as its row says under the approval's MAC.
    authorization: str | None = None


class SigningAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One order on its way."""

    ref: AgentRef
    tx_id: str
    kind: AnyKind
    draft: Draft
    call: Call[ProvenAgent] | Call[ProvenTenant] | Call[ProvenSession]
    claim: Claim | None = None
    # What was shown of signers, if anything was.
    evidence: Evidence | None = None

    @property
    def is_authorized(self) -> bool:
        """Whether signers were shown, now or when the order was queued."""
        return self.evidence is not None or (self.claim is not None and self.claim.authorization is not None)

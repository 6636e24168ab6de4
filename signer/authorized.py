"""An order that an agent asks for with signers of its own who agree to it."""

from base64 import b64decode
from functools import partial
from typing import ClassVar

from custody.kit.refs import AgentRef
from custody.protocol.signer.outcomes import Refused
from custody.worker.judging import Judging
from custody.worker.sealing import Context
from signer import authority
from signer.authority_seals import credentials_in
from signer.context import Signer
from signer.direct import Direct
from signer.ledger import Facts, UsedSignatures
from signer.signed_request import Evidence
from signer.signing_attempt import Authorization, Outcome, SigningAttempt, Way


def way_of(signer: Signer, evidence: Evidence | None) -> Way:
    """Choose an order's way by what was shown of signers."""
    return Direct(signer) if evidence is None else Authorized(signer, evidence)


class Authorized(Direct):
    """As any order of the agent, and bound by the rules of those who were shown besides."""

    is_plain: ClassVar[bool] = False
    needs_authority = True

    def __init__(self, signer: Signer, evidence: Evidence) -> None:
        super().__init__(signer)
        self._authority = signer
        self._evidence = evidence

    def authorize(self, attempt: SigningAttempt, facts: Facts, judging: Judging) -> Authorization:
        """Check who was shown against the agent's sealed set; raises what is missing."""
        signer, ref = self._authority, attempt.ref
        authority.check_switches(self._evidence, judging.mfa)
        whole = signer.authority.open(
            ref.tenant, ref.agent, facts.incarnation, facts.authority_version, facts.authority or ""
        )
        credentials = partial(_credential, signer, ref, facts)
        found = authority.authorize(self._evidence, whole, credentials, attempt.kind.permissions, facts.now)
        return Authorization(authority.text_of(found), found.policy_ids)

    def used_signatures(self, attempt: SigningAttempt, outcome: Outcome) -> UsedSignatures | None:
        """Use up what was shown; nothing where time lifts the refusal, so that the same request may be sent again."""
        if isinstance(outcome, Refused) and outcome.room is not None:
            return None
        return authority.used_signatures(self._evidence, attempt.call.caller.principal, attempt.call.key)


def _credential(signer: Signer, ref: AgentRef, facts: Facts, name: str) -> bytes | None:
    """Open what a signer signs or is shown with; None where there is none."""
    sealed = credentials_in(facts.authority or "").get(name)
    if sealed is None:
        return None
    return signer.sealer.open(b64decode(sealed), Context(ref.tenant, "signer", name, "credential", facts.incarnation))

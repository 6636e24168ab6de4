"""One order on its way: what is asked, how it came, how it was judged, and what is to be written."""

import hmac
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, Never, Protocol

import msgspec

from custody.kit.answers import Answered
from custody.kit.errors import CustodyError
from custody.kit.refs import AgentRef
from custody.policies.budgets import Budget, budgets
from custody.policies.kinds.approval_quorum import ApprovalQuorum
from custody.policies.types import CheckAnswer, Left, Verdict
from custody.policies.types import Facts as JudgedFacts
from custody.protocol.signer.order_refusals import DocumentExpired, ReferenceTaken
from custody.protocol.signer.outcomes import BatchSigned, Decided, Proposed, Queued, Refused, Signed, Voted
from custody.worker.call import Call
from custody.worker.judging import Judging
from custody.worker.proven import ProvenAgent, ProvenSession, ProvenSystem, ProvenTenant
from signer import broken_quorums
from signer.intents.steps import NO_STEP, StepRow
from signer.ledger import Facts, ProposalRecord, Record, UsedSignatures, VoteRecord, Voters
from signer.orders.kind import AnyKind, Decoded, Draft
from signer.policies import RuleSet

type Outcome = Decided | BatchSigned | Proposed
decode_outcome: Final = msgspec.msgpack.Decoder(Signed | Queued | Refused | Voted | BatchSigned | Proposed).decode


class Claim(msgspec.Struct, frozen=True):
    """An approval that is turned into a signature: the same path, judged again, claimed in the same write."""

    approval_id: str
    requested_at: datetime
    comment: str | None = None
    # By whom the order was authorised when it was asked for, as its row says under the approval's MAC.
    authorization: str | None = None
    # Since when it waits, and when it is signed by itself, where it is; under the approval's MAC.
    times: tuple[datetime, datetime] | None = None


class Authorization(msgspec.Struct, frozen=True):
    """By whom an order was authorised, as its row says it, and the rules that bind it besides the agent's own."""

    text: str
    policy_ids: tuple[str, ...]


class Tally(Protocol):
    """The votes on an order that count."""

    @property
    def votes(self) -> frozenset[tuple[str, str]]:
        """By person and fingerprint of the key, as rules count them."""

    def voters(self) -> Voters | None:
        """Give what the write looks at again; None without a vote."""

    def text(self) -> str | None:
        """Write them as a receipt shows them; None without one."""


class SigningAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One order on its way."""

    ref: AgentRef
    tx_id: str
    kind: AnyKind
    draft: Draft
    call: Call[ProvenAgent] | Call[ProvenTenant] | Call[ProvenSession] | Call[ProvenSystem]
    way: "Way"
    # What services said of it; None: they are to be asked, and nothing is decided before.
    answers: Sequence[CheckAnswer] | None = ()
    # Against it whatever the rules say; what was answered before is told all the same.
    problem: CustodyError | None = None

    @property
    def claim(self) -> Claim | None:
        """The approval that it claims."""
        return self.way.claim


class Judged(msgspec.Struct, frozen=True):
    """An attempt with everything that was decided about it."""

    attempt: SigningAttempt
    facts: Facts
    decoded: Decoded
    verdict: Verdict
    rules: RuleSet
    # What the verdict was given on: the ledger's figures without the slot that the order takes over.
    against: JudgedFacts
    expire_seconds: int
    # The votes on it, where the rules ask for some.
    tally: Tally | None = None
    # By whom it was authorised, as its row says; of one that was queued, as it said then.
    authorization: str | None = None

    @property
    def budgets(self) -> list[Budget]:
        """Every rolling limit, before and after this order."""
        return budgets(self.rules.rules, self.decoded.subject, self.facts.spend, self.against, self.verdict.charges)

    @property
    def left(self) -> Left | None:
        """The rest this order leaves of the narrowest rate limit, if one was evaluated."""
        found = [left for rule in self.rules.rules if rule.enabled and (left := rule.terms.room_left(self.against))]
        return min(found, key=lambda left: left.remaining, default=None)


class RuleFacts(Protocol):
    """The facts that only some kinds of rule look up, and what is noted for them with a signature."""

    async def read(self, connection: Any, attempt: SigningAttempt, facts: Facts) -> Facts:
        """Add them, where a rule of the agent looks them up; after the version that the write compares."""

    def note(self, judged: Judged, made: Record) -> Record:
        """Add to the record of a signature or refusal what the next orders are judged on."""


class ToWrite(msgspec.Struct, frozen=True):
    """A decision that becomes true with one write, and what the caller will be told then.

    `tally` has the votes that the decision stands on. A vote that is one of too few is written by itself.
    """

    facts: Facts
    record: Record | VoteRecord | ProposalRecord
    outcome: Outcome
    tally: Tally | None = None
    # The other transactions of a batch, and the last step of the intent that is carried out.
    more: tuple[Record, ...] = ()
    step: StepRow = NO_STEP


type Step = ToWrite | Answered[Outcome]


class Way(ABC):
    """The way an order came: who may act that way, and what each verdict comes to.

    The values are those of an order that nobody decided before; `signer/direct.py` has the plainest way.
    """

    # Whether a person has agreed to it: then soft rules no longer queue it.
    is_approved: ClassVar[bool] = False
    # Whether an agent's own token is all that there is: then it may be judged on kept state.
    is_plain: ClassVar[bool] = False
    # Whether the order's own row tells an earlier answer; other ways have a row that is written with the order.
    is_told_by_order: ClassVar[bool] = True
    # Whether the time alone releases it, that it waited.
    is_release: ClassVar[bool] = False
    # The approval that it claims.
    claim: Claim | None = None
    # Votes on what are asked for (its kind and id), and by whom and with which key one is given now.
    subject: tuple[str, str] | None = None
    voter: tuple[str, str] | None = None
    # Whether signers were shown, now or when the order was queued: then their set is read.
    needs_authority: bool = False

    def has_reference(self, draft: Draft) -> bool:
        """Tell whether a wallet action takes its reference now, and not with what came before it."""
        return True

    def answer_under_reference(self, attempt: SigningAttempt, digest: bytes, answer: bytes) -> Outcome:
        """Answer what the same wallet action came to when it was first asked for; ReferenceTaken by another one."""
        if not hmac.compare_digest(digest, attempt.draft.digest):
            raise ReferenceTaken
        earlier: Outcome = decode_outcome(answer)
        return earlier

    def refuse_ended(self) -> Never:
        """Refuse an order whose signature nobody could use any more."""
        raise DocumentExpired

    def authorize(self, attempt: SigningAttempt, facts: Facts, judging: Judging) -> Authorization | None:
        """Find by whom it is authorised; None where nobody was shown.

        Raises Tampered or RolledBack where the set of signers is not whole.
        """
        return None

    def count_votes(
        self,
        attempt: SigningAttempt,
        facts: Facts,
        quorums: Sequence[ApprovalQuorum],
        read: broken_quorums.Read | None,
    ) -> Tally | None:
        """Count the votes that enabled rules ask for; None where nobody can vote on it."""
        return None

    @abstractmethod
    def sign(self, judged: Judged) -> Step:
        """Do what comes of an order that the rules let be signed."""

    @abstractmethod
    def queue(self, judged: Judged) -> Step:
        """Do what comes of an order that the rules have a person decide."""

    @abstractmethod
    def refuse(self, judged: Judged) -> Step:
        """Do what comes of an order that the rules refuse."""

    def used_signatures(self, attempt: SigningAttempt, outcome: Outcome) -> UsedSignatures | None:
        """Name the signatures that the write uses up."""
        return None

    def note(self, step: ToWrite) -> None:  # noqa: B027 - most note nothing
        """Note beside the database, before the write, what must hold whatever is put back there."""

    def take_back(self) -> None:  # noqa: B027
        """Take back what was noted: nothing was written."""

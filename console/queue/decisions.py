"""Sends a person's decision, and reads what the API answers to it.

That somebody else was faster, or that time ran out, is no error: it is what the item is now, and is shown as such.
"""

from typing import Any, Final, Literal

import msgspec

from console.entry.person import Person
from console.queue.queue import Item, Outcome, outcome_of
from console.wire.answers import convert
from console.wire.api_client import ApiClient
from console.wire.failures import Absent, Answered, Conflicted, Failure
from console.wire.shapes_votes import VoteTaken
from words.shapes import Approval, Votes
from words.texts.moments import moment
from words.texts.plain import clip

Way = Literal["approve", "deny"]
_DONE: Final[dict[Way, Literal["approved", "denied"]]] = {"approve": "approved", "deny": "denied"}
_REASON_CHARACTERS: Final = 500
# A vote that was taken while more are needed.
_DEFERRED: Final = 202
_RESENT: Final = "Signed, but not broadcast yet; the service retries automatically."
_ABSENT: Final = "This item no longer exists; its agent may have been deleted."
_CHANGED: Final = "Not decided: the order has changed since it was shown. Go back, reload with r and read it again."
_STALE: Final = (
    "It can no longer be approved: the message has other signers, so its blockhash cannot be renewed. Deny it, and "
    "let the agent send it again."
)


class Over(Failure):
    """This item cannot be decided this way any more; `outcome` is what became of it, where that is known."""

    def __init__(self, sentence: str, outcome: Outcome | None = None) -> None:
        super().__init__(sentence)
        self.outcome = outcome


class Refused(Failure):
    """Today's rules refuse it: it stays in the queue."""


class _Decided(msgspec.Struct, frozen=True, rename="camel"):
    resolved_at: str
    tx_hash: str | None = None


async def decide(client: ApiClient, item: Item, way: Way, key: str, reason: str = "") -> Outcome:
    """Decide over exactly the order that was shown: another one with the same id is refused by its digest."""
    body = {"digest": item.approval.digest} | ({"reason": reason} if reason else {})
    try:
        answer = await client.send("POST", f"/approvals/{item.id}/{way}", _Decided, body, key=key)
    except Answered as failure:
        return await after_refusal(client, item, failure)
    return Outcome(_DONE[way], moment(answer.resolved_at), "you", reason, answer.tx_hash or "")


async def send_vote(client: ApiClient, item: Item, evidence: dict[str, str], key: str) -> Outcome | Votes:
    """Vote for exactly the order that was shown: what became of it, or the votes so far where more are needed."""
    body = {"digest": item.approval.digest, "vote": evidence}
    try:
        answer = await client.send("POST", f"/approvals/{item.id}/approve", _Decided, body, key=key)
    except Answered as failure:
        if failure.status == _DEFERRED and "votes" in failure.data:
            return convert(failure.data, VoteTaken).votes
        return await after_refusal(client, item, failure)
    return Outcome("approved", moment(answer.resolved_at), "you", "", answer.tx_hash or "")


async def after_refusal(client: ApiClient, item: Item, failure: Answered) -> Outcome:
    """Tell what became of an item whose decision was refused: it is signed all the same, or a Failure says why."""
    if isinstance(failure, Absent):
        raise Over(_ABSENT, Outcome("gone")) from None
    if isinstance(failure, Conflicted):
        raise await _conflict(client, item, failure) from None
    if isinstance(signed := failure.data.get("txHash"), str) and failure.data.get("status") == "signed":
        return Outcome("approved", None, "you", "", signed, _RESENT)
    raise _refusal(failure) from None


async def find_outcome(client: ApiClient, item: Item, me: str | None) -> Outcome:
    """Find the outcome of an item that waits no more, and who decided."""
    return outcome_of(await client.get(f"/approvals/{item.id}", Approval), me) or Outcome("gone")


def why_not(person: Person | None, *, read_only: bool) -> str:
    """Why somebody cannot decide here, in a sentence; empty if they can."""
    if read_only:
        return "This console is read-only."
    if person is not None and not person.may_decide:
        return f"Your role ({person.role}) sees the queue; owners and admins decide."
    return ""


async def _conflict(client: ApiClient, item: Item, failure: Conflicted) -> Failure:
    match failure.code:
        case "approval_resolved":
            outcome = await _find_outcome(client, item)
            return Over(f"{outcome.sentence} Your decision was not recorded.", outcome)
        case "approval_expired":
            outcome = Outcome("expired", item.expires)
            return Over(f"{outcome.sentence} Not decided; the agent must send the request again.", outcome)
        case "approval_changed":
            return Over(_CHANGED)
        case "approval_stale":
            return Over(_STALE)
        case _:
            return failure


async def _find_outcome(client: ApiClient, item: Item) -> Outcome:
    try:
        return await find_outcome(client, item, None)
    except Failure:
        return Outcome("gone")


def _refusal(failure: Answered) -> Failure:
    """The same failure; where rules refuse, with every reason they give."""
    found: Any = failure.data.get("results")
    results = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    reasons = [
        f"{clip(str(one.get('type')), 40)}: {clip(str(one.get('reason')), _REASON_CHARACTERS)}"
        for one in results
        if not one.get("passed")
    ]
    if not reasons:
        return failure
    return Refused("\n".join(["Today's rules refuse it, so it was not signed and stays pending:", *reasons]))

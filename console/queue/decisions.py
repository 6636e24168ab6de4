"""Sends a person's decision, and reads what the API answers to it. Spec 1/4.7, decisions 4.

That somebody else was faster, or that time ran out, is no error: it is what the item is now, and is shown as such.
"""

from typing import Any, Final, Literal

import msgspec

from console.entry.person import Person
from console.queue.queue import PAGE, WORDS, Item, Outcome, outcome_of
from console.texts.moments import moment
from console.texts.plain import clipped
from console.wire.api_client import ApiClient
from console.wire.failures import Absent, Answered, Conflicted, Failure
from console.wire.shapes import Approval, Transaction

Way = Literal["approve", "deny"]
_DONE: Final[dict[Way, Literal["approved", "denied"]]] = {"approve": "approved", "deny": "denied"}
_REASON_CHARACTERS: Final = 500
_RESENT: Final = "It is signed but could not be sent just now; the service sends it again by itself."
_ABSENT: Final = "There is no such item any more; its agent may have been deleted."
_CHANGED: Final = (
    "Nothing was decided: the service says that the order is not the one shown here. Go back, reload with r and read "
    "it again."
)
_STALE: Final = (
    "It can not be approved any more: others have signed this message too, and its blockhash cannot be renewed. "
    "Deny it, and let the agent ask again."
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
    except Absent:
        raise Over(_ABSENT, Outcome("gone")) from None
    except Conflicted as failure:
        raise await _conflict(client, item, failure) from None
    except Answered as failure:
        if isinstance(signed := failure.data.get("txHash"), str) and failure.data.get("status") == "signed":
            return Outcome("approved", None, "you", "", signed, _RESENT)
        raise _refusal(failure) from None
    return Outcome(_DONE[way], moment(answer.resolved_at), "you", reason, answer.tx_hash or "")


async def became(client: ApiClient, item: Item, me: str | None) -> Outcome:
    """What became of an item that waits no more: by whom too, as long as it is among the newest."""
    page = await client.get_page("/approvals", Approval, status="all", limit=PAGE)
    for approval in page.items:
        if approval.id == item.id:
            return outcome_of(approval, me) or Outcome("gone")
    one = await client.get(f"/vault/{item.approval.agent_id}/transactions/{item.approval.tx_id}", Transaction)
    if one.status == "rejected":
        return Outcome(WORDS["expired" if one.status_detail == "approval_expired" else "rejected"])
    if one.status == "pending_approval":
        return Outcome("gone")
    return Outcome("approved", moment(one.signed_at), tx_hash=one.tx_hash or "")


def why_not(person: Person | None, *, read_only: bool) -> str:
    """Why somebody cannot decide here, in a sentence; empty if they can."""
    if read_only:
        return "This console is read-only: others decide."
    if person is not None and not person.may_decide:
        return f"Your role ({person.role}) sees the queue; owners and admins decide."
    return ""


async def _conflict(client: ApiClient, item: Item, failure: Conflicted) -> Failure:
    match failure.code:
        case "approval_resolved":
            outcome = await _became(client, item)
            return Over(f"{outcome.sentence} You have decided nothing.", outcome)
        case "approval_expired":
            outcome = Outcome("expired", item.expires)
            return Over(f"{outcome.sentence} Nothing was decided; the agent has to ask again.", outcome)
        case "approval_changed":
            return Over(_CHANGED)
        case "approval_stale":
            return Over(_STALE)
        case _:
            return failure


async def _became(client: ApiClient, item: Item) -> Outcome:
    try:
        return await became(client, item, None)
    except Failure:
        return Outcome("gone")


def _refusal(failure: Answered) -> Failure:
    """The same failure; where rules refuse, with every reason they give."""
    found: Any = failure.data.get("results")
    results = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    reasons = [
        f"{clipped(str(one.get('type')), 40)}: {clipped(str(one.get('reason')), _REASON_CHARACTERS)}"
        for one in results if not one.get("passed")
    ]  # fmt: skip
    if not reasons:
        return failure
    return Refused("\n".join(["Today's rules refuse it, so nothing was signed and it still waits:", *reasons]))

"""Waiting for a person: look at the order again and again, say that it goes on, and never decide anything."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from mcp_server.outcomes import ToolError
from mcp_server.vault import Answer, Vault
from mcp_server.wallet import payment, transaction

# Seconds between two looks: soon at first, then seldom, for a person takes minutes.
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 3.0
_GROWTH = 1.5

# Tells the client that the wait goes on: seconds so far, and of how many.
Progress = Callable[[float, float], Awaitable[None]]


async def wait_for_decision(vault: Vault, given: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Wait until a person has decided, at most so long. Ending the wait leaves the order as it is."""
    seconds = given["timeout_seconds"]
    pause, began = FIRST_PAUSE, anyio.current_time()
    while True:
        answer = await transaction(vault, given["transaction_id"])
        decision = decision_of(answer)
        left = began + seconds - anyio.current_time()
        if decision != "none_yet" or left <= 0:
            return {"decision": decision, "what_to_do": _WHAT_TO_DO[decision], **payment(answer)}
        await progress(seconds - left, seconds)
        await anyio.sleep(min(pause, left))
        pause = min(pause * _GROWTH, LONGEST_PAUSE)


def decision_of(answer: Answer) -> str:
    """Read a decision: approved, denied, refused (nobody, or the rules), none_yet."""
    status, detail = answer.get("status"), answer.get("statusDetail")
    if status == "pending_approval":
        return "none_yet"
    if status == "rejected":
        return "denied" if detail == "denied" else "refused"
    if not isinstance(status, str):
        raise ToolError(
            "internal: The service said nothing of this order. Nothing was changed. Call again in a moment."
        )
    return "approved"


_WHAT_TO_DO = {
    "approved": "It is signed. Call get_payment for its hash; do not pay again.",
    "denied": "Do not try variations. Tell the user.",
    "refused": "Do not try variations. Tell the user.",
    "none_yet": "Call wait_for_decision again, or tell the user. Never pay again.",
}

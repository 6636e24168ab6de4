"""Ends of a call besides what was asked for. Each error says `code: sentence`; programs look at `code`.

`Waiting` and `Refused` are answers, not failures. After `OutcomeUnknown` nobody knows whether the thing was done: the
same call with the same name finds out, and does it at most once.
"""

from collections.abc import Mapping
from typing import Any, Final

# Beside a 403 these are the rules' word on an order; the other codes are about the caller.
_FINAL: Final = frozenset({"policy_refused", "payment_refused", "approval_denied", "withdrawn"})
# A node said no, or cannot be asked: nothing is under way.
NODES_SAY: Final = frozenset(
    {"insufficient_funds", "estimate_failed", "rpc_refused", "rpc_unavailable", "broadcast_refused"}
)
_NAMES: Final = frozenset({"idempotency_mismatch", "reference_taken"})
_LONGEST_SENTENCE: Final = 2_000
AGAIN: Final = "Nobody knows whether it happened: call again with the same name, and it happens once at most."


class VaultError(Exception):
    """A call that did not do what was asked. `status` is that of HTTP, 0 without an answer; `data` is for programs."""

    status: int
    code: str
    data: dict[str, Any]

    def __init__(self, status: int, code: str, sentence: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(status, code, sentence, dict(data or {}))
        self.status, self.code, self.sentence, self.data = status, code, sentence, dict(data or {})

    def __str__(self) -> str:
        return f"{self.code}: {self.sentence}"

    @property
    def reasons(self) -> list[str]:
        """The reasons of the rules that did not pass."""
        results = self.data.get("results")
        found = [one for one in results if isinstance(one, dict)] if isinstance(results, list) else []
        return [str(one.get("reason")) for one in found if not one.get("passed")]


class BadArgument(VaultError, ValueError):
    """An argument is wrong; with status 0 nothing was sent."""


class Refused(VaultError):
    """The rules, a person or a freeze refuse it: final. A variation of it is not the cure, the reasons are."""


class Waiting(VaultError):
    """A person decides: `wait(error.tx_id)`, or come back with `resume`. Another name would be another payment."""

    @property
    def tx_id(self) -> str:
        """The transaction that waits."""
        return str(self.data["txId"])

    @property
    def approval_id(self) -> str:
        """The item that the person decides on."""
        return str(self.data.get("approvalId", ""))


class Failed(VaultError):
    """It was signed, and the chain did not or will not execute it."""


class NameTaken(VaultError):
    """The name is that of another payment. A new payment needs a new name; a repeated one must be equal."""


class TryLater(VaultError):
    """Too much for now; `retry_after` says in how many seconds there is a chance."""

    @property
    def retry_after(self) -> int:
        """Seconds to wait."""
        return int(self.data.get("retryAfter", 1))


class OutcomeUnknown(VaultError):
    """No answer, or one that says that nobody knows. The same call with the same name (`data["name"]`) finds out."""


class NotAsked(VaultError):
    """The bytes that came back are not what was asked for: they were thrown away, and not used."""


def error_of(
    status: int, said: Mapping[str, Any], retry_after: int, name: Mapping[str, str], *, change: bool
) -> VaultError:
    """Return the error that an answer is; `change` says whether the request could have done anything."""
    data = said.get("data")
    data = dict(data) if isinstance(data, dict) else {}
    code = str(data.get("code", f"http_{status}"))[:100]
    sentence = str(said.get("error") or "No reason was given.")[:_LONGEST_SENTENCE]
    if status == 202:
        return Waiting(status, code, sentence, data)
    if status == 429:
        return TryLater(status, code, sentence, data | {"retryAfter": retry_after})
    if code in _NAMES:
        return NameTaken(status, code, f"{NameTaken.__doc__}", data)
    if status == 423 or (status == 403 and code in _FINAL):
        return Refused(status, code, "; ".join(VaultError(status, code, "", data).reasons) or sentence, data)
    if status in (400, 413, 415):
        return BadArgument(status, code, sentence, data)
    if change and (code == "idempotency_in_flight" or (status >= 500 and code not in NODES_SAY)):
        return OutcomeUnknown(status, code, f"{sentence} {AGAIN}", data | dict(name))
    return VaultError(status, code, sentence, data)

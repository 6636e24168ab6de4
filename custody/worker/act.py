"""The act of a proven caller, as the SQL functions take it."""

from typing import Any

import msgspec

from custody.kit.act import Act
from custody.worker.call import Call


def act(call: Call[Any], answer: bytes | None = None, *, agent: str | None = None, **metadata: Any) -> Act:
    """The act of a proven caller; `agent` where its own token asks. None as answer: it showed a secret, this once."""
    principal, told = call.caller.principal, msgspec.json.encode(metadata).decode()
    if agent is not None:
        return Act(principal, *call.key_row, answer, "agent", agent, told, call.origin_row)
    # A person acts as `user:<id>`: audit_append makes a user of it.
    return Act(principal, *call.key_row, answer, "system", principal, told, call.origin_row)

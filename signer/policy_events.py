"""The event of a changed set of rules: who changed it, and whether it may be milder than before."""

from collections.abc import Sequence

from custody.policies.fingerprint import policy_hash
from custody.policies.rules import ParsedRule
from custody.policies.tighten import widening
from custody.policies.types import EmptyPolicy
from custody.webhooks.control_events import Direction, PoliciesChanged
from custody.webhooks.payload import encode_events
from custody.worker.proven import Proven, ProvenAgent

NOTHING = "[]"


def change_event(
    caller: Proven,
    old: Sequence[ParsedRule] | None,
    new: Sequence[ParsedRule],
    version: int,
    *,
    empty_policy: EmptyPolicy = "deny",
    policy_set: str | None = None,
) -> str:
    """The event as `emit` takes it; nothing where no rule is another. `old` None: unread, so `looser`."""
    if old is not None and policy_hash(old) == policy_hash(new):
        return NOTHING
    tighter = old is not None and widening(old, new, empty_policy=empty_policy) is None
    change: Direction = "tighter" if tighter else "looser"
    # Of an agent its id alone: the incarnation means nothing outside.
    by = f"agent:{caller.agent}" if isinstance(caller, ProvenAgent) else caller.principal
    return encode_events(PoliciesChanged(by=by, change=change, policy_set_id=policy_set, version=version))

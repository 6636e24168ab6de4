"""The payloads of what was done to agents and their rules: frozen, thawed, changed. Who did it is in each of them."""

from typing import Annotated, ClassVar, Literal

from custody.kit.described import described
from custody.webhooks.payload import Payload

By = Annotated[
    str,
    described(
        "Who did it: `user:<id>`, `tenant-key:<prefix>`, `app-client:<id>`, `agent:<id>`, a platform key, or the rule "
        "`circuit-breaker`."
    ),
]
Direction = Literal["looser", "tighter"]


class Frozen(Payload, frozen=True, kw_only=True):
    """The fields of what was frozen."""

    by: By
    reason: Annotated[str | None, described("The reason that was given.")]


class Unfrozen(Payload, frozen=True, kw_only=True):
    """The fields of what may sign again."""

    by: By


class AgentFrozen(Frozen, frozen=True, kw_only=True):
    """An agent was frozen: nothing of it is signed."""

    event: ClassVar[str] = "agent.frozen"


class AgentUnfrozen(Unfrozen, frozen=True, kw_only=True):
    """An agent was unfrozen."""

    event: ClassVar[str] = "agent.unfrozen"


class TenantFrozen(Frozen, frozen=True, kw_only=True):
    """A tenant was frozen: nothing of any of its agents is signed."""

    event: ClassVar[str] = "tenant.frozen"


class TenantUnfrozen(Unfrozen, frozen=True, kw_only=True):
    """A tenant's own freeze or the operator's ended; the other one may still hold."""

    event: ClassVar[str] = "tenant.unfrozen"


class PoliciesChanged(Payload, frozen=True, kw_only=True):
    """The rules of an agent or of a policy set were changed."""

    event: ClassVar[str] = "policies.changed"
    by: By
    change: Annotated[
        Direction, described("`tighter` only where no order gets a milder verdict than before; else `looser`.")
    ]
    policy_set_id: Annotated[str | None, described("The policy set; null: the agent's own rules.")]
    version: Annotated[int, described("The version that the rules have now.")]

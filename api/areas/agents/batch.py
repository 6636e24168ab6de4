"""A batch of agents, as callers send it. It stands apart because rules need libraries that few processes have."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from custody.kit.described import described
from custody.policies.kinds import PolicyRule
from custody.protocol.signer.agents import Agent

_AGENTS = Meta(extra_json_schema={"items": {"$ref": "#/components/schemas/NewAgentBody"}, "maxItems": 100})


class BatchBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Up to 100 agents; each is checked by itself."""

    # Each is decoded by itself, so that one mistake does not refuse the others.
    agents: Annotated[list[Any], described("The agents to create, at most 100."), _AGENTS]
    apply_policies: Annotated[list[PolicyRule], described("Policy rules that each new agent gets.")] = []


class BatchFailure(msgspec.Struct, frozen=True):
    """Why one agent of a batch was not created."""

    id: Annotated[Any, described("The `id` as it was sent, or null.")]
    error: Annotated[str, described("Code of its problem.")]


class BatchResult(msgspec.Struct, frozen=True):
    """The created agents, and those that could not be created."""

    created: Annotated[list[Agent], described("The agents that were created.")]
    errors: Annotated[list[BatchFailure], described("Those that were not, with the reason.")]

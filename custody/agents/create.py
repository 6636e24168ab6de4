"""Make one agent, or up to a hundred at once. Spec 1/4.1."""

from typing import Any

import msgspec

from custody.agents.types import (
    Agent,
    AgentTaken,
    BatchBody,
    BatchFailure,
    BatchResult,
    NewAgentBody,
    PoliciesByAdmins,
)
from custody.identity.roles import ADMINS
from custody.kit.callers import SessionCaller, TenantCaller
from custody.kit.errors import Invalid
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import CreateAgents, NewAgent

MAX_BATCH = 100


class BatchTooLarge(Invalid):
    """A batch has at most 100 agents."""


async def create(ports: Ports, caller: TenantCaller, body: NewAgentBody) -> Any:
    """Make one agent with an EVM and a Solana wallet."""
    answer = await asked(ports.signer, CreateAgents([NewAgent(body.id, body.name, body.platform_id)]), caller)
    created = msgspec.convert(answer["created"], list[Agent])
    if not created:
        raise AgentTaken
    return answer.replayed_or(created[0])


async def create_many(ports: Ports, caller: TenantCaller, body: BatchBody) -> Any:
    """Make those agents of a batch that can be made; each of the others is named with its reason."""
    if len(body.agents) > MAX_BATCH:
        raise BatchTooLarge
    if body.apply_policies and isinstance(caller, SessionCaller) and caller.role not in ADMINS:
        raise PoliciesByAdmins
    wanted: dict[str, NewAgent] = {}
    errors: list[BatchFailure] = []
    for item in body.agents:
        try:
            agent = msgspec.convert(item, NewAgentBody)
        except msgspec.ValidationError as problem:
            errors.append(BatchFailure(item.get("id") if isinstance(item, dict) else None, str(problem)))
            continue
        if agent.id in wanted:
            errors.append(BatchFailure(agent.id, "This id stands twice in the batch."))
            continue
        wanted[agent.id] = NewAgent(agent.id, agent.name, agent.platform_id)
    # Sent even when nothing is left to make, so that a bad policy set is refused all the same.
    answer = await asked(ports.signer, CreateAgents(list(wanted.values()), body.apply_policies), caller)
    created = msgspec.convert(answer["created"], list[Agent])
    made = {agent.id for agent in created}
    errors += [BatchFailure(id_, AgentTaken().message) for id_ in wanted if id_ not in made]
    return answer.replayed_or(BatchResult(created, errors))

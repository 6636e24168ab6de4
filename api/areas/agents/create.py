"""Make one agent, or up to a hundred at once."""

import msgspec
from msgspec import UNSET

from api.areas.agents import shown
from api.areas.agents.batch import BatchBody, BatchFailure, BatchResult
from api.areas.agents.types import AgentChangeBody, AgentTaken, NewAgentBody
from custody.identity.roles import ADMINS
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller, TenantCaller
from custody.kit.errors import Invalid
from custody.kit.refs import AgentRef
from custody.kit.validation import explain
from custody.policies.rules import check_size
from custody.ports import Ports
from custody.protocol.signer.agents import Agent, ChangeAgent
from custody.protocol.signer.policies import CreateAgents, NewAgent
from custody.protocol.signer.refusals import AgentIdReserved, PoliciesByAdmins
from custody.protocol.signer.user_wallets import PREFIX

MAX_BATCH = 100


# Of its policies, counted once for each agent: so often are they stored.
MAX_BATCH_POLICY_BYTES = 2**20


class BatchTooLarge(Invalid):
    """A batch may have at most 100 agents."""


class BatchPoliciesTooLarge(Invalid):
    """The policies of a batch may have at most 1 MiB, counted once for each agent; send fewer agents per request."""


async def create(ports: Ports, caller: TenantCaller, body: NewAgentBody) -> Answered[Agent]:
    """Make one agent with an EVM and a Solana wallet."""
    message = CreateAgents([NewAgent(body.id, body.name, body.platform_id)])
    answered = await ports.workers.ask(message, caller)
    if not answered.answer.created:
        raise AgentTaken
    return Answered(answered.answer.created[0], answered.replayed)


async def change(ports: Ports, caller: TenantCaller, agent: AgentRef, body: AgentChangeBody) -> Answered[Agent]:
    """Change what people and the tenant's platform call an agent."""
    name = None if body.name is UNSET else body.name
    answered = await ports.workers.ask(ChangeAgent(agent.agent, name, body.display_name, body.platform_id), caller)
    return Answered(await shown.get(ports, agent), answered.replayed)


async def create_many(ports: Ports, caller: TenantCaller, body: BatchBody) -> Answered[BatchResult]:
    """Make those agents of a batch that can be made; each of the others is named with its reason."""
    if len(body.agents) > MAX_BATCH:
        raise BatchTooLarge
    if body.apply_policies and isinstance(caller, SessionCaller) and caller.role not in ADMINS:
        raise PoliciesByAdmins
    check_size(body.apply_policies)
    wanted: dict[str, NewAgent] = {}
    errors: list[BatchFailure] = []
    for item in body.agents:
        try:
            agent = msgspec.convert(item, NewAgentBody)
        except msgspec.ValidationError as problem:
            said = explain(problem, NewAgentBody).sentence("The agent")
            errors.append(BatchFailure(item.get("id") if isinstance(item, dict) else None, said))
            continue
        if agent.id.startswith(PREFIX):
            errors.append(BatchFailure(agent.id, AgentIdReserved().message))
            continue
        if agent.id in wanted:
            errors.append(BatchFailure(agent.id, "This id is given twice in the batch."))
            continue
        wanted[agent.id] = NewAgent(agent.id, agent.name, agent.platform_id)
    if len(wanted) * len(msgspec.json.encode(body.apply_policies)) > MAX_BATCH_POLICY_BYTES:
        raise BatchPoliciesTooLarge(fields=["applyPolicies"])
    # Sent even when nothing is left to make, so that a bad policy set is refused all the same.
    message = CreateAgents(list(wanted.values()), body.apply_policies)
    answered = await ports.workers.ask(message, caller)
    created = answered.answer.created
    made = {agent.id for agent in created}
    errors += [BatchFailure(id_, AgentTaken().message) for id_ in wanted if id_ not in made]
    return Answered(BatchResult(created, errors), answered.replayed)

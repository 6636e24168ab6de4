"""Replace an agent's policies. Spec 1/4.1; the signer judges, seals and stores them."""

from typing import Any

from custody.kit.callers import AgentCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.policies.types import PolicyRule
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import ReplacePolicies


async def replace(ports: Ports, caller: TenantCaller | AgentCaller, ref: AgentRef, rules: list[PolicyRule]) -> Any:
    """Replace the whole set under its next version."""
    data = await asked(ports.signer, ReplacePolicies(ref.agent, rules), caller)
    return data.replayed_or(data["policies"])

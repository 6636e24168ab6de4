"""An agent as callers see it. Spec 1/2.2, 2.3."""

from typing import Any

import msgspec

from custody.kit.errors import Conflict, Forbidden, NotFound
from custody.kit.shapes import AgentId, DisplayName, Duration
from custody.policies.types import PolicyRule


class AgentAbsent(NotFound):
    """There is no such agent."""


class AgentTaken(Conflict):
    """An agent with this id already exists."""


class PoliciesByAdmins(Forbidden):
    """Only an owner or admin gives policies to agents; leave out applyPolicies."""


class WalletAddresses(msgspec.Struct, frozen=True):
    """The addresses of an agent's two wallets."""

    evm: str
    solana: str


class Agent(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An agent. `frozen_at` and `frozen_reason` are set while it is frozen."""

    id: str
    name: str
    platform_id: str | None
    tenant_id: str
    wallet_addresses: WalletAddresses
    created_at: str
    frozen_at: str | None = None
    frozen_reason: str | None = None


class NewAgentBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a tenant says to make an agent."""

    id: AgentId
    name: DisplayName
    platform_id: DisplayName | None = None


class BatchBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Up to 100 agents; each is checked by itself."""

    agents: list[Any]
    apply_policies: list[PolicyRule] = []


class BatchFailure(msgspec.Struct, frozen=True):
    """Why one agent of a batch was not made."""

    id: Any
    error: str


class BatchResult(msgspec.Struct, frozen=True):
    """What was made, and what was not."""

    created: list[Agent]
    errors: list[BatchFailure]


class TokenBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How long a token lives: `<n>s|m|h|d`, at most 30 days."""

    expires_in: Duration = "24h"


class AgentToken(msgspec.Struct, frozen=True, rename="camel"):
    """A token; it is shown once."""

    token: str
    agent_id: str
    tenant_id: str
    scope: str
    expires_in: str

    def __repr__(self) -> str:
        return f"AgentToken({self.agent_id})"


class Deleted(msgspec.Struct, frozen=True):
    """What is gone."""

    deleted: str


class Revoked(msgspec.Struct, frozen=True, rename="camel"):
    """Whose tokens are dead."""

    agent_id: str
    revoked: bool

"""Agents, their tokens, and what stops them."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.chains.built_in import WALLETS
from custody.identity.roles import BUILDERS
from custody.identity.scopes import TENANT_WRITE
from custody.kit.described import Instant, described
from custody.kit.shapes import AgentId, DisplayName, TenantId
from custody.protocol.command import DECIDER, PLATFORM_KEY, PROGRAM, SESSION, TENANT, Command, command, refuses
from custody.protocol.refusals import AdministrationMoving, TenantAbsent
from custody.protocol.signer import order_refusals, refusals

# Two keys are opened for each.
MAX_ADDRESSES = 20


class WalletAddresses(msgspec.Struct, frozen=True):
    """The addresses of an agent's wallets."""

    __annotations__ = {
        family: Annotated[str, described(f"The agent's address on chains of the family `{family}`.")]
        for family in WALLETS
    }

    @property
    def all(self) -> tuple[tuple[str, str], ...]:
        """Every family with its address."""
        return tuple(msgspec.structs.asdict(self).items())

    def of(self, family: str) -> str:
        """The address of a family's wallet."""
        address: str = getattr(self, family)
        return address


class PreviousWallet(msgspec.Struct, frozen=True):
    """A wallet whose key an import replaced. Its key is kept; nothing is signed with it."""

    family: Annotated[str, described("The chain family.")]
    address: Annotated[str, described("The address that it had.")]


class Agent(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An agent. `frozen_at` and `frozen_reason` are set while it is frozen."""

    id: Annotated[str, described("The agent's id, unique in the tenant.")]
    name: Annotated[str, described("A name for people.")]
    display_name: Annotated[str | None, described("Name that people see, if that is not its name.")] = None
    platform_id: Annotated[str | None, described("The agent's id on your own platform.")]
    tenant_id: Annotated[str, described("The tenant.")]
    wallet_addresses: Annotated[WalletAddresses, described("Address for payments.")]
    wallet_address: Annotated[str, described("Address for payments on EVM chains.")] = ""
    created_at: Annotated[Instant, described("Time of creation.")]
    frozen_at: Annotated[Instant | None, described("Time of the freeze; null if it is not frozen.")] = None
    frozen_reason: Annotated[str | None, described("Why it was frozen.")] = None
    erc8004_token_id: Annotated[str | None, described("The agent's ERC-8004 identity token.")] = msgspec.field(
        name="erc8004TokenId", default=None
    )
    previous_wallets: Annotated[
        list[PreviousWallet], described("Wallets that imported keys replaced, oldest first.")
    ] = []

    def __post_init__(self) -> None:
        # One address is never told in two ways.
        msgspec.structs.force_setattr(self, "wallet_address", self.wallet_addresses.of("evm"))


class AgentToken(msgspec.Struct, frozen=True, rename="camel"):
    """A token; it is returned only here."""

    token: Annotated[str, described("The token, for `Authorization: Bearer`.")]
    agent_id: Annotated[str, described("The agent.")]
    tenant_id: Annotated[str, described("The tenant.")]
    scope: Annotated[str, described("Scope of the token.")]
    expires_in: Annotated[str, described("Lifetime of the token.")]

    def __repr__(self) -> str:
        return f"AgentToken({self.agent_id})"


class DeletedAgent(msgspec.Struct, frozen=True):
    """The deleted resource."""

    deleted: Annotated[str, described("The id of what was deleted.")]


class Revoked(msgspec.Struct, frozen=True, rename="camel"):
    """The agent whose tokens were revoked."""

    agent_id: Annotated[str, described("The agent.")]
    revoked: Annotated[bool, described("Every token of the agent was revoked.")]


class FrozenAgent(msgspec.Struct, frozen=True, rename="camel"):
    """An agent's freeze: its state, time and reason."""

    agent_id: Annotated[str, described("The agent.")]
    frozen: Annotated[bool, described("True if it is frozen.")]
    frozen_at: Annotated[Instant | None, described("Since when.")]
    reason: Annotated[str | None, described("Why.")]


class FrozenTenant(msgspec.Struct, frozen=True, rename="camel"):
    """A tenant's freeze: its state, time and reason."""

    tenant_id: Annotated[str, described("The tenant.")]
    frozen: Annotated[bool, described("True if it is frozen.")]
    frozen_at: Annotated[Instant | None, described("Since when.")]
    reason: Annotated[str | None, described("Why; the operator's reason where both froze it.")]
    frozen_by: Annotated[
        list[Literal["tenant", "operator"]],
        described("Frozen by: the tenant's own people or key, the operator, or both. Each ends only their own freeze."),
    ]


@command("signer", proofs=PROGRAM, audit=("agent.deleted", "agent.frozen"))
@refuses(AdministrationMoving, order_refusals.AgentAbsent)
class DeleteAgent(Command[DeletedAgent], frozen=True):
    """Delete an agent with its keys, policies, transactions and approvals."""

    agent: AgentId


class ChangedAgent(msgspec.Struct, frozen=True, rename="camel"):
    """The agent that was changed."""

    agent_id: Annotated[str, described("The agent.")]


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("agent.changed",))
@refuses(AdministrationMoving, order_refusals.AgentAbsent, order_refusals.KeyTampered)
class ChangeAgent(Command[ChangedAgent], frozen=True):
    """Change what an agent is called; what is left out stays as it is."""

    agent: AgentId
    name: DisplayName | None = None
    display_name: DisplayName | UnsetType | None = UNSET
    platform_id: DisplayName | UnsetType | None = UNSET


@command("signer", proofs=TENANT, mfa="tenantAdmin", roles=BUILDERS, audit=("agent.token_minted",))
@refuses(AdministrationMoving, order_refusals.AgentAbsent, refusals.WalletOfPerson)
class MintAgentToken(Command[AgentToken], frozen=True):
    """Create a token for an agent; it is returned only in this response."""

    agent: AgentId
    ttl_seconds: Annotated[int, Meta(ge=1, le=2_592_000)]
    expires_in: str


@command("signer", proofs=TENANT, mfa="tenantAdmin", audit=("agent.tokens_revoked",))
@refuses(AdministrationMoving, order_refusals.AgentAbsent)
class RevokeAgentTokens(Command[Revoked], frozen=True):
    """Revoke every token of an agent."""

    agent: AgentId


@command("signer", proofs=DECIDER, mfa="approvals", audit=("agent.frozen",))
@refuses(AdministrationMoving, order_refusals.AgentAbsent)
class FreezeAgent(Command[FrozenAgent], frozen=True):
    """Freeze an agent: nothing of it is signed until it is unfrozen. It keeps the first time and reason."""

    agent: AgentId
    reason: str | None = None


@command("signer", proofs=DECIDER, mfa="approvals", audit=("tenant.frozen",))
@refuses(AdministrationMoving)
class FreezeTenant(Command[FrozenTenant], frozen=True):
    """Freeze the tenant: nothing of any of its agents is signed until it is unfrozen."""

    reason: str | None = None


@command("signer", proofs=SESSION, mfa="approvals", audit=("agent.unfrozen",))
@refuses(AdministrationMoving, order_refusals.AgentAbsent)
class UnfreezeAgent(Command[FrozenAgent], frozen=True):
    """Unfreeze an agent."""

    agent: AgentId


@command("signer", proofs=SESSION, mfa="approvals", audit=("tenant.unfrozen",))
@refuses(AdministrationMoving, refusals.FrozenByOperator)
class UnfreezeTenant(Command[FrozenTenant], frozen=True):
    """Let the agents of the tenant sign again, except those that are frozen themselves."""


@command("signer", proofs=PLATFORM_KEY, scope=TENANT_WRITE, audit=("tenant.frozen",))
@refuses(AdministrationMoving, TenantAbsent)
class FreezeTenantIn(Command[FrozenTenant], frozen=True):
    """Freeze any tenant, by the operator: its people cannot end that."""

    tenant: TenantId
    reason: str | None = None


@command("signer", proofs=PLATFORM_KEY, scope=TENANT_WRITE, audit=("tenant.unfrozen",))
@refuses(AdministrationMoving, TenantAbsent)
class UnfreezeTenantIn(Command[FrozenTenant], frozen=True):
    """End the operator's freeze of a tenant; a freeze of its own stays."""

    tenant: TenantId


class ClaimedAddresses(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent and the addresses that its row says."""

    agent: AgentId
    # Families and addresses.
    wallets: Annotated[tuple[tuple[str, Annotated[str, Meta(max_length=128)]], ...], Meta(max_length=16)]


@command("signer", repeatable=True)
class HaveKeys(Command[list[str]], frozen=True):
    """Ask whether the keys of these agents have these addresses; for what is shown to people."""

    tenant: TenantId
    claimed: Annotated[list[ClaimedAddresses], Meta(max_length=MAX_ADDRESSES)]

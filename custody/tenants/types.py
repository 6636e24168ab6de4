"""A tenant, its configuration and its members. Spec 2/2.1 to 2.3, decisions 3, 4, 5, 10."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.identity.app_clients import AppClient
from custody.identity.mfa import MfaPolicy
from custody.identity.theme import PolicyTemplates, SecretRoutePresets, Theme
from custody.kit.errors import Gone, NotFound
from custody.kit.shapes import DisplayName, Reason, Role, TenantId, Url, Uuid

FLAGS = (
    "showFundingQR", "showTransactionHistory", "showSpendDashboard", "showPolicyControls", "showApprovalQueue",
    "showSecretManager",
    "enableSolana", "showChainSelector", "allowAddressExport",
)  # fmt: skip


class TenantAbsent(NotFound):
    """There is no such tenant."""


class DefaultPoliciesRetired(Gone):
    """Default policies are retired; set policies on each agent with PUT /agents/:agentId/policies."""


class TenantWebhookRetired(Gone):
    """A tenant's webhook is retired; use /webhooks, and PUT /agents/:agentId/policies for policies."""


class MemberAbsent(NotFound):
    """This user is not a member of this tenant."""


class NewTenantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`apiKeyHash` is the SHA-256 of the tenant's key (64 lower-case hex digits), or a raw key, which is hashed."""

    id: TenantId
    name: DisplayName
    api_key_hash: Annotated[str, Meta(min_length=32, max_length=256, pattern=r"^[\x21-\x7e]+\Z")]
    webhook_url: Url | None = None

    def __repr__(self) -> str:
        return f"NewTenantBody({self.id})"


class PlatformTenantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A tenant whose API key is made here and shown once."""

    id: TenantId
    name: DisplayName
    webhook_url: Url | None = None


class RegisteredTenant(msgspec.Struct, frozen=True, rename="camel"):
    """A tenant that brought its own key."""

    id: str
    name: str
    api_key_hash: str
    created_at: str


class CreatedTenant(msgspec.Struct, frozen=True, rename="camel"):
    """A tenant with its API key, shown this once."""

    id: str
    name: str
    api_key: str
    created_at: str

    def __repr__(self) -> str:
        return f"CreatedTenant({self.id})"


class Tenant(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A tenant; `agent_count` only where one is asked for by the platform."""

    id: str
    name: str
    created_at: str
    frozen_at: str | None = None
    agent_count: int | None = None


class DeletedTenant(msgspec.Struct, frozen=True):
    """What is gone."""

    deleted: str


class Stats(msgspec.Struct, frozen=True):
    """The whole deployment in three figures."""

    tenants: int
    agents: int
    transactions: int


class Approvers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who approves."""

    mode: Literal["owner"] = "owner"


class ApprovalConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How approvals behave; 0 seconds means that they never expire."""

    auto_expire_seconds: Annotated[int, Meta(ge=0, le=31_536_000)] = 86_400
    approvers: Approvers = Approvers()
    webhook_callback_enabled: bool = False
    uncovered_effects: Literal["queue", "allow", "refuse"] = "queue"


class AuthAbuseConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How recent a second factor must be; without `mfa` that stays as it is."""

    mfa: MfaPolicy | UnsetType = UNSET


class ShownConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """What people see of a tenant, and what they may begin with; nothing of it decides anything."""

    display_name: DisplayName | None = None
    policy_exposure: dict[str, Literal["visible", "enforced", "hidden"]] = {}
    policy_templates: PolicyTemplates = ()
    secret_route_presets: SecretRoutePresets = ()
    feature_flags: dict[str, bool] = {}
    theme: Theme | None = None


class TenantConfigBody(ShownConfig, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A full replacement; an omitted field is unset, and readers use its default.

    But `authAbuseConfig` and `appClients` stay as they are where they are omitted, and only people change them.
    """

    tenant_id: TenantId | None = None
    approval_config: ApprovalConfig = ApprovalConfig()
    auth_abuse_config: AuthAbuseConfig | UnsetType = UNSET
    app_clients: Annotated[tuple[AppClient, ...], Meta(max_length=50)] | UnsetType = UNSET


class PresentAuthAbuseConfig(msgspec.Struct, frozen=True):
    """How recent a second factor must be."""

    mfa: MfaPolicy = MfaPolicy()


class TenantConfig(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A tenant's configuration with the defaults filled in; a PUT takes it back."""

    tenant_id: str
    display_name: str | None = None
    policy_exposure: dict[str, Any] = {}
    policy_templates: PolicyTemplates = ()
    secret_route_presets: SecretRoutePresets = ()
    approval_config: ApprovalConfig = ApprovalConfig()
    feature_flags: dict[str, bool] = {}
    theme: Theme | None = None
    auth_abuse_config: PresentAuthAbuseConfig = PresentAuthAbuseConfig()
    app_clients: tuple[AppClient, ...] = ()


class FreezeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why; whoever meets the freeze is told."""

    reason: Reason | None = None


class FrozenAgent(msgspec.Struct, frozen=True, rename="camel"):
    """Whether an agent is frozen, since when and why."""

    agent_id: str
    frozen: bool
    frozen_at: str | None
    reason: str | None


class FrozenTenant(msgspec.Struct, frozen=True, rename="camel"):
    """Whether a tenant is frozen, since when and why."""

    tenant_id: str
    frozen: bool
    frozen_at: str | None
    reason: str | None


class MemberBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A user, and what he becomes in the tenant."""

    user_id: Uuid
    role: Role


class Membership(msgspec.Struct, frozen=True, rename="camel"):
    """A user's role in a tenant."""

    tenant_id: str
    user_id: str
    role: Role
    created_at: str


class Member(msgspec.Struct, frozen=True, rename="camel"):
    """A member of a tenant as the operator sees him."""

    user_id: str
    role: Role
    email: str | None
    wallet_address: str | None
    created_at: str


class RemovedMember(msgspec.Struct, frozen=True):
    """Who is no longer a member."""

    deleted: str

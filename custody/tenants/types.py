"""A tenant and its configuration. Spec 2/2.1, 2.2, decisions 3, 4, 5."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from custody.kit.errors import Gone, NotFound
from custody.kit.shapes import DisplayName, TenantId, Url

FLAGS = (
    "showFundingQR", "showTransactionHistory", "showSpendDashboard", "showPolicyControls", "showApprovalQueue",
    "showSecretManager",
    "enableSolana", "showChainSelector", "allowAddressExport",
)  # fmt: skip


class TenantAbsent(NotFound):
    """There is no such tenant."""


class DefaultPoliciesRetired(Gone):
    """Default policies are retired; set policies on each agent with PUT /agents/:agentId/policies."""


class NewTenantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`apiKeyHash` is the SHA-256 of the tenant's key (64 lower-case hex digits), or a raw key, which is hashed."""

    id: TenantId
    name: DisplayName
    api_key_hash: Annotated[str, Meta(min_length=32, max_length=256, pattern=r"^[\x21-\x7e]+\Z")]
    webhook_url: Url | None = None


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


class TenantConfigBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A full replacement; an omitted field is unset, and readers use its default."""

    tenant_id: TenantId | None = None
    display_name: DisplayName | None = None
    policy_exposure: dict[str, Literal["visible", "enforced", "hidden"]] = {}
    approval_config: ApprovalConfig = ApprovalConfig()
    feature_flags: dict[str, bool] = {}


class TenantConfig(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A tenant's configuration with the defaults filled in."""

    tenant_id: str
    display_name: str | None = None
    policy_exposure: dict[str, Any] = {}
    approval_config: ApprovalConfig = ApprovalConfig()
    feature_flags: dict[str, bool] = {}

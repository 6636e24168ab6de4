"""A tenant, its configuration and its members."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.identity.app_clients import AppClient
from custody.identity.joining import InvitationPolicy, WalletPolicy
from custody.identity.mfa import MfaPolicy
from custody.identity.theme import PolicyTemplates, SecretRoutePresets, Theme
from custody.kit.described import Id, Instant, described
from custody.kit.errors import Gone
from custody.kit.shapes import DisplayName, Reason, Role, TenantId, Url, Uuid
from custody.policies.named_tokens import MAX_TOKENS, NamedToken

FLAGS = (
    "showFundingQR",
    "showTransactionHistory",
    "showSpendDashboard",
    "showPolicyControls",
    "showApprovalQueue",
    "showSecretManager",
    "enableSolana",
    "showChainSelector",
    "allowAddressExport",
)


class DefaultPoliciesRetired(Gone):
    """Default policies are retired; set policies on each agent with PUT /agents/:agentId/policies."""


class TenantWebhookRetired(Gone):
    """A tenant's webhook is retired; use /webhooks, and PUT /agents/:agentId/policies for policies."""


class NewTenantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """`apiKeyHash` is the SHA-256 of the tenant's key (64 lower-case hex digits), or a raw key, which is hashed."""

    id: Annotated[TenantId, described("The tenant's id.")]
    name: Annotated[DisplayName, described("A name for people.")]
    api_key_hash: Annotated[
        str,
        Meta(min_length=32, max_length=256, pattern=r"^[\x21-\x7e]+\Z"),
        described("The SHA-256 of the tenant's API key in hex, or the key itself."),
    ]
    webhook_url: Annotated[Url | None, described("Not used: create endpoints under `/webhooks`.")] = None

    def __repr__(self) -> str:
        return f"NewTenantBody({self.id})"


class PlatformTenantBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A tenant whose API key the service creates and returns once."""

    id: Annotated[TenantId, described("The tenant's id.")]
    name: Annotated[DisplayName, described("A name for people.")]
    webhook_url: Annotated[Url | None, described("Not used: create endpoints under `/webhooks`.")] = None


class RegisteredTenant(msgspec.Struct, frozen=True, rename="camel"):
    """A tenant created with its own key."""

    id: Annotated[str, described("The tenant's id.")]
    name: Annotated[str, described("The tenant's name.")]
    api_key_hash: Annotated[str, described("The SHA-256 of its API key in hex.")]
    created_at: Annotated[Instant, described("Time of creation.")]


class CreatedTenant(msgspec.Struct, frozen=True, rename="camel"):
    """A tenant with its API key, returned only here."""

    id: Annotated[str, described("The tenant's id.")]
    name: Annotated[str, described("The tenant's name.")]
    api_key: Annotated[str, described("The API key; it is returned only here.")]
    created_at: Annotated[Instant, described("Time of creation.")]

    def __repr__(self) -> str:
        return f"CreatedTenant({self.id})"


class Tenant(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A tenant; `agent_count` only on the platform route of one tenant."""

    id: Annotated[str, described("The tenant's id.")]
    name: Annotated[str, described("The tenant's name.")]
    created_at: Annotated[Instant, described("Time of creation.")]
    frozen_at: Annotated[Instant | None, described("Time of the freeze; absent if it is not frozen.")] = None
    agent_count: Annotated[int | None, described("Number of agents; only where the operator asks for one tenant.")] = (
        None
    )


class Me(msgspec.Struct, frozen=True, rename="camel"):
    """A credential; fields that its kind does not have are null."""

    kind: Annotated[
        Literal["tenant_key", "agent_token", "session", "app_client", "platform_key"],
        described("The kind of credential."),
    ]
    tenant_id: Annotated[str | None, described("The tenant; null for the operator.")] = None
    agent_id: Annotated[str | None, described("The agent whose token it is.")] = None
    user_id: Annotated[Id | None, described("The person who is signed in.")] = None
    role: Annotated[Role | None, described("The person's role in the tenant.")] = None
    client_id: Annotated[str | None, described("The app client.")] = None
    key_id: Annotated[Id | None, described("The id of a tenant's API key.")] = None
    name: Annotated[str | None, described("The name of a tenant's API key.")] = None
    prefix: Annotated[str | None, described("First letters of a key or secret.")] = None
    scopes: Annotated[list[str] | None, described("Its scopes; null if none narrow what it may do.")] = None
    expires_at: Annotated[Instant | None, described("Time of expiry; null if only a revocation ends it.")] = None


class Stats(msgspec.Struct, frozen=True):
    """The whole deployment in three figures."""

    tenants: Annotated[int, described("Number of tenants.")]
    agents: Annotated[int, described("Number of agents.")]
    transactions: Annotated[int, described("Number of transactions.")]


class Approvers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The roles that may approve."""

    mode: Annotated[Literal["owner"], described("People who may approve.")] = "owner"


class ApprovalConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Approval settings; 0 seconds: approvals never expire."""

    auto_expire_seconds: Annotated[
        int, Meta(ge=0, le=31_536_000), described("Seconds until an undecided approval expires; 0 means never.")
    ] = 86_400
    approvers: Annotated[Approvers, described("People who may approve.")] = Approvers()
    webhook_callback_enabled: Annotated[bool, described("Stored and shown; nothing depends on it.")] = False
    uncovered_effects: Annotated[
        Literal["queue", "allow", "refuse"], described("Outcome of an order with an effect that no rule covers.")
    ] = "queue"


class AuthAbuseConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules for second factors, invitations and linked wallets; an omitted part stays as it is."""

    mfa: Annotated[MfaPolicy | UnsetType, described("Maximum age of a second factor.")] = UNSET
    invitations: Annotated[InvitationPolicy | UnsetType, described("Rules for joining.")] = UNSET
    wallet: Annotated[WalletPolicy | UnsetType, described("Rules for linked wallets.")] = UNSET


class ShownConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The public part of a tenant, and what people may begin with; nothing of it decides anything."""

    display_name: Annotated[DisplayName | None, described("The tenant's name as people see it.")] = None
    policy_exposure: Annotated[
        dict[str, Literal["visible", "enforced", "hidden"]],
        described("Types of rule by name, and whether people see them."),
    ] = {}
    policy_templates: Annotated[PolicyTemplates, described("Sets of rules to start with.")] = ()
    secret_route_presets: Annotated[SecretRoutePresets, described("Credential routes to start with.")] = ()
    feature_flags: Annotated[dict[str, bool], described("Features of the tenant's pages, by name.")] = {}
    theme: Annotated[Theme | None, described("Theme of the tenant's pages.")] = None


class TenantConfigBody(ShownConfig, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A full replacement; an omitted field is unset, and readers use its default.

    Exceptions: `authAbuseConfig` and `appClients` stay as they are if omitted, and only people may change them.
    """

    tenant_id: Annotated[TenantId | None, described("The tenant; must be the one in the path.")] = None
    approval_config: Annotated[ApprovalConfig, described("Settings of approvals.")] = ApprovalConfig()
    auth_abuse_config: Annotated[
        AuthAbuseConfig | UnsetType, described("Rules for second factors, invitations and linked wallets.")
    ] = UNSET
    app_clients: Annotated[
        Annotated[tuple[AppClient, ...], Meta(max_length=50)] | UnsetType,
        described("The app clients, replacing all of them."),
    ] = UNSET


class PresentAuthAbuseConfig(msgspec.Struct, frozen=True):
    """Rules for second factors, invitations and linked wallets."""

    mfa: Annotated[MfaPolicy, described("Maximum age of a second factor.")] = MfaPolicy()
    invitations: Annotated[InvitationPolicy, described("Rules for joining.")] = InvitationPolicy()
    wallet: Annotated[WalletPolicy, described("Rules for linked wallets.")] = WalletPolicy()


class TenantConfig(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A tenant's configuration with defaults filled in; it can be sent back with PUT."""

    tenant_id: Annotated[str, described("The tenant.")]
    display_name: Annotated[str | None, described("The tenant's name as people see it.")] = None
    policy_exposure: Annotated[dict[str, Any], described("Types of rule by name, and whether people see them.")] = {}
    policy_templates: Annotated[PolicyTemplates, described("Sets of rules to start with.")] = ()
    secret_route_presets: Annotated[SecretRoutePresets, described("Credential routes to start with.")] = ()
    approval_config: Annotated[ApprovalConfig, described("Settings of approvals.")] = ApprovalConfig()
    feature_flags: Annotated[dict[str, bool], described("Features of the tenant's pages, by name.")] = {}
    theme: Annotated[Theme | None, described("Theme of the tenant's pages.")] = None
    auth_abuse_config: Annotated[
        PresentAuthAbuseConfig, described("Rules for second factors, invitations and linked wallets.")
    ] = PresentAuthAbuseConfig()
    app_clients: Annotated[tuple[AppClient, ...], described("The app clients.")] = ()


class FreezeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reason; callers that are refused because of the freeze see it."""

    reason: Annotated[Reason | None, described("Why; callers that are refused see it.")] = None


class NamedTokensBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All names from now on; a token that is not among them has none."""

    tokens: Annotated[
        Annotated[list[NamedToken], Meta(max_length=MAX_TOKENS)],
        described("Each token, and what the owners of the tenant call it."),
    ]


class MemberBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A user, and their role in the tenant."""

    user_id: Annotated[Uuid, described("The user.")]
    role: Annotated[Role, described("Role in the tenant.")]
    force: Annotated[bool, described("Change the role even of the tenant's last owner.")] = False


class RoleBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A member's role from now on."""

    role: Annotated[Role, described("Role in the tenant; only an owner gives or takes `owner` and `admin`.")]


class RemoveMemberBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The confirmation for removing a last owner."""

    force: Annotated[bool, described("Remove them even if the tenant is left without an owner.")] = False


class Member(msgspec.Struct, frozen=True, rename="camel"):
    """A member of a tenant as the operator, its owners and its admins see them."""

    user_id: Annotated[Id, described("The user.")]
    role: Annotated[Role, described("Role in the tenant.")]
    email: Annotated[str | None, described("The address that they sign in with, else the one that a provider shows.")]
    email_verified: Annotated[bool | None, described("True if the address was proven here; null without one.")]
    wallet_address: Annotated[str | None, described("The wallet that they signed in with.")]
    created_at: Annotated[Instant, described("Time of joining the tenant.")]

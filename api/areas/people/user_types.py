"""People as the operator and a tenant's admins see them, and what is sent about them."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from custody.identity.addresses import PHONE_PATTERN
from custody.kit.cursors import Cursor
from custody.kit.described import Id, InContract, Instant, described
from custody.kit.errors import Conflict, Invalid, NotFound
from custody.kit.paging import Page
from custody.kit.shapes import DisplayName, ReferenceId, Role, TenantId
from custody.kit.spellings import both_spellings
from custody.people.types import EmailText
from custody.protocol.identity.users import ExternalIdWords, NamedRole

WalletChain = Literal["ethereum", "solana"]
# Loose on purpose: what is wrong with one is said in a sentence.
PhoneText = Annotated[
    str, Meta(min_length=3, max_length=32, examples=["+41790000000"], extra_json_schema={"pattern": PHONE_PATTERN})
]
WALLET_PATTERN = r"^(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})\Z"
CONTRACT_PATTERN = r"^([1-9][0-9]{0,15}:)?0x[0-9a-fA-F]{40}\Z"
WalletText = Annotated[str, Meta(min_length=32, max_length=44, extra_json_schema={"pattern": WALLET_PATTERN})]
ContractText = Annotated[str, Meta(min_length=42, max_length=64, extra_json_schema={"pattern": CONTRACT_PATTERN})]
ProviderWord = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[\x21-\x7e]+\Z")]
AccountWord = Annotated[str, Meta(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f\x7f]+\Z")]
_EXTERNAL_ID = described("The external id of their wallet in the tenant.")
# Its other names.
_SAME = dict.fromkeys(("externalId", "wallet_external_id", "external_id"), "walletExternalId")
_METADATA = described("Anything of yours: at most 16 KiB as JSON, 8 levels deep.")
_TENANT = described("Only a member of this tenant.")


class OneIdentity(Invalid):
    """Say who is meant in exactly one way: email, phone, walletAddress, walletExternalId, smartWalletId, and so on."""

    def __init__(self, message: str | None = None, **context: Any) -> None:
        super().__init__(message, code="one_identity", **context)


class IdentityAmbiguous(Conflict):
    """This means several people; name the tenant, or look them up by something that only one of them has."""


class PlatformUserAbsent(NotFound):
    """No user has this, or none who is a member of the tenant that you named."""

    def __init__(self) -> None:
        super().__init__(code="user_absent")


class BadWalletAddress(Invalid):
    """walletAddress must be an EVM address (0x and 40 hex digits) or a Solana address in base58."""


class BadSmartWallet(Invalid):
    """smartWalletId must be the address of a contract (0x and 40 hex digits), or `<chainId>:<address>`."""


class ExternalIdMissing(Invalid):
    """walletExternalId is missing; send the external id of a wallet."""


class TwoExternalIds(Invalid):
    """walletExternalId and externalId are two names of one field, and have different values here; send one of them."""


class ExternalIdFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=both_spellings, kw_only=True):
    """An external id by any of its names."""

    contract: ClassVar = InContract(same=_SAME)

    wallet_external_id: Annotated[ExternalIdWords | None, _EXTERNAL_ID] = None
    external_id: Annotated[ExternalIdWords | None, _EXTERNAL_ID] = None
    wallet_external_id_: Annotated[ExternalIdWords | None, _EXTERNAL_ID] = None
    external_id_: Annotated[ExternalIdWords | None, _EXTERNAL_ID] = None

    @property
    def named(self) -> str | None:
        """The one that was sent, or None; TwoExternalIds where they differ."""
        sent = {self.wallet_external_id, self.external_id, self.wallet_external_id_, self.external_id_}
        found = sent - {None}
        if len(found) > 1:
            raise TwoExternalIds(fields=["walletExternalId", "externalId"])
        return found.pop() if found else None

    @property
    def needed(self) -> str:
        """The one that was sent; ExternalIdMissing without one."""
        found = self.named
        if found is None:
            raise ExternalIdMissing(fields=["walletExternalId"])
        return found


class NewUserBody(ExternalIdFields, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A person whom you name; the address says who it is."""

    email: Annotated[EmailText, described("Their address: the user who signs in with it, or a new one.")]
    email_verified: Annotated[bool, described("True if you know that the address is theirs.")] = False
    name: Annotated[DisplayName | None, described("A new user's name.")] = None
    custom_metadata: Annotated[dict[str, Any], _METADATA] = {}
    tenant_id: Annotated[
        TenantId | None, described("A tenant to make them a member of; needed with `walletExternalId`.")
    ] = None

    def __repr__(self) -> str:
        return "NewUserBody()"


class ExternalIdBody(ExternalIdFields, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An external id in a tenant."""

    contract: ClassVar = InContract(needed=("walletExternalId",), same=_SAME)

    tenant_id: Annotated[TenantId, described("The tenant.")]


class ConnectBody(ExternalIdBody, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """An external id, and the person who gets it where nobody has it yet."""

    email: Annotated[EmailText | None, described("Their address; without it a new user cannot sign in.")] = None
    email_verified: Annotated[bool, described("True if you know that the address is theirs.")] = False
    name: Annotated[DisplayName | None, described("A new user's name.")] = None
    custom_metadata: Annotated[dict[str, Any], _METADATA] = {}
    role: Annotated[NamedRole, described("The role of a new member; that of a member is left as it is.")] = "member"

    def __repr__(self) -> str:
        return "ConnectBody()"


class ByEmailBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """An address."""

    email: Annotated[EmailText, described("The address that they sign in with.")]
    tenant_id: Annotated[TenantId | None, _TENANT] = None


class ByPhoneBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A telephone number."""

    phone: Annotated[PhoneText, described("The number (E.164) of their second factor.")]
    tenant_id: Annotated[TenantId | None, _TENANT] = None


class ByWalletBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A wallet."""

    wallet_address: Annotated[WalletText, described("The wallet that they sign in with.")]
    tenant_id: Annotated[TenantId | None, _TENANT] = None


class BySmartWalletBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A contract wallet."""

    smart_wallet_id: Annotated[
        ContractText, described("The contract wallet that they sign in with: `<chainId>:<address>`, or its address.")
    ]
    tenant_id: Annotated[TenantId | None, _TENANT] = None


class LookupQuery(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The person who is meant, in exactly one way; with a tenant only one of its members."""

    email: Annotated[EmailText | None, described("The address that they sign in with.")] = None
    phone: Annotated[PhoneText | None, described("The number (E.164) of their second factor.")] = None
    wallet_address: Annotated[WalletText | None, described("The wallet that they sign in with.")] = None
    wallet_external_id: Annotated[
        ExternalIdWords | None, described("The external id of their wallet; `tenantId` is needed with it.")
    ] = None
    smart_wallet_id: Annotated[
        ContractText | None,
        described("The contract wallet that they sign in with: `<chainId>:<address>`, or its address."),
    ] = None
    custom_auth_id: Annotated[
        ReferenceId | None, described("Taken and never found: this version has no sign-in of the operator's own.")
    ] = None
    provider: Annotated[
        ProviderWord | None, described("The `provider` of a linked account; `providerAccountId` is needed with it.")
    ] = None
    provider_account_id: Annotated[AccountWord | None, described("The `providerAccountId` of a linked account.")] = None
    tenant_id: Annotated[TenantId | None, _TENANT] = None


class TenantUsersQuery(Page, frozen=True, rename="camel", kw_only=True):
    """The members to list; without an external id all of them."""

    wallet_external_id: Annotated[
        ExternalIdWords | None, described("Only the member whose wallet has this external id in the tenant.")
    ] = None


class LinkedAccount(msgspec.Struct, frozen=True, rename="camel"):
    """Something that a person signs in with, beside e-mail addresses."""

    id: Annotated[Id, described("The linked account's id.")]
    provider: Annotated[
        str,
        described(
            "`google`, `discord`, `twitter`, `oidc:<id>`, `saml`, `wallet:ethereum`, `wallet:solana` or "
            "`wallet:contract`."
        ),
    ]
    provider_account_id: Annotated[str, described("Their id there: a wallet's address, or the provider's own id.")]
    expires_at: Annotated[int | None, described("Always null: no token of a provider is kept.")] = None


class WalletExternalId(msgspec.Struct, frozen=True, rename="camel"):
    """The external id of a person's wallet in one tenant."""

    tenant_id: Annotated[str, described("The tenant.")]
    external_id: Annotated[str, described("The external id.")]


class PlatformUser(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A person as the operator sees them."""

    user_id: Annotated[Id, described("The user.")]
    email: Annotated[str | None, described("The address that they sign in with, else the one that a provider shows.")]
    name: Annotated[str | None, described("Their name.")]
    image: Annotated[str | None, described("The address of their picture.")]
    email_verified: Annotated[bool | None, described("True if the address was proven; null without one.")]
    wallet_address: Annotated[str | None, described("The first wallet that they sign in with.")]
    wallet_chain: Annotated[WalletChain | None, described("The kind of chain of that wallet.")]
    custom_metadata: Annotated[dict[str, Any], described("Metadata given at the user's creation.")]
    deactivated_at: Annotated[Instant | None, described("Time of the user's deactivation.")]
    created_at: Annotated[Instant, described("Time of the user's creation.")]
    updated_at: Annotated[Instant, described("Time of the user's last change.")]
    tenant_ids: Annotated[list[str], described("Their tenants, the oldest membership first; at most 1,000.")]
    linked_accounts: Annotated[list[LinkedAccount], described("Ways to sign in, beside e-mail addresses.")]
    wallet_external_ids: Annotated[list[WalletExternalId], described("The external ids of their wallets.")]


class DeploymentUser(PlatformUser, frozen=True, rename="camel", kw_only=True):
    """A person of the whole deployment."""


class FoundUser(msgspec.Struct, frozen=True):
    """The person who was looked up."""

    user: Annotated[PlatformUser, described("The user.")]


class ConnectedUser(msgspec.Struct, frozen=True, rename="camel"):
    """The user of an external id."""

    user_id: Annotated[Id, described("The user.")]
    is_new: Annotated[bool, described("True if this call created the user.")]
    created_external_id: Annotated[bool, described("True if this call gave them the external id.")]
    tenant_id: Annotated[str, described("The tenant.")]
    wallet_external_id: Annotated[str, described("Their wallet's external id in the tenant.")]
    user: Annotated[PlatformUser, described("The user as they are now.")]


class TenantUser(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A member as the tenant's admins see them: nothing of other tenants."""

    user_id: Annotated[Id, described("The user.")]
    email: Annotated[str | None, described("The address that they sign in with, else the one that a provider shows.")]
    name: Annotated[str | None, described("Their name.")]
    image: Annotated[str | None, described("The address of their picture.")]
    role: Annotated[Role, described("Role in the tenant.")]
    wallet_address: Annotated[str | None, described("The first wallet that they sign in with.")]
    wallet_chain: Annotated[WalletChain | None, described("The kind of chain of that wallet.")]
    wallet_external_ids: Annotated[
        list[WalletExternalId], described("The external id of their wallet in this tenant, if there is one.")
    ]
    created_at: Annotated[Instant, described("Time of joining the tenant.")]


class UserChangeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Changes of a user's profile; omitted fields stay as they are."""

    name: Annotated[DisplayName | UnsetType | None, described("Their name; null takes it away.")] = UNSET
    custom_metadata: Annotated[
        dict[str, Any] | UnsetType, described("Anything of yours, at most 16 KiB, in place of what was there.")
    ] = UNSET

    def __repr__(self) -> str:
        return "UserChangeBody()"


class ForceBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The confirmation for a last owner of a tenant."""

    force: Annotated[bool, described("Do it even if a tenant is left without an active owner.")] = False


class UsersQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The users to list, and their number."""

    search: Annotated[
        Annotated[str, Meta(min_length=2, max_length=254)] | None,
        described("Only users whose name or address has this in it, in any case."),
    ] = None
    active: Annotated[bool | None, described("Only users who are active (`true`), or are deactivated (`false`).")] = (
        None
    )
    limit: Annotated[int, Meta(ge=1, le=200), described("Maximum number of items.")] = 50
    cursor: Cursor | None = None

"""People as the operator names and finds them."""

from api.areas.people import lifecycle, look_up, provision, user_store
from api.areas.people.user_types import (
    BadSmartWallet,
    BadWalletAddress,
    ByEmailBody,
    ByPhoneBody,
    BySmartWalletBody,
    ByWalletBody,
    ConnectBody,
    ConnectedUser,
    DeploymentUser,
    ExternalIdBody,
    ExternalIdMissing,
    ForceBody,
    FoundUser,
    IdentityAmbiguous,
    LookupQuery,
    NewUserBody,
    OneIdentity,
    PlatformUser,
    PlatformUserAbsent,
    TenantUsersQuery,
    TwoExternalIds,
    UserChangeBody,
    UsersQuery,
)
from api.http.bodies import MAX_METADATA_BODY
from api.http.endpoint import Routes
from api.http.who import asking, platform
from custody.identity.addresses import BadEmailAddress, BadPhoneNumber
from custody.identity.provisioning import BadExternalId
from custody.identity.scopes import TENANT_USER_READ, USER_READ
from custody.kit.answer_kinds import Created
from custody.kit.answers import Answered
from custody.kit.callers import PlatformCaller
from custody.kit.paging import Listed
from custody.ports import Ports
from custody.protocol.identity.refusals import (
    ExternalIdNeedsTenant,
)
from custody.protocol.identity.users import (
    AssignedExternalId,
    AssignExternalId,
    ChangeUser,
    ConnectOrCreateUser,
    CreateUser,
    DeactivateUser,
    DeletedUser,
    DeleteUser,
    NamedUser,
    ReactivateUser,
)
from custody.protocol.refusals import TenantAbsent

routes = Routes("/platform", tag="Platform users")


@routes.post("/users", who=asking(CreateUser), fails=(TwoExternalIds,), max_body=MAX_METADATA_BODY)
async def create_user(
    ports: Ports, caller: PlatformCaller, body: NewUserBody
) -> Answered[Created[NamedUser] | NamedUser]:
    """Create the user of an e-mail address, or find them: 201 if they are new.

    With `tenantId` they become a member of it, as `member`. Of a user who is there already nothing else changes: not
    the name, not the metadata, not the role.
    """
    return await provision.create(ports, caller, body)


@routes.get(
    "/users/lookup",
    who=platform(USER_READ),
    fails=(
        BadEmailAddress,
        BadExternalId,
        BadPhoneNumber,
        BadSmartWallet,
        BadWalletAddress,
        ExternalIdNeedsTenant,
        IdentityAmbiguous,
        OneIdentity,
        PlatformUserAbsent,
    ),
)
async def look_up_user(ports: Ports, query: LookupQuery) -> FoundUser:
    """Find a user by exactly one thing: what they sign in with, their number, or the external id of their wallet.

    With `tenantId` only a member of that tenant is found. A deactivated user is found too; see `deactivatedAt`.
    """
    return await look_up.by_any(ports, query)


@routes.post(
    "/users/email/address",
    who=platform(USER_READ),
    fails=(BadEmailAddress, IdentityAmbiguous, PlatformUserAbsent),
)
async def find_user_by_email(ports: Ports, body: ByEmailBody) -> FoundUser:
    """Find a user by the e-mail address that they sign in with.

    With `tenantId` also a member whom the tenant's own identity provider shows with this address.
    """
    return await look_up.by_email(ports, body)


@routes.post(
    "/users/phone/number",
    who=platform(USER_READ),
    fails=(BadPhoneNumber, IdentityAmbiguous, PlatformUserAbsent),
)
async def find_user_by_phone(ports: Ports, body: ByPhoneBody) -> FoundUser:
    """Find a user by the telephone number of their second factor."""
    return await look_up.by_phone(ports, body)


@routes.post(
    "/users/wallet/address", who=platform(USER_READ), fails=(BadWalletAddress, IdentityAmbiguous, PlatformUserAbsent)
)
async def find_user_by_wallet(ports: Ports, body: ByWalletBody) -> FoundUser:
    """Find a user by the wallet that they sign in with, in any spelling of its address."""
    return await look_up.by_wallet(ports, body)


@routes.post(
    "/users/smart-wallet/address",
    who=platform(USER_READ),
    fails=(BadSmartWallet, IdentityAmbiguous, PlatformUserAbsent),
)
async def find_user_by_smart_wallet(ports: Ports, body: BySmartWalletBody) -> FoundUser:
    """Find a user by the contract wallet that they sign in with.

    An address alone may be different contracts on different chains: 409 `identity_ambiguous` if several people have it.
    """
    return await look_up.by_smart_wallet(ports, body)


@routes.post(
    "/users/wallet/external-id",
    who=platform(USER_READ),
    fails=(BadExternalId, ExternalIdMissing, IdentityAmbiguous, PlatformUserAbsent, TwoExternalIds),
)
async def find_user_by_external_id(ports: Ports, body: ExternalIdBody) -> FoundUser:
    """Find a user by the external id of their wallet in a tenant."""
    return await look_up.by_external_id(ports, body)


@routes.get("/users", who=platform(USER_READ))
async def list_platform_users(ports: Ports, query: UsersQuery) -> Listed[DeploymentUser]:
    """List the users of all tenants, newest first, or search them by name and address.

    A page of a search looks at 2,000 users: it may have fewer than `limit`, or none, and not be the last. Only
    `nextCursor` says whether there is more.
    """
    return await user_store.page(ports.pool, query)


@routes.get("/users/<user_id>", who=platform(USER_READ), fails=(PlatformUserAbsent,))
async def get_platform_user(ports: Ports, user_id: str) -> PlatformUser:
    """Get one user."""
    return await lifecycle.get(ports, user_id)


@routes.patch("/users/<user_id>", who=asking(ChangeUser), fails=(PlatformUserAbsent,), max_body=MAX_METADATA_BODY)
async def change_platform_user(
    ports: Ports, caller: PlatformCaller, user_id: str, body: UserChangeBody
) -> Answered[PlatformUser]:
    """Change a user's name or metadata; never what they sign in with."""
    return await lifecycle.change(ports, caller, user_id, body)


@routes.post("/users/<user_id>/deactivate", who=asking(DeactivateUser), fails=(PlatformUserAbsent,))
async def deactivate_platform_user(
    ports: Ports, caller: PlatformCaller, user_id: str, body: ForceBody
) -> Answered[PlatformUser]:
    """Deactivate a user: they sign in nowhere any more, and their sessions, devices and votes end at once.

    A tenant's credentials go on: API keys, agents' tokens, signers. Freeze their own tenant, `personal-<userId>`, to
    stop its wallets too. The last owner of another tenant is 409 `last_owner` unless `force` is true.
    """
    return await lifecycle.deactivate(ports, caller, user_id, body)


@routes.post("/users/<user_id>/reactivate", who=asking(ReactivateUser), fails=(PlatformUserAbsent,))
async def reactivate_platform_user(ports: Ports, caller: PlatformCaller, user_id: str) -> Answered[PlatformUser]:
    """Let a deactivated user sign in again. Their sessions stay ended."""
    return await lifecycle.reactivate(ports, caller, user_id)


@routes.delete("/users/<user_id>", who=asking(DeleteUser))
async def delete_platform_user(
    ports: Ports, caller: PlatformCaller, user_id: str, body: ForceBody
) -> Answered[DeletedUser]:
    """Delete a user permanently, with what they sign in with, their second factors and memberships.

    Only who is deactivated (else 409 `user_active`), and has no own tenant any more (else 409 `user_has_tenant`): no
    wallet is lost by it. The last owner of a tenant is 409 `last_owner` unless `force` is true.
    """
    return await ports.workers.ask(DeleteUser(user_id, body.force), caller)


@routes.post(
    "/users/<user_id>/wallet/external-id",
    who=asking(AssignExternalId),
    fails=(ExternalIdMissing, TwoExternalIds),
)
async def assign_external_id(
    ports: Ports, caller: PlatformCaller, user_id: str, body: ExternalIdBody
) -> Answered[AssignedExternalId]:
    """Give a user's wallet an external id in a tenant. It is never changed; the same one again is no change.

    A user who is no member of the tenant becomes one, as `member`.
    """
    return await provision.assign(ports, caller, user_id, body)


@routes.post(
    "/users/wallet/external-id/connect-or-create",
    who=asking(ConnectOrCreateUser),
    fails=(ExternalIdMissing, PlatformUserAbsent, TwoExternalIds),
    max_body=MAX_METADATA_BODY,
)
async def connect_or_create_user(
    ports: Ports, caller: PlatformCaller, body: ConnectBody
) -> Answered[Created[ConnectedUser] | ConnectedUser]:
    """Find the user of an external id; else give it to the user of the address, or to a new one: 201 if they are new.

    They become a member of the tenant with `role`; one who is a member keeps theirs. A user who cannot sign in yet gets
    the address. An external id and an address of two users are 409 `external_id_taken`.
    """
    return await provision.connect_or_create(ports, caller, body)


@routes.get("/tenants/<tenant_id>/users", who=platform(TENANT_USER_READ), fails=(BadExternalId, TenantAbsent))
async def list_platform_tenant_users(ports: Ports, tenant_id: str, query: TenantUsersQuery) -> Listed[PlatformUser]:
    """List the users who are members of a tenant, newest member first."""
    return await look_up.users_of(ports, tenant_id, query)

"""Find people: by what they sign in with, or by an id of the operator's own."""

import re
from typing import Final

from api.areas.people import linked, user_store
from api.areas.people.linked import Selector
from api.areas.people.user_types import (
    CONTRACT_PATTERN,
    BadSmartWallet,
    BadWalletAddress,
    ByEmailBody,
    ByPhoneBody,
    BySmartWalletBody,
    ByWalletBody,
    ExternalIdBody,
    FoundUser,
    IdentityAmbiguous,
    LookupQuery,
    OneIdentity,
    PlatformUser,
    PlatformUserAbsent,
    TenantUser,
    TenantUsersQuery,
)
from custody.chains.built_in import FAMILIES
from custody.identity.addresses import normalised_email, phone_number
from custody.identity.provisioning import external_id
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed
from custody.ports import Ports
from custody.protocol.identity.refusals import ExternalIdNeedsTenant
from custody.protocol.refusals import TenantAbsent

_CONTRACT: Final = re.compile(CONTRACT_PATTERN)
_SELECTORS: Final = (
    "email",
    "phone",
    "wallet_address",
    "wallet_external_id",
    "smart_wallet_id",
    "custom_auth_id",
    "provider",
)


async def by_any(ports: Ports, query: LookupQuery) -> FoundUser:
    """Find the person whom exactly one selector means; OneIdentity without one, or with two."""
    given = [name for name in _SELECTORS if getattr(query, name) is not None]
    if (query.provider is None) != (query.provider_account_id is None):
        missing = "provider" if query.provider is None else "providerAccountId"
        raise OneIdentity("provider and providerAccountId are sent together.", fields=[missing])
    if len(given) != 1:
        raise OneIdentity
    return await _find(ports, query.tenant_id, _selector(query))


async def by_email(ports: Ports, body: ByEmailBody) -> FoundUser:
    """Find the person who signs in with an address."""
    return await _find(ports, body.tenant_id, _email(body.email))


async def by_phone(ports: Ports, body: ByPhoneBody) -> FoundUser:
    """Find the person whose second factor is a number."""
    return await _find(ports, body.tenant_id, _phone(body.phone))


async def by_wallet(ports: Ports, body: ByWalletBody) -> FoundUser:
    """Find the person who signs in with a wallet."""
    return await _find(ports, body.tenant_id, _wallet(body.wallet_address))


async def by_smart_wallet(ports: Ports, body: BySmartWalletBody) -> FoundUser:
    """Find the person who signs in with a contract wallet."""
    return await _find(ports, body.tenant_id, _contract(body.smart_wallet_id))


async def by_external_id(ports: Ports, body: ExternalIdBody) -> FoundUser:
    """Find the person whose wallet has an external id in a tenant."""
    return await _find(ports, body.tenant_id, Selector("external_id", external_id(body.needed)))


async def users_of(ports: Ports, tenant: str, query: TenantUsersQuery) -> Listed[PlatformUser]:
    """A tenant's members as the operator sees them; TenantAbsent if there is no such tenant."""
    found = await user_store.members(ports.pool, tenant, _external_id(query), query.limit, query.offset)
    if not found.total and not await user_store.has_tenant(ports.pool, tenant):
        raise TenantAbsent
    return found


async def team_of(ports: Ports, caller: SessionCaller, query: TenantUsersQuery) -> Listed[TenantUser]:
    """A tenant's members as its admins see them."""
    return await user_store.team(ports.pool, caller.tenant, _external_id(query), query.limit, query.offset)


def _external_id(query: TenantUsersQuery) -> str | None:
    return external_id(query.wallet_external_id) if query.wallet_external_id is not None else None


def _selector(query: LookupQuery) -> Selector | None:
    """The one selector; None for one that nobody can have."""
    if query.email is not None:
        return _email(query.email)
    if query.phone is not None:
        return _phone(query.phone)
    if query.wallet_address is not None:
        return _wallet(query.wallet_address)
    if query.smart_wallet_id is not None:
        return _contract(query.smart_wallet_id)
    if query.wallet_external_id is not None:
        if query.tenant_id is None:
            raise ExternalIdNeedsTenant(fields=["tenantId"])
        return Selector("external_id", external_id(query.wallet_external_id))
    if query.provider is not None and query.provider_account_id is not None:
        return linked.of_account(query.provider, query.provider_account_id, query.tenant_id)
    return None


def _email(text: str) -> Selector:
    return Selector("email", normalised_email(text))


def _phone(text: str) -> Selector:
    return Selector("phone", phone_number(text))


def _wallet(address: str) -> Selector:
    if FAMILIES["evm"].is_address(address):
        return Selector("wallet", address)
    if FAMILIES["solana"].is_address(address):
        return Selector("solana", address)
    raise BadWalletAddress(fields=["walletAddress"])


def _contract(text: str) -> Selector:
    if not _CONTRACT.match(text):
        raise BadSmartWallet(fields=["smartWalletId"])
    return Selector("contract", text)


async def _find(ports: Ports, tenant: str | None, selector: Selector | None) -> FoundUser:
    people = await user_store.find(ports.pool, tenant, selector) if selector is not None else []
    if len(people) > 1:
        raise IdentityAmbiguous
    if not people:
        raise PlatformUserAbsent
    return FoundUser(people[0])

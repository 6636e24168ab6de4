"""Forced sign-on: members with an address in a proven domain of their tenant sign in there by its own provider alone.

It counts from the moment at which the domain is verified, asks for it, and the tenant has an enabled provider. Owners
are exempt, or a broken provider would lock everybody out for good. An attacker who can write the database can lift it
by deleting a row, of a domain or of a provider; a domain's row that was changed is refused.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from custody.identity import domains
from custody.identity.domains import SignOnMethod
from custody.kit import clock
from custody.kit.shapes import Role
from custody.protocol.identity.refusals import SsoRequired
from custody.worker.proven import PLATFORM
from custody.worker.sealing import fields
from identity.context import Identity
from identity.people.persons import IDENTITY_MAC, of_row

SSO_DOMAIN_MAC = "sso-domain-mac"
_ONE = "SELECT * FROM sso_domain_of($1, $2)"
_ALL = "SELECT * FROM sso_domains WHERE tenant_id = $1"
_PROVIDERS = "SELECT * FROM sign_on_providers($1)"
_FACTS = "SELECT * FROM sign_on_facts($1, $2)"
# The tenant whose sign-on is all that a person has; nothing where they have an identity of their own, or none at all.
_VOUCHES = "SELECT min(tenant_id) FROM identities WHERE user_id = $1 HAVING bool_and(tenant_id IS NOT NULL)"
_END = (
    "UPDATE sessions s SET revoked_at = service_now() FROM memberships m JOIN identities i ON i.user_id = m.user_id "
    "WHERE m.tenant_id = $1 AND m.role <> 'owner' AND i.kind = 'email' AND i.verified "
    "AND split_part(i.subject, '@', 2) = ANY ($2) AND s.user_id = m.user_id AND s.tenant_id = $1 "
    "AND s.revoked_at IS NULL AND s.expires_at > service_now() "
    "AND NOT (s.bound_tenant IS NOT DISTINCT FROM $1 AND s.amr && '{saml,oidc}')"
)


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """An e-mail domain of a tenant as its row has it. When it was last looked at is in no MAC: it decides nothing."""

    tenant: str
    domain: str
    sso_required: bool
    token: str
    created_at: datetime
    verified_at: datetime | None = None
    missing_since: datetime | None = None
    absences: int = 0
    checked_at: datetime | None = None

    @property
    def content(self) -> bytes:
        """Build what the MAC is of."""
        moments = (self.verified_at, self.missing_since, self.created_at)
        required = "required" if self.sso_required else "optional"
        return fields(
            self.tenant,
            self.domain,
            self.token,
            required,
            self.absences,
            *(clock.unix_microseconds(moment) if moment else 0 for moment in moments),
        )

    @property
    def forced(self) -> bool:
        """True if it makes people sign on, where there is a provider for them."""
        return self.sso_required and self.verified_at is not None


class Providers(msgspec.Struct, frozen=True):
    """The enabled identity providers of a tenant."""

    saml: bool
    oidc: list[str]

    def methods(self, identity: Identity, tenant: str) -> list[SignOnMethod]:
        """List where its people begin."""
        return domains.methods(identity.public_url, tenant, saml=self.saml, oidc=self.oidc)

    def __bool__(self) -> bool:
        return self.saml or bool(self.oidc)


def read(row: Any) -> Domain:
    """The row of a domain, whose MAC nobody has looked at yet."""
    return Domain(
        tenant=row["tenant_id"],
        domain=row["domain"],
        sso_required=row["sso_required"],
        token=row["token"],
        created_at=row["created_at"],
        verified_at=row["verified_at"],
        missing_since=row["missing_since"],
        absences=row["absences"],
        checked_at=row["checked_at"],
    )


def read_proven(identity: Identity, row: Any) -> Domain:
    """The row as a domain; Tampered unless identity wrote it."""
    found = read(row)
    identity.sealer.check_mac(row["mac"], SSO_DOMAIN_MAC, found.tenant, found.content)
    return found


async def find(connection: Any, identity: Identity, tenant: str, domain: str) -> Domain | None:
    """A tenant's domain, whichever tenant the transaction is in."""
    row = await connection.fetchrow(_ONE, tenant, domain)
    return None if row is None else read_proven(identity, row)


async def is_verified(connection: Any, identity: Identity, tenant: str, domain: str) -> bool:
    """Say whether a tenant has proven a domain, written as `domains.check` gives it."""
    found = await find(connection, identity, tenant, domain)
    return found is not None and found.verified_at is not None


async def providers(connection: Any, tenant: str) -> Providers:
    """The enabled identity providers of a tenant."""
    return providers_of(await connection.fetchrow(_PROVIDERS, tenant))


def providers_of(row: Any) -> Providers:
    """The same from a row that has them among others."""
    return Providers(row["saml"], list(row["oidc"]))


async def demand_sign_on(connection: Any, identity: Identity, user: str, tenant: str, role: Role) -> None:
    """Raise SsoRequired if this person gets a session in this tenant by its own sign-on alone."""
    if role == "owner":
        return
    rows = await connection.fetch(_FACTS, user, tenant)
    # All of them are looked at: one that was changed to demand nothing is refused too.
    demanded = [_demands(identity, row) for row in rows]
    if not any(demanded):
        return
    if methods := providers_of(rows[0]).methods(identity, tenant):
        raise SsoRequired(tenantId=tenant, methods=msgspec.to_builtins(methods))


async def demand_own_way_in(connection: Any, identity: Identity, user: str) -> None:
    """Raise SsoRequired for somebody whom nothing but a tenant's sign-on vouches for.

    A passkey that they registered is a second factor. If it signed them in, it would outlast the day on which the
    tenant's identity provider lets them in no more.
    """
    if (tenant := await connection.fetchval(_VOUCHES, user)) is not None:
        methods = (await providers(connection, tenant)).methods(identity, tenant)
        raise SsoRequired(tenantId=tenant, methods=msgspec.to_builtins(methods))


async def end_living(connection: Any, identity: Identity, tenant: str) -> int:
    """End the sessions in a tenant that its forced sign-on would refuse now; gives back how many.

    Call it in the transaction, and in the tenant, in which sign-on begins to count: a domain is verified, starts to
    demand it, or a provider is enabled. A session that begins in the same moment is refused at its next refresh.
    """
    forced = await _forcing(connection, identity, tenant)
    if not forced or not await providers(connection, tenant):
        return 0
    done: str = await connection.execute(_END, tenant, forced)
    return int(done.rpartition(" ")[2])


async def _forcing(connection: Any, identity: Identity, tenant: str) -> Sequence[str]:
    rows = await connection.fetch(_ALL, tenant)
    return [found.domain for found in (read_proven(identity, row) for row in rows) if found.forced]


def _demands(identity: Identity, row: Any) -> bool:
    """Say whether an address of a person is proven, and its domain demands sign-on."""
    address = of_row({**row, "tenant_id": row["identity_tenant"]})
    identity.sealer.check_mac(row["identity_mac"], IDENTITY_MAC, PLATFORM, address.content)
    return read_proven(identity, row).forced and address.verified

"""E-mail domains of tenants: added, proven by a record in the DNS, looked at daily, removed.

The api and the scheduler say what the DNS said; identity compares it with the token. A domain is verified for one
tenant at a time: it moves to the tenant whose record is published once the owner's own record is gone.
"""

import secrets
from datetime import datetime, timedelta
from typing import Any

import msgspec

from custody.identity import domains
from custody.identity.addresses import normalised_email
from custody.kit import clock
from custody.kit.callers import Origin
from custody.protocol.identity.credentials import Deleted
from custody.protocol.identity.domains import (
    DeleteSsoDomain,
    Discovered,
    DiscoverSignOn,
    DomainSeen,
    PutSsoDomain,
    SavedSsoDomain,
    SeenDomain,
    SsoDomain,
    VerifySsoDomain,
)
from custody.protocol.identity.refusals import DnsRecordMissing, DomainTaken, SsoDomainAbsent, TooManySsoDomains
from custody.worker.acts import acting, enter, remember, tell
from custody.worker.audited import vet
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from identity.context import Identity
from identity.sign_on import domains as known
from identity.sign_on.domains import SSO_DOMAIN_MAC, Domain, Providers

MAX_DOMAINS = 20
LOOK_EVERY = timedelta(days=1)
# A record that is missing so long, and was found missing so often, proves nothing any more.
LOST_AFTER = timedelta(days=7)
LOST_ABSENCES = 7
# Looks are a day apart and take a moment: the last of eight may be a little less than seven days after the first.
_MARGIN = timedelta(hours=1)
# Beyond that it is not looked for any more: who comes back later asks to verify.
FORGOTTEN_AFTER = timedelta(days=37)
_TOKEN_BYTES = 32
# Any number that only this use case uses. What is decided of a domain is decided in turn, whatever tenant asks.
_LOCK = "SELECT pg_advisory_xact_lock(7160021, hashtext($1))"
_COUNT = "SELECT count(*) FROM sso_domains WHERE tenant_id = $1"
_OWNER = "SELECT * FROM sso_domain_owner($1)"
_PUT = (
    "INSERT INTO sso_domains (tenant_id, domain, sso_required, token, created_at, verified_at, missing_since, "
    "absences, checked_at, mac, look_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) "
    "ON CONFLICT (tenant_id, domain) DO UPDATE SET sso_required = excluded.sso_required, "
    "verified_at = excluded.verified_at, missing_since = excluded.missing_since, absences = excluded.absences, "
    "checked_at = excluded.checked_at, mac = excluded.mac, look_at = excluded.look_at"
)
_REQUIRE = "UPDATE sso_domains SET sso_required = $3, mac = $4 WHERE tenant_id = $1 AND domain = $2"
_DELETE = "DELETE FROM sso_domains WHERE tenant_id = $1 AND domain = $2 RETURNING domain"
_AUDIT = "SELECT audit_append('system', 'dns', $1, 'sso_domain', $2, $3, $4)"


async def put(identity: Identity, message: PutSsoDomain, call: Call[ProvenSession]) -> SavedSsoDomain:
    """Add a domain, or change whether it demands sign-on; who signed in otherwise is signed out once that counts."""
    domain, tenant = domains.check(message.domain), call.caller.tenant
    async with acting(identity, call) as connection:
        await connection.execute(_LOCK, domain)
        before = await known.find(connection, identity, tenant, domain)
        if before is None:
            if await connection.fetchval(_COUNT, tenant) >= MAX_DOMAINS:
                raise TooManySsoDomains
            after = _fresh(tenant, domain, sso_required=message.sso_required)
            await _write(connection, identity, after, look_at=None)
            await tell(connection, call, "sso.domain_added", "sso_domain", domain, ssoRequired=message.sso_required)
        else:
            after = msgspec.structs.replace(before, sso_required=message.sso_required)
            if after != before:
                await connection.execute(_REQUIRE, tenant, domain, after.sso_required, _mac(identity, after))
                said = {"ssoRequired": after.sso_required, "sessionsEnded": 0}
                if after.forced:
                    said["sessionsEnded"] = await known.end_living(connection, identity, tenant)
                await tell(connection, call, "sso.domain_changed", "sso_domain", domain, **said)
        outcome = SavedSsoDomain(to_public(after, await known.providers(connection, tenant)), before is None)
        await remember(connection, call, outcome)
    return outcome


async def verify(identity: Identity, message: VerifySsoDomain, call: Call[ProvenSession]) -> SsoDomain:
    """The domain, verified for the caller's tenant by what the DNS said; another tenant's no more."""
    domain, tenant, now = message.domain, call.caller.tenant, clock.now()
    async with acting(identity, call) as connection:
        await connection.execute(_LOCK, domain)
        before = await known.find(connection, identity, tenant, domain)
        if before is None:
            raise SsoDomainAbsent
        # Everybody can read it in the DNS, so comparing it takes no care.
        if before.token not in message.found:
            raise DnsRecordMissing(name=domains.record_name(domain), expected=before.token, found=message.found)
        is_new = before.verified_at is None
        if is_new:
            await _take(connection, identity, message, call)
        after = _present(before, now)
        await _write(connection, identity, after, look_at=now + LOOK_EVERY)
        if is_new:
            ended = await known.end_living(connection, identity, tenant)
            await tell(
                connection,
                call,
                "sso.domain_verified",
                "sso_domain",
                domain,
                ssoRequired=after.sso_required,
                sessionsEnded=ended,
            )
        outcome = to_public(after, await known.providers(connection, tenant))
        await remember(connection, call, outcome)
    return outcome


async def delete(identity: Identity, message: DeleteSsoDomain, call: Call[ProvenSession]) -> Deleted:
    """Remove a domain; another tenant may verify it, and it demands nothing any more."""
    outcome = Deleted(message.domain)
    async with acting(identity, call) as connection:
        await connection.execute(_LOCK, message.domain)
        if await connection.fetchval(_DELETE, call.caller.tenant, message.domain) is None:
            raise SsoDomainAbsent
        await tell(connection, call, "sso.domain_removed", "sso_domain", message.domain)
        await remember(connection, call, outcome)
    return outcome


async def record(identity: Identity, message: DomainSeen, call: Call[None]) -> SeenDomain:
    """Note what the DNS said of a domain that was verified before.

    The scheduler proves nothing that an administrator has not proven: a domain that never was verified, or has been
    missing for long, is refused.
    """
    tenant, domain, now = message.tenant, message.domain, clock.now()
    async with identity.pool.acquire() as connection, connection.transaction():
        await enter(connection, tenant)
        await connection.execute(_LOCK, domain)
        before = await known.find(connection, identity, tenant, domain)
        if before is None or not _is_looked_after(before, now):
            raise SsoDomainAbsent
        if before.token not in message.found:
            after = await _missing(connection, identity, before, now, call.origin)
        else:
            after = await _back(connection, identity, before, now, call.origin)
    return SeenDomain("verified" if after.verified_at else "pending")


async def discover(identity: Identity, message: DiscoverSignOn, _call: Call[None]) -> Discovered:
    """Find where people with an address sign on: one query of its domain, and none of the person."""
    domain = domains.domain_of(normalised_email(message.email))
    row = await identity.pool.fetchrow(_OWNER, domain)
    if row is None:
        return Discovered(domain=domain, tenant_id=None, sso_required=False, available=False, methods=[])
    found, methods = known.read_proven(identity, row), known.providers_of(row).methods(identity, row["tenant_id"])
    return Discovered(
        domain=domain,
        tenant_id=found.tenant,
        sso_required=found.forced and bool(methods),
        available=bool(methods),
        methods=methods,
    )


def to_public(domain: Domain, providers: Providers) -> SsoDomain:
    """A domain as its administrators see it."""
    return SsoDomain.of(
        domain.domain,
        sso_required=domain.sso_required,
        token=domain.token,
        created_at=domain.created_at,
        verified_at=domain.verified_at,
        checked_at=domain.checked_at,
        missing_since=domain.missing_since,
        provided=bool(providers),
    )


async def _take(connection: Any, identity: Identity, message: VerifySsoDomain, call: Call[ProvenSession]) -> None:
    """Take a domain from the tenant that has it verified, if any; DomainTaken while that one's own record is there."""
    row = await connection.fetchrow(_OWNER, message.domain)
    if row is None:
        return
    owner = known.read_proven(identity, row)
    if owner.token in message.found:
        raise DomainTaken
    lost = msgspec.structs.replace(owner, verified_at=None, missing_since=None, absences=0)
    await enter(connection, owner.tenant)
    await _write(connection, identity, lost, look_at=None)
    # Who took it, and from where, is nothing for another tenant's log.
    await _note(connection, "sso.domain_lost", owner.domain, call.origin, reason="verified_by_another_tenant")
    await enter(connection, call.caller.tenant)


async def _missing(connection: Any, identity: Identity, before: Domain, now: datetime, origin: Origin) -> Domain:
    """Count an absence; the domain is pending once there were enough for long enough."""
    since = before.missing_since or now
    after = msgspec.structs.replace(before, missing_since=since, absences=before.absences + 1, checked_at=now)
    lost = after.absences >= LOST_ABSENCES and now - since >= LOST_AFTER - _MARGIN
    if lost:
        after = msgspec.structs.replace(after, verified_at=None)
    next_look = now + LOOK_EVERY
    await _write(connection, identity, after, look_at=next_look if _is_looked_after(after, next_look) else None)
    if before.missing_since is None:
        await _note(connection, "sso.domain_missing", before.domain, origin)
    if lost and before.verified_at is not None:
        said = {"reason": "record_missing", "missingSince": clock.iso(since)}
        await _note(connection, "sso.domain_lost", before.domain, origin, **said)
    return after


async def _back(connection: Any, identity: Identity, before: Domain, now: datetime, origin: Origin) -> Domain:
    """The record is there: what was lost for its absence is verified again, unless another tenant has it now."""
    is_new = before.verified_at is None
    if is_new and await connection.fetchrow(_OWNER, before.domain) is not None:
        after = msgspec.structs.replace(before, missing_since=None, absences=0, checked_at=now)
        await _write(connection, identity, after, look_at=None)
        return after
    after = _present(before, now)
    await _write(connection, identity, after, look_at=now + LOOK_EVERY)
    if is_new:
        ended = await known.end_living(connection, identity, after.tenant)
        said = {"ssoRequired": after.sso_required, "sessionsEnded": ended}
        await _note(connection, "sso.domain_verified", after.domain, origin, **said)
    return after


def _is_looked_after(domain: Domain, now: datetime) -> bool:
    """Say whether its record is looked for daily: it is verified, or was so until the record went missing lately."""
    if domain.verified_at is not None:
        return True
    return domain.missing_since is not None and now - domain.missing_since < FORGOTTEN_AFTER


def _present(domain: Domain, now: datetime) -> Domain:
    """The domain once its record was found."""
    return msgspec.structs.replace(
        domain, verified_at=domain.verified_at or now, missing_since=None, absences=0, checked_at=now
    )


def _fresh(tenant: str, domain: str, *, sso_required: bool) -> Domain:
    token = domains.TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)  # noqa: TID251 - everybody reads it in the DNS
    return Domain(tenant=tenant, domain=domain, sso_required=sso_required, token=token, created_at=clock.now())


async def _write(connection: Any, identity: Identity, domain: Domain, *, look_at: datetime | None) -> None:
    await connection.execute(
        _PUT,
        domain.tenant,
        domain.domain,
        domain.sso_required,
        domain.token,
        domain.created_at,
        domain.verified_at,
        domain.missing_since,
        domain.absences,
        domain.checked_at,
        _mac(identity, domain),
        look_at,
    )


def _mac(identity: Identity, domain: Domain) -> bytes:
    return identity.sealer.mac(SSO_DOMAIN_MAC, domain.tenant, domain.content)


async def _note(connection: Any, action: str, domain: str, origin: Origin, **metadata: Any) -> None:
    said = msgspec.json.encode(metadata).decode()
    await connection.execute(_AUDIT, vet(action), domain, said, [origin.request_id, None, None])

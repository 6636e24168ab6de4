"""E-mail domains of tenants, and who signs on where."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.identity.addresses import BadEmailAddress
from custody.identity.domains import (
    MAX_VALUE,
    MAX_VALUES,
    BadDomain,
    NotCounting,
    SignOnMethod,
    record_name,
    why_not_counting,
)
from custody.kit import clock
from custody.kit.described import Instant, described
from custody.kit.shapes import DomainText, TenantId
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.identity.credentials import Deleted
from custody.protocol.refusals import AdministrationMoving

# What the DNS says at the record's name.
Found = Annotated[list[Annotated[str, Meta(max_length=MAX_VALUE)]], Meta(max_length=MAX_VALUES)]
DomainStatus = Literal["pending", "verified"]


class DnsRecord(msgspec.Struct, frozen=True):
    """The record to publish."""

    name: Annotated[str, described("The name.")]
    value: Annotated[str, described("The value: exactly this, and no quotation marks.")]
    type: Annotated[Literal["TXT"], described("The type.")] = "TXT"


class SsoDomain(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An e-mail domain of a tenant."""

    domain: Annotated[str, described("The domain.")]
    sso_required: Annotated[bool, described("True to require sign-on at the tenant's IdP for such an address.")]
    counts: Annotated[
        bool, described("True if `ssoRequired` counts now: the domain is verified, and a provider is enabled.")
    ]
    not_counting: Annotated[NotCounting | None, described("Why `ssoRequired` does not count; null if it does.")]
    status: Annotated[DomainStatus, described("State of the record.")]
    verification_token: Annotated[str, described("Text of the TXT record.")]
    record: Annotated[DnsRecord, described("The record to publish, before you ask to verify it and ever after.")]
    verified_at: Annotated[Instant | None, described("Since when it is verified; null while it is pending.")]
    last_checked_at: Annotated[Instant | None, described("Time of the name server's last answer for it.")]
    missing_since: Annotated[
        Instant | None, described("Since when the record is missing; after seven days the domain is pending.")
    ]
    created_at: Annotated[Instant, described("Time of adding.")]

    @classmethod
    def of(  # noqa: PLR0913 - the row of a domain
        cls,
        domain: str,
        *,
        sso_required: bool,
        token: str,
        created_at: datetime,
        verified_at: datetime | None,
        checked_at: datetime | None,
        missing_since: datetime | None,
        provided: bool,
    ) -> "SsoDomain":
        """A domain of a tenant; `provided`: the tenant has an enabled identity provider."""
        why = why_not_counting(required=sso_required, verified=verified_at is not None, provided=provided)
        return cls(
            domain=domain,
            sso_required=sso_required,
            counts=why is None,
            not_counting=why,
            status="pending" if verified_at is None else "verified",
            verification_token=token,
            record=DnsRecord(record_name(domain), token),
            verified_at=clock.iso_or_none(verified_at),
            last_checked_at=clock.iso_or_none(checked_at),
            missing_since=clock.iso_or_none(missing_since),
            created_at=clock.iso(created_at),
        )


class SavedSsoDomain(msgspec.Struct, frozen=True):
    """A domain, and whether it is new."""

    domain: SsoDomain
    added: bool


class SeenDomain(msgspec.Struct, frozen=True):
    """The state of a domain after a look at its record."""

    status: DomainStatus


class Discovered(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The sign-on for addresses in a domain. It says nothing of whether there is such a person."""

    domain: Annotated[str, described("The domain of the address.")]
    tenant_id: Annotated[str | None, described("The tenant that has verified the domain; null if none has.")]
    sso_required: Annotated[bool, described("True if its members with such an address must sign on, as of now.")]
    available: Annotated[bool, described("True if the tenant has an enabled identity provider.")]
    methods: Annotated[list[SignOnMethod], described("Its identity providers, and where to begin.")]


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("sso.domain_added", "sso.domain_changed"))
@refuses(AdministrationMoving, BadDomain, refusals.TooManySsoDomains)
class PutSsoDomain(Command[SavedSsoDomain], frozen=True):
    """Add an e-mail domain to the caller's tenant, or change whether its people must sign on."""

    domain: DomainText
    sso_required: bool


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("sso.domain_verified", "sso.domain_lost"))
@refuses(AdministrationMoving, refusals.DnsRecordMissing, refusals.DomainTaken, refusals.SsoDomainAbsent)
class VerifySsoDomain(Command[SsoDomain], frozen=True):
    """Compare a domain's token with what the api found in the DNS; verified, it is no other tenant's any more."""

    domain: DomainText
    found: Found


@command("identity", proofs=SESSION, mfa="tenantAdmin", audit=("sso.domain_removed",))
@refuses(AdministrationMoving, refusals.SsoDomainAbsent)
class DeleteSsoDomain(Command[Deleted], frozen=True):
    """Remove a domain from the caller's tenant."""

    domain: DomainText


@command("identity", senders=("scheduler",), audit=("sso.domain_missing", "sso.domain_lost", "sso.domain_verified"))
class DomainSeen(Command[SeenDomain], frozen=True):
    """Note what the DNS said in the daily look at a domain that was verified before; failures are not told."""

    tenant: TenantId
    domain: DomainText
    found: Found


@command("identity", repeatable=True)
@refuses(BadEmailAddress)
class DiscoverSignOn(Command[Discovered], frozen=True):
    """Tell where people with this address sign on, by its domain alone."""

    email: Annotated[str, Meta(max_length=254)]

    def __repr__(self) -> str:
        return "DiscoverSignOn()"

"""E-mail domains: what the DNS says of them goes to identity, when an administrator asks and once a day."""

import asyncio
from typing import Annotated

import msgspec
from msgspec import Meta

from custody.identity.addresses import DOMAIN
from custody.identity.domains import MAX_CHARACTERS, MAX_VALUE, MAX_VALUES, check, record_name
from custody.kit.answer_kinds import Created
from custody.kit.answers import Answered
from custody.kit.callers import Origin, SessionCaller
from custody.kit.described import described
from custody.kit.dns_records import DnsAlias, DnsTooManyValues, DnsUnavailable
from custody.kit.errors import CustodyError, TooMany
from custody.kit.logs import logger
from custody.kit.tenant_semaphore import NoneFree, TooManyOfTenant
from custody.people.types import EmailText
from custody.ports import Ports
from custody.protocol.identity.domains import DomainSeen, PutSsoDomain, SsoDomain, VerifySsoDomain
from custody.sign_on import domain_store as store

log = logger(__name__)
PER_RUN = 50
# Of these of one tenant, so that slow name servers of one hold up no other.
PER_RUN_OF_TENANT = 5
AT_ONCE = 8
# After a failure of the name server it is asked again.
RETRY_SECONDS = 3600


class DnsBusy(TooMany):
    """Other questions of one person's tenants to the name server are under way; retry when they are answered."""


class SsoDomainBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A domain, and whether its people must sign on."""

    domain: Annotated[
        # Loose on purpose: what is wrong with a domain is said in a sentence.
        str,
        Meta(
            min_length=1,
            max_length=MAX_CHARACTERS,
            description="The domain in ASCII; case does not matter.",
            examples=["example.com"],
            extra_json_schema={"pattern": rf"^{DOMAIN}\Z"},
        ),
    ]
    sso_required: Annotated[
        bool,
        described(
            "True if members with a verified address in the domain get a session only by single sign-on. It counts "
            "once the domain is verified and a provider is enabled; owners are exempt."
        ),
    ] = False


class DiscoverBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An address."""

    email: Annotated[EmailText, described("The address of the person who signs in.")]


async def put(ports: Ports, caller: SessionCaller, body: SsoDomainBody) -> Answered[Created[SsoDomain] | SsoDomain]:
    """Add a domain, or change whether its people must sign on."""
    answered = await ports.workers.ask(PutSsoDomain(check(body.domain), body.sso_required), caller)
    return answered.to(lambda saved: Created(saved.domain) if saved.added else saved.domain)


async def verify(ports: Ports, caller: SessionCaller, domain: str) -> Answered[SsoDomain]:
    """Ask the DNS for a domain's record, and have identity compare it."""
    await store.demand_domain(ports.pool, caller.tenant, domain)
    try:
        async with ports.dns_share.turn(ports.pool, caller.tenant):
            found = await ports.dns.texts(record_name(domain), most=MAX_VALUES, longest=MAX_VALUE)
    except (TooManyOfTenant, NoneFree):
        raise DnsBusy from None
    return await ports.workers.ask(VerifySsoDomain(domain, found), caller)


async def look(ports: Ports) -> int:
    """Look at the records of domains that are due; gives back of how many something is known now."""
    gate = asyncio.Semaphore(AT_ONCE)
    due = await store.claim(ports.pool, PER_RUN, PER_RUN_OF_TENANT, RETRY_SECONDS)
    return sum(await asyncio.gather(*(_look(ports, row["tenant_id"], row["domain"], gate) for row in due)))


async def _look(ports: Ports, tenant: str, domain: str, gate: asyncio.Semaphore) -> bool:
    async with gate:
        try:
            found = await ports.dns.texts(record_name(domain), most=MAX_VALUES, longest=MAX_VALUE)
        except DnsUnavailable:
            # Nothing is known of the record, so nothing is said of it.
            return False
        except (DnsAlias, DnsTooManyValues):
            # What an administrator could not verify with is no record either.
            found = []
        try:
            await ports.workers.tell(DomainSeen(tenant, domain, found), Origin(f"look-{domain}"[:64]))
        except CustodyError as problem:
            log.warning("not noted", extra={"tenant": tenant, "domain": domain, "reason": problem.code})
            return False
    return True

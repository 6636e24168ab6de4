"""E-mail domains of a tenant."""

from api.http.endpoint import Routes
from api.http.who import admin, asking
from custody.kit.answer_kinds import Created
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.dns_records import DnsAlias, DnsTooManyValues, DnsUnavailable
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.identity.credentials import Deleted
from custody.protocol.identity.domains import DeleteSsoDomain, PutSsoDomain, SsoDomain, VerifySsoDomain
from custody.sign_on import domain_store as store
from custody.sign_on import domains
from custody.sign_on.domains import DnsBusy, SsoDomainBody

routes = Routes("/tenants/<tenant_id>/sso-domains", tag="Single sign-on")


@routes.get("", who=admin)
async def list_sso_domains(ports: Ports, caller: SessionCaller, tenant_id: str, query: Page) -> Listed[SsoDomain]:
    """List the e-mail domains, newest first, each with the record to publish and whether `ssoRequired` counts."""
    return await store.domains(ports.pool, caller.tenant, query)


@routes.post("", who=asking(PutSsoDomain))
async def put_sso_domain(
    ports: Ports, caller: SessionCaller, tenant_id: str, body: SsoDomainBody
) -> Answered[Created[SsoDomain] | SsoDomain]:
    """Add an e-mail domain, or change `ssoRequired` of one that is there.

    Publish `verificationToken` as a TXT record at `_service-sso.<domain>`, then verify the domain; leave the record
    there, for it is looked at daily. Once `ssoRequired` counts, sessions of members that it would refuse end.
    """
    return await domains.put(ports, caller, body)


@routes.post(
    "/<domain>/verify",
    who=asking(VerifySsoDomain),
    fails=(DnsAlias, DnsBusy, DnsTooManyValues, DnsUnavailable),
)
async def verify_sso_domain(ports: Ports, caller: SessionCaller, tenant_id: str, domain: str) -> Answered[SsoDomain]:
    """Look for a domain's TXT record and, if it is there, count the domain as the tenant's.

    A domain is verified for one tenant at a time. While another one's record is still published it is 409
    `domain_taken`; once that is gone, the domain is yours and no longer theirs.
    """
    return await domains.verify(ports, caller, domain)


@routes.delete("/<domain>", who=asking(DeleteSsoDomain))
async def delete_sso_domain(ports: Ports, caller: SessionCaller, tenant_id: str, domain: str) -> Answered[Deleted]:
    """Delete an e-mail domain; nobody has to sign on for it any more."""
    return await ports.workers.ask(DeleteSsoDomain(domain), caller)

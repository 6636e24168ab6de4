"""E-mail domains of tenants, with their records, and providers that make sign-on count."""

import secrets
from typing import Any

from tests.fixtures.people import Person
from tests.fixtures.saml_sign_on import SamlTenant
from tests.fixtures.server import Service
from tests.outside.dns_server import DnsServer


def fresh_domain() -> str:
    """A domain that nobody has."""
    return f"d-{secrets.token_hex(6)}.example"


def add(person: Person, domain: str | None = None, *, required: bool = False) -> dict[str, Any]:
    """A domain of the person's tenant, pending."""
    body = {"domain": domain or fresh_domain(), "ssoRequired": required}
    return person.ok("POST", f"/tenants/{person.tenant}/sso-domains", body)


def publish(dns: DnsServer, *made: dict[str, Any]) -> None:
    """Publish the records of domains of one name, and no others."""
    dns.txt(made[0]["record"]["name"], *(one["record"]["value"] for one in made))


def path(person: Person, made: dict[str, Any], *more: str) -> str:
    """The route of a domain."""
    return "/".join([f"/tenants/{person.tenant}/sso-domains", made["domain"], *more])


def verify_domain(
    person: Person, dns: DnsServer, domain: str | None = None, *, required: bool = False
) -> dict[str, Any]:
    """A domain of the person's tenant, its record published and found."""
    made = add(person, domain, required=required)
    publish(dns, made)
    return person.ok("POST", path(person, made, "verify"))


def list_entry(person: Person, domain: str) -> dict[str, Any]:
    """A domain as the list shows it."""
    return next(one for one in person.ok("GET", f"/tenants/{person.tenant}/sso-domains") if one["domain"] == domain)


def provide(service: Service, person: Person, *, enabled: bool = True) -> None:
    """Give the person's tenant a provider of SAML."""
    saved = SamlTenant(service, person, "").put(enabled=enabled)
    assert saved.is_success, saved.text


def audit_rows(person: Person, action: str) -> list[dict[str, Any]]:
    """The audit rows of an action in the person's tenant, newest first."""
    return person.ok("GET", f"/audit/events?action={action}")["data"]

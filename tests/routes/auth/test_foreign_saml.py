"""SAML providers that somebody else wrote sign people in: samlp and samlify (Node.js), pysaml2."""

from contextlib import closing

import pytest

from tests.fixtures.people import Person
from tests.fixtures.saml_sign_on import SSO_URL, SamlTenant
from tests.fixtures.server import Service
from tests.fixtures.sign_on import said, verified_domain
from tests.outside.dns_server import DnsServer
from tests.outside.identity_providers.saml import KINDS, running_saml_provider


@pytest.mark.parametrize("sign_response", [False, True], ids=["assertion", "both"])
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long if kind == "pysaml2" else ()) for kind in KINDS]
)
def test_a_provider_that_somebody_else_wrote_signs_people_in(
    service: Service, as_owner: Person, dns_server: DnsServer, kind: str, sign_response: bool
) -> None:
    saml = SamlTenant(service, as_owner, verified_domain(as_owner, dns_server))
    with running_saml_provider(kind, sso_url=SSO_URL) as provider:
        saved = saml.put(idpEntityId=provider.entity_id, idpCertPems=[provider.certificate])
        assert saved.status_code == 200, saved.text
        provider.says(name_id=saml.address(), attributes={"groups": ("staff",)}, sign_response=sign_response)

        with saml.flow() as flow:
            answer = provider.answer(flow.provider_url())
            assert answer.acs_url == str(flow.base_url).rstrip("/") + f"/auth/saml/{saml.tenant}/acs"
            back = said(flow.post(answer.acs_url, data=answer.fields))
            assert "code" in back, back
            done = flow.exchange(back["code"])

    assert done.status_code == 200, done.text
    with closing(Person(base_url=service.url)) as somebody:
        somebody.take(done.json()["data"])
        assert (somebody.tenant, somebody.role) == (saml.tenant, "viewer")

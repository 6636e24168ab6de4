"""SAML providers that somebody else wrote sign people in: samlp and samlify (Node.js), pysaml2."""

from contextlib import closing

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.fixtures.people import Person
from tests.fixtures.saml_sign_on import SSO_URL, SamlTenant
from tests.fixtures.server import Service
from tests.fixtures.sign_on import redirect_params, verified_domain
from tests.outside.dns_server import DnsServer
from tests.outside.identity_providers.saml import KINDS, running_saml_provider


def encryption_for(saml: SamlTenant) -> dict[str, str]:
    """Have the tenant take encrypted assertions alone; the certificate for the provider, and its key."""
    path = f"/tenants/{saml.tenant}/saml-sso"
    certificate = saml.owner.ok("POST", f"{path}/encryption-keys", {})["certificate"]
    config = {name: value for name, value in saml.owner.ok("GET", path).items() if name in saml.config()}
    saml.owner.ok("PUT", path, {**config, "wantAssertionsEncrypted": True})
    public = x509.load_pem_x509_certificate(certificate.encode()).public_key()
    key = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return {"encrypt_for": certificate, "encrypt_key": key}


@pytest.mark.parametrize("encrypts", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize("sign_response", [False, True], ids=["assertion", "both"])
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.long if kind == "pysaml2" else ()) for kind in KINDS]
)
def test_a_provider_that_somebody_else_wrote_signs_people_in(
    service: Service, as_owner: Person, dns_server: DnsServer, kind: str, sign_response: bool, encrypts: bool
) -> None:
    saml = SamlTenant(service, as_owner, verified_domain(as_owner, dns_server))
    with running_saml_provider(kind, sso_url=SSO_URL) as provider:
        saved = saml.put(idpEntityId=provider.entity_id, idpCertPems=[provider.certificate])
        assert saved.status_code == 200, saved.text
        encrypted = encryption_for(saml) if encrypts else {}
        provider.says(
            name_id=saml.address(), attributes={"groups": ("staff",)}, sign_response=sign_response, **encrypted
        )

        with saml.flow() as flow:
            answer = provider.answer(flow.provider_url())
            assert (b":EncryptedAssertion" in answer.document) is encrypts
            assert answer.acs_url == str(flow.base_url).rstrip("/") + f"/auth/saml/{saml.tenant}/acs"
            back = redirect_params(flow.post(answer.acs_url, data=answer.fields))
            assert "code" in back, back
            done = flow.exchange(back["code"])

    assert done.status_code == 200, done.text
    with closing(Person(base_url=service.url)) as somebody:
        somebody.take(done.json()["data"])
        assert (somebody.tenant, somebody.role) == (saml.tenant, "viewer")

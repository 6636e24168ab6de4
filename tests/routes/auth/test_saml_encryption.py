"""Encrypted assertions of a tenant's SAML provider: the key, its metadata, its successors, and who signs in by them.

The provider reads the metadata and encrypts by xmlsec. What an encrypted answer may say: tests/rules.
"""

from base64 import b64decode
from contextlib import closing
from typing import Any

import asyncpg
import httpx
import pytest
from cryptography import x509
from lxml import etree

from tests.fixtures.callers import Client, new_tenant
from tests.fixtures.people import Person, member
from tests.fixtures.saml_sign_on import SamlTenant
from tests.fixtures.server import Service
from tests.fixtures.sign_on import redirect_params, verified_domain
from tests.outside.dns_server import DnsServer
from tests.outside.saml_answers import DS, to_bytes
from tests.outside.saml_encryption import ENC11, GCM128, GCM256, OAEP11, SHA256, encrypt

METADATA = "urn:oasis:names:tc:SAML:2.0:metadata"


@pytest.fixture
def saml(service: Service, as_owner: Person, dns_server: DnsServer) -> SamlTenant:
    """A tenant with a SAML provider and no key yet."""
    tenant = SamlTenant(service, as_owner, verified_domain(as_owner, dns_server))
    assert tenant.put().status_code == 200
    return tenant


def new_key(saml: SamlTenant, **body: Any) -> httpx.Response:
    return saml.owner.post(f"/tenants/{saml.tenant}/saml-sso/encryption-keys", json=body)


def make_key(saml: SamlTenant, **body: Any) -> x509.Certificate:
    answer = new_key(saml, **body)
    assert answer.status_code == 201, answer.text
    return x509.load_pem_x509_certificate(answer.json()["data"]["certificate"].encode())


def keys_of(saml: SamlTenant) -> list[dict[str, Any]]:
    return list(saml.owner.ok("GET", f"/tenants/{saml.tenant}/saml-sso")["encryptionKeys"])


def metadata(saml: SamlTenant) -> Any:
    with Client(base_url=saml.service.url) as provider:
        return etree.fromstring(provider.get(f"/auth/saml/{saml.tenant}/metadata").content)


def certificate_in_metadata(saml: SamlTenant) -> x509.Certificate:
    (found,) = metadata(saml).iter(f"{{{DS}}}X509Certificate")
    return x509.load_der_x509_certificate(b64decode(found.text))


def sign_in(saml: SamlTenant, certificate: x509.Certificate | None, **how: Any) -> dict[str, str]:
    """Bring the provider's answer, encrypted for a certificate or plain; the query that the client gets."""
    with saml.flow() as flow:
        flow.leave()
        tree = etree.fromstring(flow.answer().sign(saml.key))
        return redirect_params(flow.bring(to_bytes(tree if certificate is None else encrypt(tree, certificate, **how))))


def test_a_key_is_published_and_what_is_encrypted_for_it_signs_somebody_in(saml: SamlTenant) -> None:
    assert (keys_of(saml), list(metadata(saml).iter(f"{{{METADATA}}}KeyDescriptor"))) == ([], [])

    certificate = make_key(saml)

    assert certificate_in_metadata(saml) == certificate
    (key,) = metadata(saml).iter(f"{{{METADATA}}}KeyDescriptor")
    assert key.get("use") == "encryption"
    assert [one.get("Algorithm") for one in key.iter(f"{{{METADATA}}}EncryptionMethod")][:2] == [GCM256, GCM128]
    assert [one["opensUntil"] for one in keys_of(saml)] == [None]
    for how in ({}, {"content": GCM128}, {"transport": OAEP11, "digest": SHA256, "mask": f"{ENC11}mgf1sha256"}):
        assert "code" in sign_in(saml, certificate_in_metadata(saml), **how)
    assert "code" in sign_in(saml, None)


def test_nothing_of_the_private_half_is_shown(saml: SamlTenant) -> None:
    answer = new_key(saml)

    assert set(answer.json()["data"]) == {"id", "certificate", "createdAt", "opensUntil"}
    assert set(keys_of(saml)[0]) == set(answer.json()["data"])
    assert "PRIVATE" not in answer.text


def test_a_plain_assertion_is_refused_where_encrypted_ones_are_wanted(saml: SamlTenant) -> None:
    refused = saml.put(wantAssertionsEncrypted=True)
    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "invalid_saml")
    assert "encryption-keys" in refused.json()["error"]
    certificate = make_key(saml)

    assert saml.put(wantAssertionsEncrypted=True).json()["data"]["wantAssertionsEncrypted"] is True

    assert sign_in(saml, None)["error_code"] == "saml_not_encrypted"
    assert "code" in sign_in(saml, certificate)


def test_a_former_key_opens_until_it_ends(saml: SamlTenant) -> None:
    former, newest = make_key(saml), make_key(saml, formerDays=7)

    assert certificate_in_metadata(saml) == newest
    assert [one["opensUntil"] is None for one in keys_of(saml)] == [True, False]
    for certificate in (former, newest):
        assert "code" in sign_in(saml, certificate)

    last = make_key(saml, formerDays=0)

    assert len(keys_of(saml)) == 1
    assert "code" in sign_in(saml, last)
    for certificate in (former, newest):
        assert sign_in(saml, certificate)["error_code"] == "saml_decryption"


async def test_a_key_that_has_ended_opens_nothing_and_leaves_nothing(
    saml: SamlTenant, owner: asyncpg.Connection
) -> None:
    former = make_key(saml)
    make_key(saml)
    assert "code" in sign_in(saml, former)

    await owner.execute("UPDATE saml_keys SET ends_at = now() WHERE tenant_id = $1 AND ends_at > now()", saml.tenant)

    assert sign_in(saml, former)["error_code"] == "saml_decryption"
    assert len(keys_of(saml)) == 1
    make_key(saml)
    sealed = "SELECT count(*) FROM identity_sealed WHERE tenant_id = $1 AND owner_kind = 'saml_key'"
    assert await owner.fetchval(sealed, saml.tenant) == 2


def test_a_fourth_key_is_refused_and_a_shorter_time_counts_for_all_before(saml: SamlTenant) -> None:
    for days in (90, 60, 30):
        make_key(saml, formerDays=days)
    ends = [one["opensUntil"] for one in keys_of(saml)]
    assert ends[1] == ends[2]

    refused = new_key(saml)

    assert (refused.status_code, refused.json()["data"]["code"]) == (409, "too_many_saml_keys")
    assert [one["opensUntil"] for one in keys_of(saml)] == ends
    for wrong in (-1, 91, "7"):
        assert new_key(saml, formerDays=wrong).status_code == 400
    make_key(saml, formerDays=0)


def test_a_repeated_request_makes_one_key(saml: SamlTenant) -> None:
    path, headers = f"/tenants/{saml.tenant}/saml-sso/encryption-keys", {"idempotency-key": "one-key-once"}
    first, again = (saml.owner.post(path, json={}, headers=headers) for _ in range(2))

    assert first.json()["data"] == again.json()["data"]
    assert [one["id"] for one in keys_of(saml)] == [first.json()["data"]["id"]]


def test_a_key_of_another_tenant_opens_nothing(saml: SamlTenant, service: Service, dns_server: DnsServer) -> None:
    with closing(new_tenant(service)) as tenant, closing(member(service, tenant, "owner", mfa=True)) as owner:
        other = SamlTenant(service, owner, verified_domain(owner, dns_server))
        assert other.put().status_code == 200
        certificate, others = make_key(saml), make_key(other)

        assert sign_in(saml, others)["error_code"] == "saml_decryption"
        assert "code" in sign_in(saml, certificate)
        assert "code" in sign_in(other, others)


def test_deleting_the_configuration_ends_its_keys(saml: SamlTenant) -> None:
    certificate = make_key(saml)
    saml.owner.ok("DELETE", f"/tenants/{saml.tenant}/saml-sso")

    assert list(metadata(saml).iter(f"{{{METADATA}}}KeyDescriptor")) == []
    assert saml.put().status_code == 200
    assert sign_in(saml, certificate)["error_code"] == "saml_encrypted"


async def test_a_sealed_key_in_another_place_opens_nothing(saml: SamlTenant, owner: asyncpg.Connection) -> None:
    former, newest = make_key(saml), make_key(saml)
    assert "code" in sign_in(saml, newest)

    await owner.execute(
        "UPDATE identity_sealed s SET blob = (SELECT o.blob FROM identity_sealed o WHERE o.tenant_id = $1 "
        "AND o.owner_kind = 'saml_key' AND o.owner <> s.owner) WHERE s.tenant_id = $1 AND s.owner_kind = 'saml_key'",
        saml.tenant,
    )

    for certificate in (former, newest):
        with saml.flow() as flow:
            flow.leave()
            tree = encrypt(etree.fromstring(flow.answer().sign(saml.key)), certificate)
            answer = flow.bring(to_bytes(tree))
            assert answer.status_code >= 500 or "code" not in redirect_params(answer)


def test_a_member_who_is_no_administrator_makes_no_key(saml: SamlTenant) -> None:
    with saml.flow() as flow:
        somebody = flow.exchange(redirect_params(flow.arrive())["code"]).json()["data"]
    with closing(Person(base_url=saml.service.url, timeout=30)) as viewer:
        viewer.take(somebody)
        answer = viewer.post(f"/tenants/{saml.tenant}/saml-sso/encryption-keys", json={})
    assert answer.status_code == 403

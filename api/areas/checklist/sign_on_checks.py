"""Items of the security checklist about a tenant's identity providers."""

from datetime import timedelta
from typing import Final

from api.areas.checklist.types import Facts, Item, Status
from custody.identity.saml_certificates import IdpCertificateInvalid, read_certificates

_SOON: Final = timedelta(days=30)
_DAY: Final = timedelta(days=1)


def idp_certificates(facts: Facts) -> Item:
    """Check whether the certificates of the SAML provider go on for a while."""
    label, cure = "Certificates of the identity provider", "Add the next certificate: PUT /tenants/:id/saml-sso."
    if facts.saml is None or not facts.saml.enabled:
        return _item("idp-certificates", label, "pass", "No SAML provider is enabled.", cure)
    try:
        ends = max(one.not_after for one in read_certificates(facts.saml.idp_cert_pems))
    except IdpCertificateInvalid as problem:
        return _item("idp-certificates", label, "fail", problem.message, cure)
    status: Status = "warning" if ends - facts.now < _SOON else "pass"
    return _item("idp-certificates", label, status, f"The last certificate ends on {ends:%Y-%m-%d}.", cure)


def idp_newcomers(facts: Facts) -> Item:
    """Check whether the identity provider alone makes administrators."""
    label = "Administrators by groups of the identity provider"
    saml = facts.saml
    made = (
        saml is not None
        and saml.enabled
        and saml.allow_jit_provisioning
        and any(one.role == "admin" for one in saml.group_role_mappings)
    )
    found = (
        "Anyone in a group that is mapped to admin becomes an administrator at their first sign-in."
        if made
        else "Nobody becomes an administrator by a group alone."
    )
    cure = "Switch allowJitProvisioning off, or map the group to a lesser role: PUT /tenants/:id/saml-sso."
    return _item("idp-newcomers", label, "warning" if made else "pass", found, cure)


def idp_keys(facts: Facts) -> Item:
    """Check whether the keys of the OIDC providers are fresh."""
    late = sorted(name for name, fetched in facts.oidc_keys.items() if fetched is None or facts.now - fetched > _DAY)
    found = (
        f"Keys older than a day, or never fetched: {', '.join(late)}."
        if late
        else "The keys of each enabled OIDC provider were fetched within a day."
    )
    if not facts.oidc_keys:
        found = "No OIDC provider is enabled."
    cure = "See keysProblem in GET /tenants/:id/oidc-providers; the issuer's jwksUri must be reachable."
    return _item("idp-keys", "Keys of OIDC providers", "warning" if late else "pass", found, cure)


def _item(item: str, label: str, status: Status, description: str, cure: str) -> Item:
    return Item(item, label, status, description, "" if status == "pass" else cure)

"""From whom an answer is, to whom, and for which request: each compared to the letter."""

from typing import Final

from custody.identity.saml_refusals import SamlRefused
from custody.identity.saml_shape import BEARER, Parts, audiences_of
from identity.saml.types import Expected

_ENTITY: Final = "urn:oasis:names:tc:SAML:2.0:nameid-format:entity"


def check_issuer(parts: Parts, expected: Expected) -> None:
    """Raise SamlRefused unless the configured identity provider issued it, inside and outside."""
    for issuer in (parts.issuer, parts.response_issuer):
        if issuer is None:
            continue
        found = issuer.plain_text
        if found != expected.idp_entity_id or issuer.get("Format") not in (None, _ENTITY):
            raise SamlRefused(
                "saml_issuer",
                "issuer",
                "The answer is of another identity provider than the configured one. An administrator of the tenant "
                "must compare idpEntityId with the entity id that the identity provider shows.",
                expected=expected.idp_entity_id,
                found="an element" if found is None else found,
            )


def check_recipient(parts: Parts, expected: Expected) -> None:
    """Raise SamlRefused unless the bearer brings it to the address that it is for."""
    method, data = parts.confirmation.get("Method"), parts.confirmation_data
    if method != BEARER or data.get("NotBefore") is not None:
        raise SamlRefused(
            "saml_confirmation",
            "recipient",
            "The assertion is not for the bearer, or says from when it may be used. The administrator of the identity "
            "provider must choose the web browser SSO profile, with the confirmation method bearer.",
            expected=f"{BEARER} without NotBefore",
            found=str(method) if method != BEARER else f"NotBefore {data.get('NotBefore')}",
        )
    for code, name, found in (
        ("saml_recipient", "Recipient", data.get("Recipient") or ""),
        ("saml_destination", "Destination", parts.response.get("Destination")),
    ):
        if found is not None and found != expected.acs_url:
            raise SamlRefused(
                code,
                "recipient",
                f"{name} is another address than this service's. The administrator of the identity provider must set "
                "the ACS URL (also called reply URL or single sign-on URL) exactly as this tenant's page shows it.",
                expected=expected.acs_url,
                found=found or "nothing",
            )


def check_request(parts: Parts, expected: Expected) -> None:
    """Raise SamlRefused unless it answers this request, inside and, if that is said, outside."""
    outer, inner = parts.response.get("InResponseTo"), parts.confirmation_data.get("InResponseTo")
    if outer is None and inner is None:
        raise SamlRefused(
            "saml_unsolicited",
            "request",
            "The answer belongs to no request: sign-in must begin here, not at the identity provider. Start in your "
            "application.",
            expected=expected.request_id,
            found="no InResponseTo",
        )
    if inner != expected.request_id or outer not in (None, expected.request_id):
        raise SamlRefused(
            "saml_request_mismatch",
            "request",
            "The answer belongs to another sign-in than this one. Sign in again, in one window.",
            expected=expected.request_id,
            found=f"{outer or 'none'} on the response, {inner or 'none'} in the assertion",
        )


def check_audience(parts: Parts, expected: Expected) -> None:
    """Raise SamlRefused unless every restriction names this tenant."""
    restrictions = audiences_of(parts.conditions)
    if not restrictions or any(expected.sp_entity_id not in audiences for audiences in restrictions):
        raise SamlRefused(
            "saml_audience",
            "audience",
            "The assertion is meant for another application. The administrator of the identity provider must set the "
            "entity id (also called audience or identifier) exactly as this tenant's page shows it.",
            expected=expected.sp_entity_id,
            found="; ".join(", ".join(audiences) for audiences in restrictions) or "no audience",
        )

"""Reads the answer of a SAML identity provider: who it says a person is, or why it is refused. Pure; docs/saml.md.

The bytes are parsed once. What is verified and what is read are the same objects of that tree, in places that the
shape fixes, so a forged element beside the signed one is never looked at. Whether the assertion was used before is
for the caller to know: it keeps `assertion_id` until `not_on_or_after`.
"""

import binascii
import re
from typing import Final

import msgspec

from custody.identity.saml_certificates import Certificate, IdpCertificateInvalid, read_usable
from custody.identity.saml_refusals import NAMES, SamlRefused
from custody.identity.saml_shape import Parts, check_response, check_status, parts_of
from custody.identity.saml_signature import verify
from custody.identity.xml_tree import Element
from identity.saml.addressing import check_audience, check_issuer, check_recipient, check_request
from identity.saml.attributes import TRANSIENT, attributes_of, email_of, groups_of, name_id_of
from identity.saml.encryption import open_assertion
from identity.saml.strict_xml import read
from identity.saml.times import Times, check_times
from identity.saml.types import Assertion, Expected
from identity.saml.xml_text import MAX_BYTES, XmlRefused

# Of base64 with its line ends, for 64 KiB of XML.
MAX_CHARACTERS: Final = 96 * 1024
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]++(?:\r?\n)?+)*+=?+=?+(?:\r?\n)?+\Z")


def decode_response(text: str) -> bytes:
    """The XML of a form's SAMLResponse: standard base64 in its one spelling, with line ends or without."""
    if len(text) > MAX_CHARACTERS:
        raise _bad_encoding("saml_too_large", f"is longer than {MAX_BYTES // 1024} KiB", f"{len(text):,} characters")
    if not text or not _BASE64.match(text):
        raise _bad_encoding("saml_encoding", "is not standard base64", text[:40])
    plain = text.replace("\r", "").replace("\n", "")
    try:
        content = binascii.a2b_base64(plain, strict_mode=True)
    except ValueError:
        content = b""
    if binascii.b2a_base64(content, newline=False).decode() != plain:
        raise _bad_encoding("saml_encoding", "is not standard base64 with its padding", text[-40:])
    if len(content) > MAX_BYTES:
        raise _bad_encoding("saml_too_large", f"is longer than {MAX_BYTES // 1024} KiB", f"{len(content):,} bytes")
    return content


def read_response(content: bytes, expected: Expected) -> Assertion:
    """Return what an answer says, or raise SamlRefused with the first of CHECKS that it fails."""
    response = _read(content)
    check_response(response)
    check_status(response)
    opened = open_assertion(response, expected.keys, demanded=expected.encrypted)
    # The signature of the response covers it as it came.
    parts = msgspec.structs.replace(parts_of(opened), response=response)
    warnings = _check_signatures(parts, expected)
    check_issuer(parts, expected)
    times = _check_confirmations(parts, expected)
    check_audience(parts, expected)
    if times.authn_instant is None:
        raise _no_authentication()
    name_id = name_id_of(parts.name_id)
    attributes, unreadable = attributes_of(parts.attributes)
    email, missing = email_of(name_id, attributes, expected.email_attribute)
    if name_id.format == TRANSIENT and email is None:
        raise _nobody(missing)
    groups, left_out = groups_of(attributes, expected.groups_attribute)
    return Assertion(
        assertion_id=parts.assertion.get("ID") or "",
        name_id=name_id.value,
        name_id_format=name_id.format,
        email=email,
        email_missing=missing,
        groups=groups,
        attributes=attributes,
        not_on_or_after=times.not_on_or_after,
        session_not_on_or_after=times.session_not_on_or_after,
        authn_instant=times.authn_instant,
        warnings=(*warnings, *unreadable, *left_out),
    )


def _read(content: bytes) -> Element:
    try:
        return read(content)
    except XmlRefused as refused:
        raise SamlRefused(
            "saml_xml",
            "xml",
            f"{refused} The administrator of the identity provider must send plain XML of at most 64 KiB.",
            expected="XML of elements, attributes and text",
            found=content[:80].decode("utf-8", "replace"),
        ) from None


def _check_confirmations(parts: Parts, expected: Expected) -> Times:
    """The times by the first confirmation that holds; where none does, the refusal of the one that came furthest."""
    refused: list[SamlRefused] = []
    for confirmation, data in parts.confirmations:
        one = msgspec.structs.replace(parts, confirmation=confirmation, confirmation_data=data)
        try:
            check_recipient(one, expected)
            check_request(one, expected)
            return check_times(one, expected.now)
        except SamlRefused as problem:
            refused.append(problem)
    raise max(refused, key=lambda problem: NAMES.index(problem.check))


def _check_signatures(parts: Parts, expected: Expected) -> list[str]:
    if parts.signature is None:
        raise _no_signature(parts)
    try:
        certificates = read_usable(expected.certificates)
    except IdpCertificateInvalid as invalid:
        raise SamlRefused(
            "saml_certificates",
            "signed",
            f"{invalid} An administrator of the tenant must save its certificates again.",
            expected="1 to 5 certificates that can be used",
            found=f"{len(expected.certificates)} certificates",
        ) from None
    by = [verify(parts.assertion, parts.signature, certificates, "signature")]
    if parts.response_signature is not None:
        by.append(verify(parts.response, parts.response_signature, certificates, "response_signature"))
    return [_expiry(one) for one in {one.fingerprint: one for one in by}.values() if one.not_after <= expected.now]


def _expiry(certificate: Certificate) -> str:
    return (
        f"The identity provider signs with the certificate {certificate.fingerprint[:16]} ({certificate.subject}), "
        f"which ended on {certificate.not_after:%Y-%m-%d}; replace it there and here."
    )


def _no_signature(parts: Parts) -> SamlRefused:
    if parts.response_signature is None:
        said, found = "The identity provider signed nothing.", "no signature"
    else:
        said, found = "The identity provider signed the response and not the assertion in it.", "a signed response"
    return SamlRefused(
        "saml_assertion_unsigned",
        "signed",
        f'{said} Its administrator must have the assertion signed: in Google turn "Signed response" off, in Keycloak '
        'turn "Sign assertions" on, in Okta set "Assertion Signature" to "Signed", in Entra choose "Sign SAML '
        'assertion" or "Sign SAML response and assertion".',
        expected="a Signature in the Assertion",
        found=found,
    )


def _no_authentication() -> SamlRefused:
    return SamlRefused(
        "saml_authn_statement_missing",
        "authentication",
        "The assertion does not say that the person signed in. The administrator of the identity provider must have "
        'it send an AuthnStatement: in Keycloak turn "Include AuthnStatement" on.',
        expected="an AuthnStatement",
        found="none",
    )


def _nobody(missing: str) -> SamlRefused:
    return SamlRefused(
        "saml_name_id_transient",
        "person",
        "The NameID is another one at each sign-in (transient), and there is no e-mail address in its place. The "
        "administrator of the identity provider must choose a persistent NameID, or send the e-mail address.",
        expected="a NameID that stays, or an e-mail address",
        found=missing,
    )


def _bad_encoding(code: str, what: str, found: str) -> SamlRefused:
    return SamlRefused(
        code,
        "encoding",
        f"SAMLResponse {what}. Sign in again; if it is refused again, the administrator of the identity provider must "
        "choose the binding HTTP-POST and send less in the assertion.",
        expected="standard base64 of at most 64 KiB",
        found=found,
    )

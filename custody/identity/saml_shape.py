"""The elements of a SAML response, by a list of what may stand where. Everything else is refused, wherever it stands.

The rules read only what is found here: by its place in the tree, never by a search. An element that could be taken
for another one, such as a second assertion, a signature or an ID that is there twice, has no place to be.
"""

from typing import Final

import msgspec

from custody.identity.saml_forbidden import check_everywhere
from custody.identity.saml_refusals import SamlRefused, bad_shape, plain
from custody.identity.saml_signature import DSIG
from custody.identity.xml_tree import Element, has_text

PROTOCOL: Final = "urn:oasis:names:tc:SAML:2.0:protocol"
ASSERTION: Final = "urn:oasis:names:tc:SAML:2.0:assertion"
BEARER: Final = "urn:oasis:names:tc:SAML:2.0:cm:bearer"
ENCRYPTION: Final = "http://www.w3.org/2001/04/xmlenc#"
ENCRYPTION_1_1: Final = "http://www.w3.org/2009/xmlenc11#"
_STATUS: Final = "urn:oasis:names:tc:SAML:2.0:status:"
_NAMESPACES: Final = {"p": PROTOCOL, "a": ASSERTION, "d": DSIG, "e": ENCRYPTION, "f": ENCRYPTION_1_1}
# The attributes without a prefix that each may have; what is not listed has none.
_ATTRIBUTES: Final[dict[str, tuple[str, ...]]] = {
    "Response": ("ID", "Version", "IssueInstant", "Destination", "InResponseTo", "Consent"),
    "Assertion": ("ID", "Version", "IssueInstant"),
    "SubjectConfirmation": ("Method",),
    "SubjectConfirmationData": ("NotOnOrAfter", "NotBefore", "Recipient", "InResponseTo", "Address"),
    "Conditions": ("NotBefore", "NotOnOrAfter"),
    "ProxyRestriction": ("Count",),
    "AuthnStatement": ("AuthnInstant", "SessionIndex", "SessionNotOnOrAfter"),
    "EncryptedData": ("Id", "Type"),
    "EncryptedKey": ("Id", "Type", "Recipient"),
    "EncryptionMethod": ("Algorithm",),
    "KeyInfo": ("Id",),
    "DataReference": ("URI",),
    "RetrievalMethod": ("URI", "Type"),
    "DigestMethod": ("Algorithm",),
    "MGF": ("Algorithm",),
}


class Parts(msgspec.Struct, frozen=True):
    """The elements of a response that has the expected shape.

    An assertion may be confirmed in several ways, of which one suffices (SAML core, 2.4): `confirmation` is the one
    that is looked at, and `confirmations` are those of the bearer with their data.
    """

    response: Element
    response_issuer: Element | None
    response_signature: Element | None
    assertion: Element
    issuer: Element
    signature: Element | None
    name_id: Element
    confirmation: Element
    confirmation_data: Element
    confirmations: tuple[tuple[Element, Element], ...]
    conditions: Element
    authentications: tuple[Element, ...]
    attributes: tuple[Element, ...]


def check_response(root: Element) -> None:
    """Raise SamlRefused unless the root is a Response of SAML 2.0."""
    if (root.namespace, root.local) != (PROTOCOL, "Response"):
        raise SamlRefused(
            "saml_not_a_response",
            "response",
            "The identity provider sent something else than a SAML response. Its administrator must set this "
            "service's ACS URL only for sign-in, by the binding HTTP-POST.",
            expected="samlp:Response",
            found=f"{root.name} in {root.namespace}",
        )
    _check_version(root, "response")


def check_status(response: Element) -> None:
    """Raise SamlRefused with the identity provider's own code unless it reports success; nothing else is read."""
    found = [one for one in response.elements if (one.namespace, one.local) == (PROTOCOL, "Status")]
    codes = [one for status in found for one in status.elements if one.local == "StatusCode"]
    if len(found) != 1 or len(codes) != 1:
        raise bad_shape("status", "one Status with one StatusCode", _names(response))
    if codes[0].get("Value") == f"{_STATUS}Success" and not codes[0].elements:
        return
    below = [str(one.get("Value")) for one in (codes[0], *codes[0].elements[:1])]
    said = " ".join(one.text or "" for one in found[0].elements if one.local == "StatusMessage")
    raise SamlRefused(
        "saml_idp_refused",
        "status",
        "The identity provider did not sign the person in: "
        f"{plain(' / '.join(value.removeprefix(_STATUS) for value in below))}. Sign in again; if it is refused again, "
        "ask the administrator of the identity provider whether you may use this application.",
        expected=f"{_STATUS}Success",
        found=" / ".join(below) + (f": {said}" if said else ""),
    )


def parts_of(response: Element) -> Parts:
    """The elements of a response, or SamlRefused; whether it is signed is not asked here."""
    check_everywhere(response)
    issuer, signature, status, assertion = children_of(
        response, "p:Response", "a:Issuer?", "d:Signature?", "p:Status", "a:Assertion"
    )
    children_of(status[0], "p:Status", "p:StatusCode", "p:StatusMessage?")
    _check_version(assertion[0], "assertion")
    inner, own, subject, conditions, first, attributes, last = children_of(
        assertion[0],
        "a:Assertion",
        "a:Issuer",
        "d:Signature?",
        "a:Subject",
        "a:Conditions",
        "a:AuthnStatement*",
        "a:AttributeStatement*",
        "a:AuthnStatement*",
    )
    name_id, confirmations = children_of(subject[0], "a:Subject", "a:NameID", "a:SubjectConfirmation+")
    # Of the others nothing is read, so they may be anything that can stand anywhere. Without a bearer one is refused.
    bearers = [one for one in confirmations if one.get("Method") == BEARER] or confirmations[:1]
    pairs = [(one, children_of(one, "a:SubjectConfirmation", "a:SubjectConfirmationData")[0][0]) for one in bearers]
    for _, data in pairs:
        children_of(data, "a:SubjectConfirmationData")
    for one in (*first, *last):
        children_of(one, "a:AuthnStatement", "a:SubjectLocality?", "a:AuthnContext")
    return Parts(
        response=response,
        response_issuer=issuer[0] if issuer else None,
        response_signature=signature[0] if signature else None,
        assertion=assertion[0],
        issuer=inner[0],
        signature=own[0] if own else None,
        name_id=name_id[0],
        confirmation=pairs[0][0],
        confirmation_data=pairs[0][1],
        confirmations=tuple(pairs),
        conditions=conditions[0],
        authentications=(*first, *last),
        attributes=tuple(
            one for statement in attributes for one in children_of(statement, "a:AttributeStatement", "a:Attribute*")[0]
        ),
    )


def audiences_of(conditions: Element) -> list[list[str]]:
    """The audiences of each restriction; refuses a condition that is not known, as the standard demands."""
    found = []
    _check_attributes(conditions, "Conditions")
    if has_text(conditions):
        raise bad_shape("audience", "no text in Conditions", _names(conditions))
    for one in conditions.elements:
        if one.local not in ("AudienceRestriction", "OneTimeUse", "ProxyRestriction") or one.namespace != ASSERTION:
            raise SamlRefused(
                "saml_condition_unknown",
                "audience",
                "The assertion has a condition that this service does not know, and may be used by nobody who does "
                "not. The administrator of the identity provider must take it out.",
                expected="AudienceRestriction, OneTimeUse or ProxyRestriction",
                found=one.name,
            )
        wanted = {"AudienceRestriction": "a:Audience+", "ProxyRestriction": "a:Audience*"}.get(one.local)
        inside = children_of(one, f"a:{one.local}", *([wanted] if wanted else []))
        if one.local == "AudienceRestriction":
            found.append([audience.plain_text or "" for audience in inside[0]])
    return found


def _check_version(element: Element, check: str) -> None:
    if element.get("Version") != "2.0":
        raise SamlRefused(
            "saml_version",
            check,
            f"The {element.local} is not of SAML 2.0. The administrator of the identity provider must choose SAML 2.0.",
            expected="2.0",
            found=str(element.get("Version")),
        )


def children_of(element: Element, *wanted: str) -> list[tuple[Element, ...]]:
    """The children by the names in `wanted`, in this order: one, or as ? * + say, and nothing else."""
    own, *names = wanted
    local = own[2:]
    _check_attributes(element, local)
    children, at, found = element.elements, 0, []
    for name in names:
        expected = (_NAMESPACES[name[0]], name[2:].rstrip("?*+"))
        begin, most = at, 1 if name[-1] not in "*+" else len(children)
        while at < len(children) and at - begin < most and (children[at].namespace, children[at].local) == expected:
            at += 1
        if at == begin and name[-1] not in "?*":
            break
        found.append(children[begin:at])
    if len(found) != len(names) or at != len(children) or has_text(element):
        said = " ".join(name[2:] for name in names) or "nothing"
        raise bad_shape("assertion", f"{local}({said})", _names(element))
    return found


def _names(element: Element) -> str:
    listed = " ".join(one.local for one in element.elements[:12])
    return f"{element.local}({listed})" + (" with text between" if has_text(element) else "")


def _check_attributes(element: Element, local: str) -> None:
    allowed = _ATTRIBUTES.get(local, ())
    if any(not one.namespace and one.local not in allowed for one in element.attributes):
        found = " ".join(one.name for one in element.attributes)
        raise bad_shape("assertion", f"of {local} only the attributes {' '.join(allowed)}", found)

"""An assertion's statements on a person: attributes, groups, and the one e-mail address, if it is one."""

from collections.abc import Mapping
from typing import Final

import msgspec

from custody.identity.addresses import BadEmailAddress, normalised_email
from custody.identity.saml_refusals import SamlRefused, plain
from custody.identity.saml_shape import ASSERTION
from custody.identity.xml_tree import Element, has_text

MAX_NAME_ID: Final = 256
MAX_FORMAT: Final = 256
_FORMAT: Final = "urn:oasis:names:tc:SAML:"
UNSPECIFIED: Final = f"{_FORMAT}1.1:nameid-format:unspecified"
EMAIL: Final = f"{_FORMAT}1.1:nameid-format:emailAddress"
TRANSIENT: Final = f"{_FORMAT}2.0:nameid-format:transient"
# Where an address stands when the configuration names no attribute; the first that is there decides.
EMAIL_ATTRIBUTES: Final = (
    "email",
    "mail",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress",
    "urn:oid:0.9.2342.19200300.100.1.3",
    "urn:oid:1.2.840.113549.1.9.1",
)
# Entra sends this in place of more than 150 groups.
_GROUPS_LEFT_OUT: Final = "http://schemas.microsoft.com/claims/groups.link"
type Attributes = Mapping[str, tuple[str, ...]]


class NameId(msgspec.Struct, frozen=True):
    """The name that the identity provider gives to the person."""

    value: str
    format: str

    def __repr__(self) -> str:
        return "NameId()"


def name_id_of(element: Element) -> NameId:
    """The NameID, or SamlRefused where it could not be told from another one."""
    value, kind = element.plain_text, element.get("Format") or UNSPECIFIED
    if len(kind) > MAX_FORMAT:
        raise SamlRefused(
            "saml_name_id",
            "person",
            f"The NameID's Format may have {MAX_FORMAT} characters. The administrator of the identity provider must "
            "choose one that the standard names.",
            expected=f"at most {MAX_FORMAT} characters",
            found=kind,
        )
    if not value or len(value) > MAX_NAME_ID or value != value.strip() or not value.isprintable():
        raise SamlRefused(
            "saml_name_id",
            "person",
            f"The NameID must be 1 to {MAX_NAME_ID} printable characters without white space around them. The "
            "administrator of the identity provider must choose another value for it.",
            expected=f"1 to {MAX_NAME_ID} printable characters",
            found="an element" if value is None else value,
        )
    return NameId(value, kind)


def attributes_of(elements: tuple[Element, ...]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Each attribute's values, those of the same name together; and a warning for each that cannot be read."""
    found: dict[str, list[str]] = {}
    unreadable: set[str] = set()
    for one in elements:
        name = one.get("Name")
        values = [child.plain_text for child in one.elements]
        if not name or has_text(one) or any(not _is_value(child) for child in one.elements):
            raise SamlRefused(
                "saml_shape",
                "person",
                "An attribute of the assertion does not have the expected shape. The administrator of the identity "
                "provider must send attributes with a Name and AttributeValue elements.",
                expected="Attribute(AttributeValue*) with a Name",
                found=f"{name or 'no Name'}: {' '.join(child.name for child in one.elements[:8])}",
            )
        if None in values:
            unreadable.add(name)
        found.setdefault(name, []).extend(value for value in values if value is not None)
    # One that is read in part could seem to have one value where it has two.
    warnings = [
        f"The attribute {plain(name)} has a value that is not a text, and is not used." for name in sorted(unreadable)
    ]
    return {name: tuple(values) for name, values in found.items() if name not in unreadable}, warnings


def email_of(name_id: NameId, attributes: Attributes, named: str | None) -> tuple[str | None, str]:
    """The one address, as it arrived; or None and why, as a sentence."""
    if named is not None:
        where, values = f"The attribute {plain(named)}", attributes.get(named, ())
    elif name_id.format == EMAIL:
        where, values = "The NameID", (name_id.value,)
    else:
        present = next((name for name in EMAIL_ATTRIBUTES if name in attributes), None)
        if present is None:
            return (
                None,
                "The assertion has no e-mail address: the administrator of the identity provider must send one.",
            )
        where, values = f"The attribute {present}", attributes[present]
    # An address has no blanks, so those around it are of a printer or a person who typed them.
    addresses = [value.strip(" \t\n") for value in values]
    try:
        different = {normalised_email(address) for address in addresses}
    except BadEmailAddress:
        different = set(addresses)
        if len(different) == 1:
            return None, f"{where} is no e-mail address such as name@example.com: {plain(values[0])}"
    if len(different) != 1:
        return None, f"{where} has {len(different)} values, and must have exactly one e-mail address."
    return addresses[0], ""


def groups_of(attributes: Attributes, named: str | None) -> tuple[tuple[str, ...], list[str]]:
    """The groups in their order, without empty ones; and a warning where the identity provider left them out."""
    if named is None:
        return (), []
    groups = tuple(group for group in attributes.get(named, ()) if group)
    if not groups and _GROUPS_LEFT_OUT in attributes:
        return (), ["The person is in more groups than Entra sends; assign only the needed groups to the application."]
    return groups, []


def _is_value(element: Element) -> bool:
    return (element.namespace, element.local) == (ASSERTION, "AttributeValue")

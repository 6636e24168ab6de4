"""Parts forbidden anywhere in a SAML response, however deep: places to hide, and what could be taken for another."""

import re
from collections.abc import Iterator
from typing import Final

from custody.identity.saml_refusals import SamlRefused, bad_shape
from custody.identity.xml_tree import Element

_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,255}\Z")
# What can stand nowhere: behind each of them somebody once hid an assertion.
_NOWHERE: Final = frozenset({"Extensions", "Advice", "Object", "StatusDetail", "Manifest"})


# Among what encrypts an assertion, each once; and what could be taken for another.
_ENCRYPTED: Final = ["EncryptedAssertion", "EncryptedData", "EncryptedKey"]
_TAKEN: Final = _NOWHERE | {"Assertion", "Response", "Signature"}


def walk(element: Element) -> Iterator[Element]:
    """An element and all below it."""
    pending = [element]
    while pending:
        found = pending.pop()
        yield found
        pending += found.elements


def check_everywhere(response: Element) -> None:
    """Refuse what no place may have: a second assertion, an encrypted part, a place to hide in, an ID twice."""
    assertions: list[Element] = []
    signatures = 0
    ids: set[str] = set()
    for one in walk(response):
        if one.local.startswith("Encrypted"):
            raise SamlRefused(
                "saml_encrypted",
                "assertion",
                "The identity provider encrypted a part of the assertion, such as its NameID. Its administrator must "
                "have the whole assertion encrypted, or nothing.",
                found=one.name,
            )
        if one.local in _NOWHERE or (one.local == "Response" and one is not response):
            raise bad_shape("assertion", "no such element in a response", one.name)
        signatures += one.local == "Signature"
        if one.local == "Assertion":
            assertions.append(one)
        if one.attributes or one.local in ("Response", "Assertion"):
            _take_ids(one, ids)
    if len(assertions) != 1:
        message = "has more than one assertion" if assertions else "has no assertion"
        raise SamlRefused(
            "saml_assertion_twice" if assertions else "saml_assertion_missing",
            "assertion",
            f"The response {message}. The administrator of the identity provider must have it send exactly one.",
            expected="one Assertion",
            found=str(len(assertions)),
        )
    in_place = sum(child.local == "Signature" for parent in (response, assertions[0]) for child in parent.elements)
    if signatures != in_place:
        raise bad_shape("assertion", "a Signature only directly in Response and Assertion", "one elsewhere")


def check_encrypted(opened: Element, encrypted: Element) -> None:
    """Refuse around an encrypted assertion what no place may have, and an ID that is there twice with what came out."""
    found = [one.local for one in walk(encrypted) if one.local.startswith("Encrypted") or one.local in _TAKEN]
    if sorted(found) != _ENCRYPTED:
        raise bad_shape("assertion", " ".join(_ENCRYPTED), " ".join(found))
    seen: set[str] = set()
    for one in (*walk(opened), *walk(encrypted)):
        if one.attributes:
            _take_ids(one, seen)


def _take_ids(element: Element, seen: set[str]) -> None:
    found = [one for one in element.attributes if one.local.lower() == "id"]
    if element.local in ("Response", "Assertion") and [one.name for one in found] != ["ID"]:
        raise bad_shape(
            "assertion", f"one attribute ID of {element.local}", " ".join(one.name for one in found) or "none"
        )
    for one in found:
        if one.value in seen or not _ID.match(one.value):
            raise SamlRefused(
                "saml_id_twice",
                "assertion",
                "An ID in the response is there twice, or is no name of 1 to 256 characters. Sign in again; if it is "
                "refused again, the administrator of the identity provider must find out where it comes from.",
                expected="every ID once, as a name",
                found=one.value,
            )
        seen.add(one.value)

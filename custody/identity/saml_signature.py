"""The XML signature of a SAML assertion or response, in the one form that is accepted. Normative: docs/saml.md.

A signature is judged against its parent, which it must refer to, and against pinned keys. KeyInfo is never read: what
a stranger puts beside a signature says nothing about whose it is. The signature over SignedInfo is checked first, so
that a document nobody signed costs no digest.
"""

import binascii
import hmac
import re
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, Hash, HashAlgorithm

from custody.identity.canonical_xml import canonical
from custody.identity.saml_certificates import Certificate
from custody.identity.saml_refusals import SamlRefused
from custody.identity.xml_tree import Element, has_text

DSIG: Final = "http://www.w3.org/2000/09/xmldsig#"
_MORE: Final = "http://www.w3.org/2001/04/xmldsig-more#"
_ENVELOPED: Final = DSIG + "enveloped-signature"
EXCLUSIVE: Final = "http://www.w3.org/2001/10/xml-exc-c14n#"
_DIGESTS: Final[dict[str, HashAlgorithm]] = {
    "http://www.w3.org/2001/04/xmlenc#sha256": SHA256(),
    _MORE + "sha384": SHA384(),
    "http://www.w3.org/2001/04/xmlenc#sha512": SHA512(),
}
_SIGNATURES: Final[dict[str, tuple[type[RSAPublicKey | EllipticCurvePublicKey], HashAlgorithm]]] = {
    _MORE + f"{kind}-sha{hashing.digest_size * 8}": (key, hashing)
    for kind, key in (("rsa", RSAPublicKey), ("ecdsa", EllipticCurvePublicKey))
    for hashing in (SHA256(), SHA384(), SHA512())
}
MAX_PREFIXES: Final = 32
_PREFIXES = re.compile(r"(?:#default|[A-Za-z_][A-Za-z0-9_.\-]*+)(?: (?:#default|[A-Za-z_][A-Za-z0-9_.\-]*+))*+\Z")
# Some providers break the lines of base64, and write the line ends as references.
_BLANKS = str.maketrans("", "", " \t\r\n")


class _Signed:
    """The signed part to judge, and the check, so that each refusal says which signature it is about."""

    def __init__(self, parent: Element, signature: Element, check: str) -> None:
        self.parent, self.signature, self.check = parent, signature, check

    def refuse(self, code: str, what: str, cure: str, expected: str = "", found: str = "") -> NoReturn:
        message = f"The signature of the {self.parent.local} {what}. {cure}"
        raise SamlRefused(code, self.check, message, expected=expected, found=found)

    def bad_shape(self, expected: str, found: str) -> NoReturn:
        cure = "Its administrator must choose a plain enveloped signature with exclusive canonicalisation."
        self.refuse("saml_signature_shape", "has a form that is not accepted", cure, expected, found)


def verify(parent: Element, signature: Element, certificates: Sequence[Certificate], check: str) -> Certificate:
    """Check the signature that is a child of what it signs, or raise SamlRefused; gives the certificate that holds."""
    signed = _Signed(parent, signature, check)
    information, value, *_ = _children(signed, signature, "SignedInfo", "SignatureValue", "KeyInfo?")
    method, algorithm, reference = _children(
        signed, information, "CanonicalizationMethod", "SignatureMethod", "Reference"
    )
    transforms, digest_method, digest_value = _children(signed, reference, "Transforms", "DigestMethod", "DigestValue")
    if (uri := reference.get("URI")) != (own := f"#{parent.get('ID')}"):
        signed.bad_shape(f"a Reference to the {parent.local} around it, {own}", str(uri))
    prefixes = _transforms(signed, transforms)
    kind, hashing = _look_up(signed, algorithm, _SIGNATURES, "saml_signature_algorithm", "RSA-SHA256")
    digest = Hash(_look_up(signed, digest_method, _DIGESTS, "saml_digest_algorithm", "SHA-256"))
    content = canonical(information, _exclusive(signed, method))
    matching = [one for one in certificates if isinstance(one.public_key, kind)]
    by = _signer(signed, content, _base64(signed, value), matching, hashing)
    digest.update(canonical(parent, prefixes, without=signature))
    if not hmac.compare_digest(digest.finalize(), _base64(signed, digest_value)):
        signed.refuse(
            "saml_digest_mismatch",
            "is not of this content: it was changed after it was signed",
            "Sign in again; if it is refused again, the administrator must find out what changes it on its way.",
        )
    return by


def _transforms(signed: _Signed, transforms: Element) -> frozenset[str]:
    enveloped, exclusive = _children(signed, transforms, "Transform", "Transform")
    if enveloped.elements or (found := _algorithm(signed, enveloped)) != _ENVELOPED:
        signed.bad_shape(f"first the transform {_ENVELOPED}", found if not enveloped.elements else "one with content")
    return _exclusive(signed, exclusive)


def _look_up[Known](signed: _Signed, method: Element, known: Mapping[str, Known], code: str, cure: str) -> Known:
    name = _algorithm(signed, method)
    if method.elements or (found := known.get(name)) is None:
        todo = f"The administrator of the identity provider must choose {cure}."
        signed.refuse(code, "uses an algorithm that is not accepted", todo, " or ".join(known), name)
    return found


def _signer(
    signed: _Signed, content: bytes, value: bytes, certificates: Sequence[Certificate], hashing: HashAlgorithm
) -> Certificate:
    for one in certificates:
        if _holds(one.public_key, content, value, hashing):
            return one
    signed.refuse(
        "saml_signature_invalid",
        "is by none of the certificates that are configured",
        "An administrator of the tenant must copy the identity provider's signing certificate into its configuration.",
        "a signature by a configured certificate",
        f"none by the {len(certificates)} whose key is of its kind",
    )


def _holds(key: RSAPublicKey | EllipticCurvePublicKey, content: bytes, value: bytes, hashing: HashAlgorithm) -> bool:
    try:
        if isinstance(key, RSAPublicKey):
            key.verify(value, content, PKCS1v15(), hashing)
            return True
        size = (key.curve.key_size + 7) // 8
        r, s = int.from_bytes(value[:size], "big"), int.from_bytes(value[size:], "big")
        if len(value) != 2 * size or not r or not s:
            return False
        key.verify(encode_dss_signature(r, s), content, ECDSA(hashing))
    except InvalidSignature:
        return False
    return True


def _children(signed: _Signed, element: Element, *names: str) -> tuple[Element, ...]:
    """The children in their order; a name that ends in ? may be missing at the end. Nothing else may be there."""
    found = element.elements
    wanted = names if len(found) == len(names) else tuple(name for name in names if not name.endswith("?"))
    if [(one.namespace, one.local) for one in found] != [(DSIG, name.rstrip("?")) for name in wanted]:
        signed.bad_shape(f"{element.local}({' '.join(names)})", f"({' '.join(one.name for one in found[:8])})")
    if has_text(element):
        signed.bad_shape("no text between elements", f"text in {element.local}")
    return found


def _exclusive(signed: _Signed, method: Element) -> frozenset[str]:
    """The prefixes of an exclusive canonicalisation; refuses any other."""
    if (found := _algorithm(signed, method)) != EXCLUSIVE:
        signed.bad_shape(f"the canonicalisation {EXCLUSIVE}", found)
    if not method.elements:
        return frozenset()
    (inclusive,) = method.elements
    listed = inclusive.get("PrefixList") or ""
    named = (inclusive.namespace, inclusive.local) == (EXCLUSIVE, "InclusiveNamespaces")
    if not named or inclusive.children or [one.name for one in inclusive.attributes] != ["PrefixList"]:
        signed.bad_shape("InclusiveNamespaces with a PrefixList", inclusive.name)
    prefixes = listed.split(" ")
    if listed and (len(prefixes) > MAX_PREFIXES or not _PREFIXES.match(listed)):
        signed.bad_shape(f"a PrefixList of at most {MAX_PREFIXES} prefixes with one space between", listed)
    return frozenset("" if prefix == "#default" else prefix for prefix in prefixes if prefix)


def _algorithm(signed: _Signed, method: Element) -> str:
    """The Algorithm of a method that has no other attribute, and no text beside what may be in it."""
    if [one.name for one in method.attributes] != ["Algorithm"] or len(method.elements) > 1:
        signed.bad_shape(f"{method.local} with an Algorithm and nothing else", method.name)
    if has_text(method):
        signed.bad_shape("no text between elements", f"text in {method.local}")
    return method.attributes[0].value


def _base64(signed: _Signed, element: Element) -> bytes:
    text = element.text
    try:
        return binascii.a2b_base64((text or "").translate(_BLANKS).encode("ascii"), strict_mode=True)
    except ValueError:
        signed.bad_shape(f"base64 in {element.local}", text or "nothing, or an element")

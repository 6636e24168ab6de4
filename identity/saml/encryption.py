"""Opens the encrypted assertion of an answer, in the one form that is accepted. Pure; docs/saml.md, section 9.

Anybody who knows the certificate can encrypt; that it opens proves nothing. What comes out is read as strictly as the
answer itself, in its place, and must be signed inside. Whatever does not open is one refusal, so that nobody learns
from trying at which step it failed; changed ciphertext opens nowhere, for the content is authenticated (GCM).
"""

import binascii
import os
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, HashAlgorithm

from custody.identity.saml_forbidden import check_encrypted
from custody.identity.saml_refusals import SamlRefused, bad_shape
from custody.identity.saml_shape import ASSERTION, ENCRYPTION, ENCRYPTION_1_1, children_of
from custody.identity.saml_signature import DSIG
from custody.identity.xml_tree import Element
from identity.saml.strict_xml import read
from identity.saml.xml_text import XmlRefused

_NONCE: Final = 12
_CURE: Final = "The administrator of the identity provider must"
_CHECK: Final = "assertion"
_BLANKS = str.maketrans("", "", " \t\r\n")
# Of the content's key in bytes. Both show that it was changed, which CBC does not.
_CONTENT: Final = {f"{ENCRYPTION_1_1}aes128-gcm": 16, f"{ENCRYPTION_1_1}aes256-gcm": 32}
# OAEP does not rest on collisions, so that SHA-1, which the standard takes where nothing is said, is no weakness here.
_DIGESTS: Final = {f"{DSIG}sha1": SHA1(), f"{ENCRYPTION}sha256": SHA256()}  # noqa: S303
_MASKS: Final = {f"{ENCRYPTION_1_1}mgf1sha1": SHA1(), f"{ENCRYPTION_1_1}mgf1sha256": SHA256()}  # noqa: S303
# With the masks that each may name; the first has none but SHA-1.
_TRANSPORT: Final = {f"{ENCRYPTION}rsa-oaep-mgf1p": "", f"{ENCRYPTION_1_1}rsa-oaep": "f:MGF?"}


def open_assertion(response: Element, keys: Sequence[RSAPrivateKey], *, demanded: bool) -> Element:
    """The response with its encrypted assertion opened in its place; as it is if none is encrypted."""
    name = (ASSERTION, "EncryptedAssertion")
    encrypted = next((one for one in response.elements if (one.namespace, one.local) == name), None)
    if encrypted is None and demanded:
        raise _refusal("saml_not_encrypted", f"is not encrypted, as this tenant wants it. {_CURE} turn encryption on.")
    if encrypted is None:
        return response
    if not keys:
        why = f"is encrypted, and this tenant has no key for it. {_CURE} turn assertion encryption off, or one of the "
        raise _refusal("saml_encrypted", f"{why}tenant make a key, which its metadata then shows.")
    plain = _decrypt(keys, *_shape_of(encrypted))
    if plain is None:
        why = "is encrypted, and opens with no key of this tenant. "
        raise _refusal("saml_decryption", f"{why}{_CURE} load this service's metadata again, or its new certificate.")
    assertion = _read(plain, encrypted)
    # The very objects of the response but for this one: what its signature covers is what is read.
    elements, children = (
        tuple(assertion if one is encrypted else one for one in some) for some in (response.elements, response.children)
    )
    opened = msgspec.structs.replace(response, children=children, elements=elements)
    check_encrypted(opened, encrypted)
    return opened


def _shape_of(encrypted: Element) -> tuple[bytes, OAEP, int, bytes]:
    """The key as it was wrapped, how, how many bytes it has, and the content."""
    (data,), beside = children_of(encrypted, "a:EncryptedAssertion", "e:EncryptedData", "e:EncryptedKey?")
    (method,), told, (content,) = children_of(
        data, "e:EncryptedData", "e:EncryptionMethod", "d:KeyInfo?", "e:CipherData"
    )
    inside, there = children_of(told[0], "d:KeyInfo", "e:EncryptedKey?", "d:RetrievalMethod?") if told else ((), ())
    if len(inside + beside) != 1 or data.get("Type") not in (None, f"{ENCRYPTION}Element"):
        raise bad_shape(_CHECK, "one EncryptedKey, and data that was an element", f"{len(inside + beside)} keys")
    (key,) = inside + beside
    (transport,), _, (wrapped,), lists = children_of(
        key, "e:EncryptedKey", "e:EncryptionMethod", "d:KeyInfo?", "e:CipherData", "e:ReferenceList?"
    )
    back = children_of(lists[0], "e:ReferenceList", "e:DataReference")[0] if lists else ()
    for one, shape, meant in (*((one, "d", key) for one in there), *((one, "e", data) for one in back)):
        children_of(one, f"{shape}:{one.local}")
        if meant.get("Id") is None or one.get("URI") != f"#{meant.get('Id')}":
            raise bad_shape(_CHECK, f"a {one.local} to the {meant.local} beside it", str(one.get("URI")))
    size = _look_up(method, _CONTENT, "AES256-GCM or AES128-GCM")
    children_of(method, "e:EncryptionMethod")
    masked = _look_up(transport, _TRANSPORT, "RSA-OAEP")
    said = children_of(transport, "e:EncryptionMethod", "d:DigestMethod?", *([masked] if masked else []))
    digest, mask = _hashing(said[0], _DIGESTS), _hashing(said[1] if masked else (), _MASKS)
    return _base64(wrapped), OAEP(MGF1(mask), digest, None), size, _base64(content)


def _hashing(said: tuple[Element, ...], known: Mapping[str, HashAlgorithm]) -> HashAlgorithm:
    for one in said:
        children_of(one, f"{'d' if known is _DIGESTS else 'f'}:{one.local}")
    return _look_up(said[0], known, "RSA-OAEP with SHA-256 or SHA-1") if said else SHA1()  # noqa: S303


def _look_up[Known](method: Element, known: Mapping[str, Known], cure: str) -> Known:
    found = known.get(name := method.get("Algorithm") or "")
    if found is None:
        why = f"is encrypted in a way that is not accepted. {_CURE} choose {cure}; if it cannot, encryption off."
        raise _refusal("saml_encryption_algorithm", why, " or ".join(known), name)
    return found


def _decrypt(keys: Sequence[RSAPrivateKey], wrapped: bytes, padding: OAEP, size: int, content: bytes) -> bytes | None:
    """The content by the key that opens it; each is tried to the end, whatever becomes of the others."""
    found = None
    for key in keys:
        try:
            secret = key.decrypt(wrapped, padding)
        except ValueError:
            secret = b""
        if len(secret) != size:
            secret = os.urandom(size)
        try:
            found = AESGCM(secret).decrypt(content[:_NONCE].ljust(_NONCE), content[_NONCE:], None)
        except InvalidTag:
            continue
    return found


def _read(content: bytes, encrypted: Element) -> Element:
    """The assertion, whose prefixes may be declared around it, as they could where it stood before."""
    try:
        found = read(content, encrypted.scope)
    except XmlRefused as problem:
        why = f"is encrypted, and no plain XML when it is opened: {problem} {_CURE} find out why."
        raise _refusal("saml_xml", why) from None
    if (found.namespace, found.local) != (ASSERTION, "Assertion"):
        raise bad_shape(_CHECK, "an Assertion that was encrypted", found.name)
    return found


def _base64(data: Element) -> bytes:
    ((value,),) = children_of(data, "e:CipherData", "e:CipherValue")
    try:
        return binascii.a2b_base64((value.text or "").translate(_BLANKS).encode("ascii"), strict_mode=True)
    except ValueError:
        raise bad_shape(_CHECK, "base64 in CipherValue", "something else, or an element") from None


def _refusal(code: str, message: str, expected: str = "one as it is configured", found: str = "") -> SamlRefused:
    return SamlRefused(code, _CHECK, f"The assertion {message}", expected=expected, found=found)

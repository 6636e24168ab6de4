"""Only one form of signature is accepted, by keys that are pinned and strong. docs/saml.md has the form."""

from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from hmac import digest
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from signxml import CanonicalizationMethod, SignatureMethod, XMLSigner

from custody.identity.saml_certificates import IdpCertificateInvalid, read_certificates, write_pem
from identity.saml.response import read_response
from tests.fixtures.each import each
from tests.outside import saml_answers as saml
from tests.rules.identity.test_saml_response import EXPECTED, GENUINE, KEY, NOW, refusal_of

P256 = saml.key("p256")
BOTH = msgspec.structs.replace(EXPECTED, certificates=(KEY.certificate, P256.certificate))


def by_hand(change: Callable[[Any], object] | None = None, by: saml.Key = KEY, **knobs: Any) -> bytes:
    """A genuine answer whose signature was made with this change of its template; its own value is right."""
    tree = GENUINE.tree()
    saml.sign_by_hand(saml.the(tree, "Assertion"), by, change, **knobs)
    return saml.to_bytes(tree)


def transforms(*algorithms: str) -> Callable[[Any], object]:
    def change(signature: Any) -> None:
        place = saml.the(signature, "Transforms")
        for child in list(place):
            place.remove(child)
        for algorithm in algorithms:
            saml.add(place, saml.DS, "Transform", Algorithm=algorithm)

    return change


def set_on(local: str, **attributes: str) -> Callable[[Any], object]:
    return lambda signature: saml.the(signature, local).attrib.update(attributes)


def code_of(change: Callable[[Any], object]) -> str:
    assert read_response(by_hand(), EXPECTED)
    return refusal_of(by_hand(change)).code


@each("kind", ["rsa", "p256", "p384", "p521"])
@each("size", ["256", "384", "512"])
def test_each_permitted_algorithm_is_accepted(kind: str, size: str) -> None:
    by = saml.key(kind)
    expected = msgspec.structs.replace(EXPECTED, certificates=(by.certificate,))
    content = by_hand(by=by, size=size)

    assert saml.holds(content, by)
    assert read_response(content, expected)


@each("kind", ["rsa", "p256"])
def test_an_answer_that_signxml_signed_is_accepted(kind: str) -> None:
    by, tree = saml.key(kind), GENUINE.tree()
    assertion = saml.the(tree, "Assertion")
    place = saml.etree.Element(f"{{{saml.DS}}}Signature", Id="placeholder", nsmap={"ds": saml.DS})
    assertion.insert(1, place)
    algorithm = SignatureMethod.RSA_SHA256 if kind == "rsa" else SignatureMethod.ECDSA_SHA256
    signer = XMLSigner(
        signature_algorithm=algorithm, c14n_algorithm=CanonicalizationMethod.EXCLUSIVE_XML_CANONICALIZATION_1_0
    )
    made = signer.sign(assertion, key=by.pem, cert=by.certificate, reference_uri=GENUINE.assertion_id)
    tree.replace(assertion, made)

    assert read_response(saml.to_bytes(tree), BOTH)


# S18
@each(
    "uri", ["", "#", "#_response1", "_assertion1", "#xpointer(id('_assertion1'))", "#xpointer(/)", "http://x.example/a"]
)
def test_a_reference_to_anything_but_the_element_around_it_is_refused(uri: str) -> None:
    assert code_of(set_on("Reference", URI=uri)) == "saml_signature_shape"


# S18
def test_a_reference_to_nothing_is_refused() -> None:
    assert code_of(lambda signature: saml.the(signature, "Reference").attrib.pop("URI")) == "saml_signature_shape"


ENVELOPED = saml.DS + "enveloped-signature"
INCLUSIVE = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315"
# S19
CHAINS = {
    "none": (),
    "one": (ENVELOPED,),
    "only canonical": (saml.EXCLUSIVE,),
    "swapped": (saml.EXCLUSIVE, ENVELOPED),
    "enveloped twice": (ENVELOPED, ENVELOPED),
    "XPath": (ENVELOPED, saml.EXCLUSIVE, "http://www.w3.org/TR/1999/REC-xpath-19991116"),
    "XSLT": (ENVELOPED, "http://www.w3.org/TR/1999/REC-xslt-19991116", saml.EXCLUSIVE),
    "base64": (ENVELOPED, saml.DS + "base64"),
    "with comments": (ENVELOPED, saml.EXCLUSIVE + "WithComments"),
    "inclusive": (ENVELOPED, INCLUSIVE),
    "inclusive 1.1": (ENVELOPED, "http://www.w3.org/2006/12/xml-c14n11"),
}


@each("chain", CHAINS.values(), ids=CHAINS.keys())
def test_other_transforms_are_refused(chain: tuple[str, ...]) -> None:
    assert code_of(transforms(*chain)) == "saml_signature_shape"


# S19
@each("algorithm", [saml.EXCLUSIVE + "WithComments", INCLUSIVE, ""])
def test_another_canonicalisation_of_signed_info_is_refused(algorithm: str) -> None:
    assert code_of(set_on("CanonicalizationMethod", Algorithm=algorithm)) == "saml_signature_shape"


# S19
@each("listed", ["a  b", " a", "a b ", "a\tb", "1a", "a,b", " ".join(f"p{n}" for n in range(33))])
def test_a_prefix_list_in_another_spelling_is_refused(listed: str) -> None:
    def change(signature: Any) -> None:
        method = saml.the(signature, "CanonicalizationMethod")
        saml.add(method, saml.EXCLUSIVE, "InclusiveNamespaces", PrefixList=listed)

    assert code_of(change) == "saml_signature_shape"


@each("local", ["Signature", "SignedInfo", "Reference", "Transforms", "Transform"])
def test_text_between_the_elements_of_a_signature_is_refused(local: str) -> None:
    assert code_of(lambda signature: setattr(saml.the(signature, local), "text", "x")) == "saml_signature_shape"


@each("local", ["SignatureMethod", "DigestMethod", "Transform", "CanonicalizationMethod"])
def test_a_parameter_of_an_algorithm_is_refused(local: str) -> None:
    code = code_of(lambda signature: saml.add(saml.the(signature, local), saml.DS, "HMACOutputLength", "1"))
    assert code in ("saml_signature_shape", "saml_signature_algorithm", "saml_digest_algorithm")


# S20
def test_sha_1_is_refused() -> None:
    assert refusal_of(by_hand(size="1")).code == "saml_signature_algorithm"


# S20
@each(
    ("local", "algorithm", "code"),
    [
        ("DigestMethod", saml.DS + "sha1", "saml_digest_algorithm"),
        ("DigestMethod", saml.MORE + "md5", "saml_digest_algorithm"),
        ("SignatureMethod", saml.DS + "rsa-sha1", "saml_signature_algorithm"),
        ("SignatureMethod", saml.DS + "dsa-sha1", "saml_signature_algorithm"),
        ("SignatureMethod", "http://www.w3.org/2009/xmldsig11#dsa-sha256", "saml_signature_algorithm"),
        ("SignatureMethod", saml.MORE + "ecdsa-sha1", "saml_signature_algorithm"),
        ("SignatureMethod", "http://www.w3.org/2007/05/xmldsig-more#sha256-rsa-MGF1", "saml_signature_algorithm"),
        ("SignatureMethod", saml.MORE + "rsa-sha256 ", "saml_signature_algorithm"),
    ],
)
def test_other_algorithms_are_refused(local: str, algorithm: str, code: str) -> None:
    assert code_of(set_on(local, Algorithm=algorithm)) == code


# S20
@each("secret", [KEY.certificate.encode(), KEY.der])
def test_an_hmac_with_the_certificate_as_its_key_is_refused(secret: bytes) -> None:
    tree = GENUINE.tree()
    method = set_on("SignatureMethod", Algorithm=saml.MORE + "hmac-sha256")
    saml.sign_by_hand(saml.the(tree, "Assertion"), KEY, method, value=lambda content: digest(secret, content, "sha256"))

    assert refusal_of(saml.to_bytes(tree)).code == "saml_signature_algorithm"


# S21
FORMS: dict[str, Callable[[bytes], bytes]] = {
    "DER": lambda content: P256.private.sign(content, ec.ECDSA(SHA256())),
    "too short": lambda content: P256.raw_signature(content)[:-1],
    "too long": lambda content: b"\x00" + P256.raw_signature(content),
    "r zero": lambda content: bytes(32) + P256.raw_signature(content)[32:],
    "s zero": lambda content: P256.raw_signature(content)[:32] + bytes(32),
    "both zero": lambda content: bytes(64),
    "both the order": lambda content: b"\xff" * 64,
    "nothing": lambda content: b"",
}


@each("value", FORMS.values(), ids=FORMS.keys())
def test_an_ecdsa_signature_in_another_form_is_refused(value: Callable[[bytes], bytes]) -> None:
    assert read_response(by_hand(by=P256), BOTH)
    assert refusal_of(by_hand(by=P256, value=value), BOTH).code == "saml_signature_invalid"


def test_a_signature_value_with_line_ends_is_accepted() -> None:
    def break_lines(text: bytes) -> bytes:
        begin = text.index(b"<ds:SignatureValue>") + len(b"<ds:SignatureValue>")
        return text[:begin] + b"\n" + text[begin : begin + 76] + b"&#13;\n" + text[begin + 76 :]

    assert read_response(break_lines(by_hand()), EXPECTED)


@each("local", ["SignatureValue", "DigestValue"])
@each("text", ["", "!", "QQ", "QQ=="])
def test_a_value_that_is_not_the_signatures_is_refused(local: str, text: str) -> None:
    tree = saml.etree.fromstring(by_hand())
    saml.the(tree, local).text = text

    assert refusal_of(saml.to_bytes(tree)).check == "signature"


# S22
def test_the_attackers_certificate_in_key_info_is_not_believed() -> None:
    evil = saml.key("rsa", "evil")
    tree = GENUINE.tree()
    saml.sign(saml.the(tree, "Assertion"), evil)

    assert evil.certificate[100:160].replace("\n", "") in saml.to_bytes(tree).decode().replace("\n", "")
    assert refusal_of(saml.to_bytes(tree)).code == "saml_signature_invalid"


# S23
def test_each_of_five_certificates_is_tried_and_a_removed_one_is_not() -> None:
    five = (*(saml.key("p256", str(number)) for number in range(4)), saml.key("p384", "five"))
    expected = msgspec.structs.replace(EXPECTED, certificates=tuple(one.certificate for one in five))
    for one in five:
        assert read_response(GENUINE.sign(one), expected)
    fewer = msgspec.structs.replace(expected, certificates=expected.certificates[1:])

    assert refusal_of(GENUINE.sign(five[0]), fewer).code == "saml_signature_invalid"


# S21, S24
@each(
    "certificates",
    [
        (),
        (KEY.certificate,) * 6,
        (saml.key("rsa1024").certificate,) * 2,
        (saml.key("rsa-e3").certificate,),
        (saml.key("k1").certificate,),
        ("",),
    ],
    ids=["none", "six", "1024 bits", "exponent 3", "another curve", "empty"],
)
def test_nothing_verifies_by_certificates_that_cannot_be_kept(certificates: tuple[str, ...]) -> None:
    refusal = refusal_of(GENUINE.sign(KEY), msgspec.structs.replace(EXPECTED, certificates=certificates))
    assert (refusal.code, refusal.check) == ("saml_certificates", "signed")


def test_a_certificate_shows_its_subject_its_end_and_its_fingerprint() -> None:
    (found,) = read_certificates([KEY.certificate])

    assert found.subject == "CN=idp rsa"
    assert found.not_after.year == 2040
    assert found.fingerprint == sha256(KEY.der).hexdigest()
    assert read_certificates([KEY.certificate.replace("\n", "\r\n"), f"\n{KEY.certificate}\n"])[1].public_key


BLOCK = b64encode(KEY.der).decode()


@each("text", [BLOCK, f" {BLOCK}\n", "\r\n".join(BLOCK[at : at + 76] for at in range(0, len(BLOCK), 76))])
def test_base64_alone_is_written_as_pem(text: str) -> None:
    (found,) = read_certificates([write_pem(text)])

    assert found.fingerprint == sha256(KEY.der).hexdigest()
    assert [write_pem(other) for other in (KEY.certificate, "", " ", "a;b")] == [KEY.certificate, "", " ", "a;b"]


def test_a_stored_certificate_that_can_no_longer_be_used_is_left_out() -> None:
    weak = saml.key("rsa1024").certificate

    for certificates in ((weak, KEY.certificate), (KEY.certificate, weak)):
        assert read_response(GENUINE.sign(KEY), msgspec.structs.replace(EXPECTED, certificates=certificates))
    alone = msgspec.structs.replace(EXPECTED, certificates=(weak,))
    assert refusal_of(GENUINE.sign(saml.key("rsa1024")), alone).code == "saml_certificates"


# S21, S24
UNUSABLE = {
    "private key": (KEY.pem.decode(), "private key"),
    "private key beside it": (KEY.certificate + KEY.pem.decode(), "private key"),
    "private key in front": (KEY.pem.decode() + KEY.certificate, "private key"),
    "in lower case": (KEY.certificate + "-----begin rsa private key-----", "private key"),
    "two certificates": (KEY.certificate * 2, "exactly one block"),
    "text in front": ("subject=CN\n" + KEY.certificate, "exactly one block"),
    "text behind": (KEY.certificate + "x", "exactly one block"),
    "only base64, with more": (f"{BLOCK};", "exactly one block"),
    "public key": ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "exactly one block"),
    "no certificate": ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "export it again"),
    "bad base64": ("-----BEGIN CERTIFICATE-----\nAAA\n-----END CERTIFICATE-----", "export it again"),
    "bytes behind": (
        "-----BEGIN CERTIFICATE-----\n" + b64encode(KEY.der + b"\x00").decode() + "\n-----END CERTIFICATE-----",
        "export it again",
    ),
    "too long": (KEY.certificate + "\n" * 16_384, "16 KiB"),
    "RSA 1024": (saml.key("rsa1024").certificate, "1024 bits"),
    "exponent 3": (saml.key("rsa-e3").certificate, "exponent"),
    "P-192": (saml.key("p192").certificate, "another kind"),
    "secp256k1": (saml.key("k1").certificate, "another kind"),
}


@each(("pem", "says"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_certificate_that_cannot_be_used_is_refused_with_the_cure(pem: str, says: str) -> None:
    with pytest.raises(IdpCertificateInvalid, match=says) as caught:
        read_certificates([KEY.certificate, pem])
    assert "idpCertPems[1]" in caught.value.message
    assert pem[40:80] not in caught.value.message


def test_a_change_after_signing_is_noticed() -> None:
    content = GENUINE.sign(KEY)

    refusal = refusal_of(content.replace(b">ann@example.com<", b">eve@example.com<"))
    assert (refusal.code, refusal.check) == ("saml_digest_mismatch", "signature")
    assert GENUINE.now == NOW
    assert b64decode(BLOCK) == KEY.der

"""An encrypted assertion is opened in one form and place, proves nothing by that, and tells nobody why it does not.

xmlsec encrypts what is accepted; what it would not make is made by hand. docs/saml.md, section 9.
"""

import base64
import copy
from typing import Any

import msgspec
import pytest
from lxml import etree

from custody.identity.saml_refusals import SamlRefused
from identity.saml.response import read_response
from identity.saml.types import Assertion
from tests.fixtures.each import each
from tests.outside import saml_answers as saml
from tests.outside import saml_encryption as encryption
from tests.outside.saml_encryption import ENC, ENC11, GCM128, GCM256, OAEP, OAEP11, SHA1, SHA256
from tests.rules.identity.test_saml_response import EXPECTED, GENUINE, KEY

OURS, FORMER, OTHER = encryption.new_key(), encryption.new_key(), encryption.new_key()
WITH_KEYS = msgspec.structs.replace(EXPECTED, keys=(OURS, FORMER))
CERTIFICATE = encryption.certificate_of(OURS)


def signed_tree(what: str = "assertion") -> Any:
    return etree.fromstring(GENUINE.sign(KEY, what))


def read_tree(tree: Any, **expected: Any) -> Assertion:
    return read_response(saml.to_bytes(tree), msgspec.structs.replace(WITH_KEYS, **expected))


def refusal_of(tree: Any, **expected: Any) -> SamlRefused:
    """The refusal of a tree, beside a genuine one that is accepted with the same keys."""
    read_tree(encryption.encrypt(signed_tree(), CERTIFICATE))
    with pytest.raises(SamlRefused) as caught:
        read_tree(tree, **expected)
    return caught.value


def by_hand(**how: Any) -> Any:
    return encryption.encrypt_by_hand(signed_tree(), OURS.public_key(), **how)


@each("content", [GCM128, GCM256])
@each(
    ("transport", "digest", "mask"),
    [
        (OAEP, None, None),
        (OAEP, SHA1, None),
        (OAEP, SHA256, None),
        (OAEP11, SHA256, encryption.MGF_SHA256),
        (OAEP11, SHA256, None),
    ],
)
def test_an_assertion_that_xmlsec_encrypts_is_read(
    content: str, transport: str, digest: str | None, mask: str | None
) -> None:
    tree = encryption.encrypt(
        signed_tree(), CERTIFICATE, content=content, transport=transport, digest=digest, mask=mask
    )

    assert b"ann@example.com" not in saml.to_bytes(tree)
    assert read_tree(tree) == read_tree(signed_tree())


@each("beside", [False, True], ids=["inside", "beside"])
def test_a_key_may_stand_inside_of_the_data_and_beside_it(beside: bool) -> None:
    tree = by_hand(beside=beside)

    assert read_tree(tree) == read_tree(signed_tree())
    # The library does not look for a key beside the data.
    assert beside or b"ann@example.com" in encryption.decrypt(tree, OURS)


def test_a_former_key_opens_and_a_strangers_does_not() -> None:
    for key in (OURS, FORMER):
        assert read_tree(encryption.encrypt_by_hand(signed_tree(), key.public_key())).name_id == GENUINE.name_id

    assert refusal_of(encryption.encrypt_by_hand(signed_tree(), OTHER.public_key())).code == "saml_decryption"


def test_an_encrypted_assertion_that_finds_no_key_names_both_cures() -> None:
    refused = refusal_of(by_hand(), keys=())

    assert refused.code == "saml_encrypted"
    assert "encryption off" in refused.message
    assert "make a key" in refused.message


def test_a_plain_assertion_is_refused_where_it_must_be_encrypted() -> None:
    assert read_tree(by_hand(), encrypted=True).name_id == GENUINE.name_id
    assert read_tree(signed_tree()).name_id == GENUINE.name_id
    assert refusal_of(signed_tree(), encrypted=True).code == "saml_not_encrypted"


class TestSignatures:
    def test_encryption_is_no_signature(self) -> None:
        """Anybody who reads the metadata can encrypt."""
        assert refusal_of(encryption.encrypt(GENUINE.tree(), CERTIFICATE)).code == "saml_assertion_unsigned"

    def test_a_signature_around_the_encrypted_assertion_alone_does_not_count(self) -> None:
        tree = encryption.encrypt(GENUINE.tree(), CERTIFICATE)
        saml.sign(tree, KEY)
        assert saml.holds(saml.to_bytes(tree), KEY, "Response")

        assert refusal_of(tree).code == "saml_assertion_unsigned"

    def test_a_response_that_is_signed_too_is_judged_as_it_came(self) -> None:
        tree = by_hand()
        saml.sign(tree, KEY)

        assert read_tree(tree).name_id == GENUINE.name_id
        saml.the(tree, "EncryptedKey").set("Recipient", "another")
        assert refusal_of(tree).code == "saml_digest_mismatch"

    def test_a_response_that_was_signed_before_its_assertion_was_encrypted_is_refused(self) -> None:
        """Then nobody can tell what was signed without taking the word of what opened."""
        assert refusal_of(encryption.encrypt(signed_tree("both"), CERTIFICATE)).code == "saml_digest_mismatch"

    def test_an_assertion_that_was_changed_before_it_was_encrypted_is_refused(self) -> None:
        plain = saml.to_bytes(saml.the(signed_tree(), "Assertion")).replace(b"ann@", b"eve@")

        assert refusal_of(by_hand(plain=plain)).code == "saml_digest_mismatch"

    def test_a_signature_of_another_key_is_refused(self) -> None:
        tree = etree.fromstring(GENUINE.sign(saml.key("rsa", "of a stranger")))

        assert refusal_of(encryption.encrypt(tree, CERTIFICATE)).code == "saml_signature_invalid"


class TestNamespaces:
    def test_prefixes_that_are_declared_around_it_count(self) -> None:
        """The serialisation of libxml2 leaves out what an element inherits."""
        tree = signed_tree()
        plain = saml.to_bytes(saml.the(tree, "Assertion")).replace(f' xmlns:saml="{saml.SAML}"'.encode(), b"")
        assert b"xmlns:saml=" not in plain

        assert read_tree(by_hand(plain=plain)) == read_tree(signed_tree())

    def test_a_prefix_that_means_something_else_around_it_changes_what_was_signed(self) -> None:
        plain = saml.to_bytes(saml.the(signed_tree(), "Assertion")).replace(f' xmlns:ds="{saml.DS}"'.encode(), b"")
        tree = by_hand(plain=plain)
        content = saml.to_bytes(tree).replace(b"<saml:EncryptedAssertion", b'<saml:EncryptedAssertion xmlns:ds="urn:x"')
        with pytest.raises(SamlRefused) as caught:
            read_response(content, WITH_KEYS)
        assert caught.value.code == "saml_shape"

    def test_a_prefix_that_nothing_declares_is_refused(self) -> None:
        plain = saml.to_bytes(saml.the(signed_tree(), "Assertion")).replace(f' xmlns:ds="{saml.DS}"'.encode(), b"")

        assert refusal_of(by_hand(plain=plain)).code == "saml_xml"


@each(
    ("how", "cure"),
    [
        ({"content": encryption.CBC256}, "AES256-GCM"),
        ({"content": f"{ENC11}aes192-gcm"}, "AES256-GCM"),
        ({"content": f"{ENC}tripledes-cbc"}, "AES256-GCM"),
        ({"transport": encryption.RSA15}, "RSA-OAEP"),
        ({"digest": "http://www.w3.org/2001/04/xmldsig-more#md5"}, "RSA-OAEP with SHA-256"),
        ({"transport": OAEP11, "mask": f"{ENC11}mgf1md5"}, "RSA-OAEP with SHA-256"),
    ],
)
def test_other_algorithms_are_refused_with_the_one_to_choose(how: dict[str, Any], cure: str) -> None:
    refused = refusal_of(by_hand(**how))

    assert refused.code == "saml_encryption_algorithm"
    assert cure in refused.message


def flip(local: str, at: int) -> Any:
    """A change of one bit of what is encrypted, of the data or of its key."""

    def change(around: Any) -> None:
        value = saml.the(around, local).find(f"{{{ENC}}}CipherData")[0]
        content = bytearray(base64.b64decode(value.text))
        content[at] ^= 1
        value.text = base64.b64encode(content).decode()

    return change


def cut(local: str, to: int) -> Any:
    def change(around: Any) -> None:
        value = saml.the(around, local).find(f"{{{ENC}}}CipherData")[0]
        value.text = base64.b64encode(base64.b64decode(value.text)[:to]).decode()

    return change


@each(
    "how",
    [
        *({"change": flip("EncryptedData", at)} for at in (0, 12, 500, -1)),
        *({"change": flip("EncryptedKey", at)} for at in (1, 100, -1)),
        *({"change": cut("EncryptedData", to)} for to in (0, 5, 12, 20, 28, 100)),
        *({"change": cut("EncryptedKey", to)} for to in (0, 16, 255)),
        {"secret": b"k" * 16},
        {"content": GCM128, "secret": b"k" * 32},
        {"secret": b""},
        {"digest": SHA256, "change": lambda around: saml.the(around, "DigestMethod").set("Algorithm", SHA1)},
    ],
)
def test_ciphertext_that_does_not_open_is_one_refusal(how: dict[str, Any]) -> None:
    """Nobody learns whether it was the key, its length, its padding or the content."""
    if "secret" in how and len(how["secret"]) not in (16, 32):
        how = {**how, "change": flip("EncryptedKey", 3)}
        how.pop("secret")
    refused = refusal_of(by_hand(**how))

    other = refusal_of(encryption.encrypt_by_hand(signed_tree(), OTHER.public_key()))
    assert [refused.code, refused.message, refused.expected, refused.found] == [
        other.code,
        other.message,
        other.expected,
        other.found,
    ]


def twice(local: str) -> Any:
    def change(around: Any) -> None:
        element = saml.the(around, local)
        again = copy.deepcopy(element)
        for one in again.iter():
            one.attrib.pop("Id", None)
        element.addnext(again)

    return change


def with_child(local: str, namespace: str, name: str) -> Any:
    return lambda around: saml.add(saml.the(around, local), namespace, name)


@each(
    "change",
    [
        *(twice(local) for local in ("EncryptedData", "EncryptedKey", "CipherData", "CipherValue", "KeyInfo")),
        lambda around: saml.the(around, "EncryptedKey").getparent().remove(saml.the(around, "EncryptedKey")),
        lambda around: saml.the(around, "EncryptedData").set("Type", f"{ENC}Content"),
        lambda around: saml.the(around, "EncryptedData").set("MimeType", "text/xml"),
        with_child("EncryptionMethod", ENC, "KeySize"),
        lambda around: saml.add(around.findall(f".//{{{ENC}}}EncryptionMethod")[1], ENC, "OAEPparams", "AAAA"),
        with_child("CipherData", ENC, "CipherReference"),
        lambda around: setattr(saml.the(around, "CipherValue"), "text", "not base64!"),
        lambda around: setattr(saml.the(around, "CipherData"), "text", "text"),
        with_child("X509Data", saml.SAML, "Assertion"),
        with_child("X509Data", saml.DS, "Signature"),
        with_child("X509Data", ENC, "EncryptedKey"),
        with_child("X509Data", saml.SAML, "EncryptedID"),
        with_child("EncryptedKey", ENC, "CarriedKeyName"),
    ],
)
def test_another_shape_is_refused(change: Any) -> None:
    assert refusal_of(by_hand(change=change)).code == "saml_shape"


@each("local", ["RetrievalMethod", "DataReference"])
def test_a_reference_to_something_else_is_refused(local: str) -> None:
    for uri in ("#_other", "", "https://example.com/key"):
        refused = refusal_of(
            by_hand(beside=True, change=lambda around, uri=uri: saml.the(around, local).set("URI", uri))
        )
        assert refused.code == "saml_shape"


def test_an_id_that_is_there_twice_is_refused() -> None:
    change = lambda around: saml.the(around, "EncryptedData").set("Id", GENUINE.assertion_id)  # noqa: E731
    assert refusal_of(by_hand(change=change)).code == "saml_id_twice"


def test_a_second_assertion_is_refused_wherever_it_stands() -> None:
    for inner in (True, False):
        tree = signed_tree()
        assertion = saml.the(tree, "Assertion")
        forged = copy.deepcopy(assertion)
        forged.set("ID", "_forged")
        forged.remove(forged[1])
        encrypted = encryption.encrypt(tree, CERTIFICATE)
        around = saml.the(encrypted, "EncryptedAssertion")
        (around.addprevious if inner else around.addnext)(forged)
        assert refusal_of(encrypted).code == "saml_assertion_twice"
    double = by_hand()
    again = copy.deepcopy(saml.the(double, "EncryptedAssertion"))
    double.append(again)
    assert refusal_of(double).code == "saml_id_twice"
    for one in again.iter():
        one.attrib.pop("Id", None)
    assert refusal_of(double).code == "saml_encrypted"


def test_an_encrypted_assertion_of_another_namespace_is_none() -> None:
    tree = by_hand()
    saml.the(tree, "EncryptedAssertion").tag = f"{{{saml.SAMLP}}}EncryptedAssertion"
    assert refusal_of(tree).code == "saml_encrypted"


@each(
    ("plain", "code"),
    [
        (b"", "saml_xml"),
        (b"text", "saml_xml"),
        (b"<!DOCTYPE x><x/>", "saml_xml"),
        (b"<a:Assertion/>", "saml_xml"),
        (b"<x>" * 40 + b"</x>" * 40, "saml_xml"),
        (b"<x/>" * 2, "saml_xml"),
        (b"\xff\xfe<\x00", "saml_xml"),
        (b"<x>" + b"<y/>" * 2_000 + b"</x>", "saml_xml"),
        (b"<saml:Response/>", "saml_shape"),
        (b"<saml:EncryptedAssertion/>", "saml_shape"),
    ],
)
def test_plaintext_is_read_as_strictly_as_the_answer(plain: bytes, code: str) -> None:
    refused = refusal_of(by_hand(plain=plain))

    assert refused.code == code
    # Nothing of what was encrypted is told to anybody who brings it.
    assert plain.decode("latin-1") == "" or plain.decode("latin-1")[:40] not in refused.found + refused.message


@each("local", ["EncryptedID", "EncryptedAttribute"])
def test_an_encrypted_part_of_what_opened_is_refused(local: str) -> None:
    tree = GENUINE.tree()
    place = {"EncryptedID": "Subject", "EncryptedAttribute": "AttributeStatement"}[local]
    saml.add(saml.the(tree, place), saml.SAML, local)
    saml.sign(saml.the(tree, "Assertion"), KEY)

    refused = refusal_of(encryption.encrypt(tree, CERTIFICATE))

    assert refused.code == "saml_encrypted"
    assert "whole assertion" in refused.message

"""Encrypts assertions as identity providers do: by xmlsec (libxml2), and step by step in every way that it would not.

Nothing of the product is read here.
"""

import copy
import os
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import xmlsec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, padding, serialization
from cryptography.hazmat.primitives.asymmetric import padding as asymmetric
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.x509.oid import NameOID
from lxml import etree

from tests.outside.saml_answers import DS, ENC, SAML, add, the

ENC11 = "http://www.w3.org/2009/xmlenc11#"
OAEP, OAEP11, RSA15 = f"{ENC}rsa-oaep-mgf1p", f"{ENC11}rsa-oaep", f"{ENC}rsa-1_5"
GCM128, GCM256, CBC256 = f"{ENC11}aes128-gcm", f"{ENC11}aes256-gcm", f"{ENC}aes256-cbc"
SHA1, SHA256 = f"{DS}sha1", f"{ENC}sha256"
MGF_SHA256 = f"{ENC11}mgf1sha256"
_HASHES: dict[str | None, hashes.HashAlgorithm] = {
    None: hashes.SHA1(),
    SHA1: hashes.SHA1(),
    SHA256: hashes.SHA256(),
    MGF_SHA256: hashes.SHA256(),
}
type Tree = Any
type Change = Callable[[Tree], object]


def new_key() -> rsa.RSAPrivateKey:
    """A key of a service."""
    return rsa.generate_private_key(65537, 2048)


def certificate_of(key: rsa.RSAPrivateKey) -> x509.Certificate:
    """Make the certificate that a service publishes."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "service")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    now = datetime.now(UTC)
    made = made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=30))
    return made.sign(key, hashes.SHA256())


def encrypt(
    response: Tree,
    certificate: x509.Certificate,
    *,
    content: str = GCM256,
    transport: str = OAEP,
    digest: str | None = None,
    mask: str | None = None,
) -> Tree:
    """Have xmlsec encrypt the assertion of a response in its place; the tree is changed."""
    assertion = _wrap(response)
    template = xmlsec.template.encrypted_data_create(
        response, xmlsec.Transform.AES256, type=xmlsec.EncryptionType.ELEMENT, ns="xenc"
    )
    template[0].set("Algorithm", content)
    xmlsec.template.encrypted_data_ensure_cipher_value(template)
    information = xmlsec.template.encrypted_data_ensure_key_info(template, ns="dsig")
    key = xmlsec.template.add_encrypted_key(information, xmlsec.Transform.RSA_OAEP)
    xmlsec.template.encrypted_data_ensure_cipher_value(key)
    method = key.find(f"{{{ENC}}}EncryptionMethod")
    method.set("Algorithm", transport)
    _say_hashes(method, digest, mask)
    manager = xmlsec.KeysManager()
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    manager.add_key(xmlsec.Key.from_memory(pem, xmlsec.constants.KeyDataFormatCertPem))
    context = xmlsec.EncryptionContext(manager)
    bits = 128 if "aes128" in content else 256
    context.key = xmlsec.Key.generate(xmlsec.constants.KeyDataAes, bits, xmlsec.constants.KeyDataTypeSession)
    context.encrypt_xml(template, assertion)
    return response


def encrypt_by_hand(
    response: Tree,
    public: rsa.RSAPublicKey,
    *,
    content: str = GCM256,
    transport: str = OAEP,
    digest: str | None = None,
    mask: str | None = None,
    plain: bytes | None = None,
    secret: bytes | None = None,
    beside: bool = False,
    change: Change | None = None,
) -> Tree:
    """The same step by step, and of whatever bytes; `beside`: the key stands after the data, each naming the other."""
    assertion = _wrap(response)
    around = assertion.getparent()
    plain = etree.tostring(assertion, with_tail=False) if plain is None else plain
    around.remove(assertion)
    secret = os.urandom(16 if "aes128" in content else 32) if secret is None else secret
    data = add(around, ENC, "EncryptedData", Id="_data", Type=f"{ENC}Element")
    add(data, ENC, "EncryptionMethod", Algorithm=content)
    information = add(data, DS, "KeyInfo")
    if beside:
        add(information, DS, "RetrievalMethod", URI="#_key", Type=f"{ENC}EncryptedKey")
    add(add(data, ENC, "CipherData"), ENC, "CipherValue", b64encode(_ciphertext(content, secret, plain)).decode())
    key = add(around if beside else information, ENC, "EncryptedKey", Id="_key", Recipient="somebody")
    method = add(key, ENC, "EncryptionMethod", Algorithm=transport)
    _say_hashes(method, digest, mask)
    add(add(add(key, DS, "KeyInfo"), DS, "X509Data"), DS, "X509Certificate", "AAAA")
    wrapped = public.encrypt(secret, _padding(transport, digest, mask))
    add(add(key, ENC, "CipherData"), ENC, "CipherValue", b64encode(wrapped).decode())
    if beside:
        add(add(key, ENC, "ReferenceList"), ENC, "DataReference", URI="#_data")
    if change:
        change(around)
    return response


def decrypt(response: Tree, key: rsa.RSAPrivateKey) -> bytes:
    """The second opinion: what xmlsec finds in a response, with the key."""
    response = copy.deepcopy(response)
    key_of_content = the(response, "EncryptedKey")
    for hint in key_of_content.findall(f"{{{DS}}}KeyInfo"):
        # The library would look for that certificate.
        key_of_content.remove(hint)
    manager = xmlsec.KeysManager()
    form = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    manager.add_key(xmlsec.Key.from_memory(pem, xmlsec.KeyFormat.PEM))
    return bytes(etree.tostring(xmlsec.EncryptionContext(manager).decrypt(the(response, "EncryptedData"))))


def _wrap(response: Tree) -> Tree:
    """The assertion, in an EncryptedAssertion that stands where it stood."""
    assertion = the(response, "Assertion")
    around = etree.Element(f"{{{SAML}}}EncryptedAssertion", nsmap={"saml": SAML})
    assertion.getparent().replace(assertion, around)
    around.append(assertion)
    return assertion


def _say_hashes(method: Tree, digest: str | None, mask: str | None) -> None:
    if digest:
        add(method, DS, "DigestMethod", Algorithm=digest)
    if mask:
        add(method, ENC11, "MGF", Algorithm=mask)


def _padding(transport: str, digest: str | None, mask: str | None) -> Any:
    if transport == RSA15:
        return asymmetric.PKCS1v15()
    known = hashes.SHA1()
    return asymmetric.OAEP(asymmetric.MGF1(_HASHES.get(mask, known)), _HASHES.get(digest, known), None)


def _ciphertext(content: str, secret: bytes, plain: bytes) -> bytes:
    if content == CBC256:
        padder, start = padding.ANSIX923(128).padder(), os.urandom(16)
        encryptor = Cipher(algorithms.AES(secret), modes.CBC(start)).encryptor()
        return start + encryptor.update(padder.update(plain) + padder.finalize()) + encryptor.finalize()
    nonce = os.urandom(12)
    return nonce + AESGCM(secret).encrypt(nonce, plain, None)

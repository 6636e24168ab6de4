"""The certificates of a SAML identity provider, as an administrator pins them: what is taken, and what they show.

Only the key in a certificate is used. Nothing is asked of who signed it, and its end is a warning: the administrator
pinned this one, and a sign-on that stops at midnight helps no one.
"""

import binascii
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    SECP384R1,
    SECP521R1,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from custody.identity.saml_refusals import plain
from custody.kit.errors import Invalid

MAX_CERTIFICATES: Final = 5
MAX_CHARACTERS: Final = 16 * 1024
MIN_RSA_BITS: Final = 2048
MAX_RSA_BITS: Final = 8192
RSA_EXPONENT: Final = 65_537
# As Keycloak and metadata have it: the base64 alone.
_BARE = re.compile(r"[A-Za-z0-9+/=\s]++\Z")
_LINE: Final = 64
_PEM = re.compile(
    r"-----BEGIN CERTIFICATE-----[ \t]*+\r?\n([A-Za-z0-9+/=\r\n]++)-----END CERTIFICATE-----\s*+\Z",
)
type Key = RSAPublicKey | EllipticCurvePublicKey


class IdpCertificateInvalid(Invalid):
    """A certificate of the identity provider cannot be used."""


class Certificate(msgspec.Struct, frozen=True):
    """A pinned certificate: its key, and what a page shows of it."""

    subject: str
    not_after: datetime
    fingerprint: str
    public_key: Key


def read_certificates(pems: Sequence[str]) -> tuple[Certificate, ...]:
    """One to five certificates, each from a PEM text of its own; IdpCertificateInvalid says which is wrong and why."""
    if not 1 <= len(pems) <= MAX_CERTIFICATES:
        raise IdpCertificateInvalid(
            f"idpCertPems must have 1 to {MAX_CERTIFICATES} certificates and has {len(pems)}; copy those that the "
            "identity provider signs with now and next."
        )
    return tuple(_read(f"idpCertPems[{place}]", pem) for place, pem in enumerate(pems))


def read_usable(pems: Sequence[str]) -> tuple[Certificate, ...]:
    """Those of stored certificates that can be used, at least one; IdpCertificateInvalid says why the first cannot.

    Each was good when it was stored. One that a later release refuses does not keep the others from verifying.
    """
    if not 1 <= len(pems) <= MAX_CERTIFICATES:
        return read_certificates(pems)
    found: list[Certificate] = []
    refused: IdpCertificateInvalid | None = None
    for pem in pems:
        try:
            found += read_certificates([pem])
        except IdpCertificateInvalid as problem:
            refused = refused or problem
    if not found:
        raise refused or IdpCertificateInvalid
    return tuple(found)


def write_pem(text: str) -> str:
    """A certificate that is sent as base64 alone, as PEM; any other text as it is."""
    if not text.strip() or not _BARE.match(text):
        return text
    plain = "".join(text.split())
    lines = "\n".join(plain[at : at + _LINE] for at in range(0, len(plain), _LINE))
    return f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"


def _read(where: str, pem: str) -> Certificate:
    if len(pem) > MAX_CHARACTERS:
        raise IdpCertificateInvalid(f"{where} is longer than {MAX_CHARACTERS // 1024} KiB; send one certificate only.")
    if "PRIVATE KEY" in pem.upper():
        raise IdpCertificateInvalid(
            f"{where} contains a private key; send only the certificate, and replace that key, for it was shown."
        )
    match = _PEM.match(pem.lstrip())
    if match is None:
        raise IdpCertificateInvalid(
            f"{where} must be exactly one block from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----, with "
            "the base64 between them on lines of its own, or that base64 alone; send several certificates as several "
            "texts."
        )
    try:
        der = binascii.a2b_base64(re.sub(r"[\r\n]", "", match[1]), strict_mode=True)
        found = x509.load_der_x509_certificate(der)
        key, subject = found.public_key(), found.subject.rfc4514_string()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise IdpCertificateInvalid(f"{where} is no X.509 certificate that can be read; export it again.") from None
    return Certificate(
        subject=plain(subject),
        not_after=found.not_valid_after_utc,
        fingerprint=found.fingerprint(SHA256()).hex(),
        public_key=_usable(where, key),
    )


def _usable(where: str, key: object) -> Key:
    if isinstance(key, RSAPublicKey):
        if not MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS:
            raise IdpCertificateInvalid(
                f"{where} has an RSA key of {key.key_size} bits; it must have {MIN_RSA_BITS} to {MAX_RSA_BITS}: make "
                "a new signing key at the identity provider."
            )
        if key.public_numbers().e != RSA_EXPONENT:
            raise IdpCertificateInvalid(
                f"{where} has an RSA key whose exponent is not {RSA_EXPONENT}: make a new signing key at the identity "
                "provider."
            )
        return key
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1 | SECP384R1 | SECP521R1):
        return key
    raise IdpCertificateInvalid(
        f"{where} has a key of another kind than RSA, P-256, P-384 or P-521; make such a signing key at the identity "
        "provider."
    )

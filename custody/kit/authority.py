"""The proxy's own certificate authority, with which it speaks TLS to agents.

Made once, on a machine of its own, and never replaced: every program that trusts it would have to be told again.
Anyone who has the key can pretend to be any host towards those programs, so it is the proxy's alone.
"""

import os
from datetime import timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from custody.kit import clock

_YEARS = 10
# Machines whose clock is behind must not refuse a certificate that was made just now.
_BACK = timedelta(days=1)


class AuthorityBroken(ValueError):
    """The certificate authority of the proxy cannot be used."""


def ensure(certificate: Path, key: Path, owner: int | None = None) -> None:
    """Make the authority unless it is there: the certificate for everybody, the key for `owner` (or us) alone.

    Raises AuthorityBroken with the cure when only one of the two files exists, they do not belong together, or others
    can read the key.
    """
    if certificate.exists() and key.exists():
        _insist_on_pair(certificate, key)
        return
    if certificate.exists() or key.exists():
        there, lost = (certificate, key) if certificate.exists() else (key, certificate)
        raise AuthorityBroken(
            f"{there} exists, but {lost} is missing: restore it, or remove {there} to create a new certificate "
            "authority, which every client must then trust"
        )
    certificate_pem, key_pem = _make()
    # The key first: a certificate that lies about alone would already be trusted by somebody.
    _write(key, key_pem, 0o600, owner)
    _write(certificate, certificate_pem, 0o644, None)


def _make() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # A number in the name keeps apart, in lists of trusted authorities, the ones of several machines.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Custody proxy CA {identifier.digest[:4].hex()}")])
    now = clock.now()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACK)
        .not_valid_after(now + timedelta(days=365 * _YEARS))
        # Length 0: it signs hosts, and nobody it signs can sign others.
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_only_signs(), critical=True)
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _only_signs() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def _insist_on_pair(certificate: Path, key: Path) -> None:
    if key.stat().st_mode & 0o077:
        raise AuthorityBroken(f"others can read {key}: chmod 0600 {key}")
    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes()).public_key()
        ours = serialization.load_pem_private_key(key.read_bytes(), password=None).public_key()
    except (ValueError, TypeError) as problem:
        raise AuthorityBroken(f"{certificate} and {key} are not a certificate and a key without password") from problem
    if found != ours:
        raise AuthorityBroken(f"{key} is not the key of {certificate}: put the right one back, or remove both")


def _write(path: Path, content: bytes, mode: int, owner: int | None) -> None:
    """Write in one step: readers see nothing or the whole file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        if owner is not None:
            os.fchown(handle, owner, owner)
        os.fchmod(handle, mode)
        file.write(content)
        file.flush()
        os.fsync(handle)
    draft.replace(path)

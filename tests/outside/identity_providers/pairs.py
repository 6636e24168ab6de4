"""The signing key of an identity provider and its self-signed certificate, as files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

Algorithm = Literal["rsa", "ec"]


class Pair(msgspec.Struct, frozen=True):
    """Both as PEM files."""

    key_file: Path
    certificate_file: Path

    @property
    def certificate(self) -> str:
        """Certificate that an administrator pastes into the configuration."""
        return self.certificate_file.read_text()


def make_pair(folder: Path, algorithm: Algorithm = "rsa", bits: int = 2048) -> Pair:
    """Make a new key and a certificate that it signed itself, good since yesterday and for a month."""
    key = rsa.generate_private_key(65537, bits) if algorithm == "rsa" else ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "idp.test")])
    began = datetime.now(UTC) - timedelta(days=1)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + timedelta(days=30))
        .sign(key, hashes.SHA256())
    )
    pair = Pair(folder / "key.pem", folder / "certificate.pem")
    pair.key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    pair.certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return pair

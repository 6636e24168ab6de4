"""A certificate authority of the tests' own, and the good and bad certificates that upstreams show."""

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_SIGNS = x509.KeyUsage(
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
_SERVER, _CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
NAMES = ("localhost", "upstream.test", "*.upstream.test", "127.0.0.1")


class Authority:
    """Signs leaves into a folder; its own certificate is `ca.pem` there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ca_file = folder / "ca.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name_of("Test upstreams CA")
        self._identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        made = (
            _begin(self._name, self._name, self._key, timedelta())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_SIGNS, critical=True)
            .add_extension(self._identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.ca_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def leaf(self, name: str, *hosts: str, age: timedelta = timedelta(), self_signed: bool = False) -> Path:
        """A file with a certificate for these hosts, and its key; with an age of more than a week it is expired.

        Without any host it is a client's, by its name.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._identifier)
        begun = (
            _begin(_name_of(name), _name_of(name) if self_signed else self._name, key, age)
            .add_extension(x509.ExtendedKeyUsage([_SERVER if hosts else _CLIENT]), critical=False)
            .add_extension(issuer, critical=False)
        )
        if hosts:
            names = x509.SubjectAlternativeName(list(map(_subject, hosts)))
            begun = begun.add_extension(names, critical=False)
        made = begun.sign(key if self_signed else self._key, hashes.SHA256())
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file = self._folder / f"{name}.pem"
        file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
        return file


def _begin(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, age: timedelta
) -> x509.CertificateBuilder:
    began = datetime.now(UTC) - timedelta(days=1) - age
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + timedelta(days=7))
    )


def _subject(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _name_of(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

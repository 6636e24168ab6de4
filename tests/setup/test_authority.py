"""The proxy's certificate authority: made once, its key for one uid alone, never replaced."""

import os
import stat
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from custody.kit import authority, clock
from custody.kit.authority import AuthorityBroken


def files(folder: Path) -> tuple[Path, Path]:
    return folder / "proxy-ca.pem", folder / "proxy-ca.key"


def test_it_signs_hosts_and_nothing_that_signs_others(tmp_path: Path) -> None:
    certificate, key = files(tmp_path)

    authority.ensure(certificate, key)

    made = x509.load_pem_x509_certificate(certificate.read_bytes())
    basic = made.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = made.extensions.get_extension_for_class(x509.KeyUsage)
    assert basic.critical
    assert (basic.value.ca, basic.value.path_length) == (True, 0)
    assert (usage.value.key_cert_sign, usage.value.crl_sign, usage.value.digital_signature) == (True, True, False)
    assert made.subject == made.issuer
    assert made.not_valid_after_utc - clock.now() > timedelta(days=3640)
    public = made.public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert isinstance(public.curve, ec.SECP256R1)
    assert made.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest


def test_the_certificate_stands_alone_in_its_file(tmp_path: Path) -> None:
    certificate, key = files(tmp_path)

    authority.ensure(certificate, key)

    lines = certificate.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----")
    assert sum(line.startswith("-----") for line in lines) == 2
    assert serialization.load_pem_private_key(key.read_bytes(), None)


def test_two_machines_have_two_names(tmp_path: Path) -> None:
    names = set()
    for machine in ("a", "b"):
        (tmp_path / machine).mkdir()
        authority.ensure(*files(tmp_path / machine))
        names.add(x509.load_pem_x509_certificate(files(tmp_path / machine)[0].read_bytes()).subject.rfc4514_string())

    assert len(names) == 2
    assert all(name.startswith("CN=Custody proxy CA ") for name in names)


def test_everybody_reads_the_certificate_and_one_the_key(tmp_path: Path) -> None:
    certificate, key = files(tmp_path)
    owner = 64714 if os.geteuid() == 0 else os.geteuid()

    authority.ensure(certificate, key, owner)

    assert stat.S_IMODE(certificate.stat().st_mode) == 0o644
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.stat().st_uid == owner
    assert sorted(file.name for file in tmp_path.iterdir()) == ["proxy-ca.key", "proxy-ca.pem"]


def test_an_existing_authority_is_kept(tmp_path: Path) -> None:
    certificate, key = files(tmp_path)
    authority.ensure(certificate, key)
    before = certificate.read_bytes(), key.read_bytes()

    authority.ensure(certificate, key)

    assert (certificate.read_bytes(), key.read_bytes()) == before


@pytest.mark.parametrize("lost", [0, 1])
def test_half_of_it_is_refused_with_the_cure(tmp_path: Path, lost: int) -> None:
    pair = files(tmp_path)
    authority.ensure(*pair)
    pair[lost].unlink()

    with pytest.raises(AuthorityBroken, match=f"{pair[1 - lost]} exists, but {pair[lost]} is missing: restore it, or"):
        authority.ensure(*pair)

    assert not pair[lost].exists()


def test_a_key_of_another_authority_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    certificate, _ = files(tmp_path)
    authority.ensure(*files(tmp_path))
    authority.ensure(*files(tmp_path / "other"))

    with pytest.raises(AuthorityBroken, match="is not the key of"):
        authority.ensure(certificate, tmp_path / "other" / "proxy-ca.key")


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    certificate, key = files(tmp_path)
    authority.ensure(certificate, key)
    key.chmod(0o640)

    with pytest.raises(AuthorityBroken, match=f"chmod 0600 {key}"):
        authority.ensure(certificate, key)


def test_a_file_that_is_none_is_refused_without_showing_it(tmp_path: Path) -> None:
    certificate, key = files(tmp_path)
    authority.ensure(certificate, key)
    certificate.write_text("not a certificate: hunter2")

    with pytest.raises(AuthorityBroken) as refused:
        authority.ensure(certificate, key)

    assert "hunter2" not in str(refused.value)

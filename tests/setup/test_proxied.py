"""The environment of a program under `custody run`: proxy, certificates, token, and no key of Custody."""

import ssl
from pathlib import Path

import msgspec
import pytest

from custody.kit import authority
from custody.kit.environment import BadSetting
from ops import proxied
from ops.proxied import Access, environment_for

TOKEN = "header.claims.signature"
ACCESS = Access("buyer", TOKEN, "http://proxy.internal:8080", "https://custody.internal")
PROXY = f"http://agent:{TOKEN}@proxy.internal:8080"
REPLACING = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "NIX_SSL_CERT_FILE",
    "npm_config_cafile",
)


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    """The proxy's certificate, as a machine with programs has it."""
    authority.ensure(tmp_path / "proxy-ca.pem", tmp_path / "proxy-ca.key")
    return tmp_path / "proxy-ca.pem"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder in which bundles are written."""
    (tmp_path / "bundles").mkdir()
    return tmp_path / "bundles"


def test_every_spelling_of_the_proxy_carries_the_token(ca: Path, folder: Path) -> None:
    found = environment_for({"HTTPS_PROXY": "http://company:3128"}, ACCESS, ca, folder)

    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        assert found[name] == PROXY
    assert found["NODE_USE_ENV_PROXY"] == "1"


def test_a_program_learns_who_it_is_and_where_we_are(ca: Path, folder: Path) -> None:
    found = environment_for({"PATH": "/bin", "GREETING": "hi"}, ACCESS, ca, folder)

    assert {name: value for name, value in found.items() if name.startswith("SERVICE_")} == {
        "SERVICE_URL": "https://custody.internal",
        "SERVICE_PROXY_URL": "http://proxy.internal:8080",
        "SERVICE_AGENT_ID": "buyer",
        "SERVICE_AGENT_TOKEN": TOKEN,
    }
    assert (found["PATH"], found["GREETING"]) == ("/bin", "hi")


@pytest.mark.parametrize(
    "name",
    [
        "SERVICE_KEY",
        "SERVICE_KEY_FILE",
        "SERVICE_MASTER_KEY_FILE",
        "SERVICE_PLATFORM_KEY_FILE",
        "SERVICE_PROXY_CA_KEY_FILE",
        "SERVICE_DATABASE_URL",
        "SERVICE_DATABASE_URL_API",
        "SERVICE_DATABASE_URL_SIGNER",
        "SERVICE_DATABASE_URL_PROXY",
        "SERVICE_DATABASE_URL_SCHEDULER",
        "SERVICE_SMTP_URL",
        "SERVICE_SMS_URL",
        "SERVICE_RPC_URL_1",
        "SERVICE_TENANT_OIDC_SECRET_ACME",
        "SERVICE_RATE_LIMIT_STORE",
        "SERVICE_X_CLIENT_SECRET",
        "SERVICE_GOOGLE_CLIENT_SECRET",
        "SERVICE_GOOGLE_CLIENT_ID",
    ],
)
def test_no_key_of_custody_reaches_a_program(ca: Path, folder: Path, name: str) -> None:
    found = environment_for({name: "precious", "SERVICE_HOME": "/h"}, ACCESS, ca, folder)

    assert name not in found
    assert "precious" not in found.values()


def test_a_programs_own_keys_stay(ca: Path, folder: Path) -> None:
    own = {"GITHUB_CLIENT_SECRET": "its own", "GITHUB_CLIENT_ID": "it", "CLIENT_SECRET": "its other"}

    assert environment_for(own, ACCESS, ca, folder).items() >= own.items()


@pytest.mark.parametrize(
    ("given", "bypass"),
    [
        ({}, "localhost,127.0.0.1,::1,custody.internal,proxy.internal"),
        ({"NO_PROXY": "a.test, b.test"}, "a.test,b.test,localhost,127.0.0.1,::1,custody.internal,proxy.internal"),
        (
            {"NO_PROXY": "a.test", "no_proxy": "localhost,c.test"},
            "a.test,localhost,c.test,127.0.0.1,::1,custody.internal,proxy.internal",
        ),
        # Then nothing would go through the proxy.
        ({"no_proxy": "*"}, "localhost,127.0.0.1,::1,custody.internal,proxy.internal"),
    ],
)
def test_hosts_that_the_caller_calls_directly_stay_so(
    ca: Path, folder: Path, given: dict[str, str], bypass: str
) -> None:
    found = environment_for(given, ACCESS, ca, folder)

    assert found["NO_PROXY"] == found["no_proxy"] == bypass


def test_replaced_trust_stores_keep_the_callers_own_authorities(ca: Path, folder: Path) -> None:
    authority.ensure(folder / "company.pem", folder / "company.key")
    given = {"SSL_CERT_FILE": str(folder / "company.pem"), "REQUESTS_CA_BUNDLE": "/elsewhere"}

    found = environment_for(given, ACCESS, ca, folder)

    (bundle,) = {found[name] for name in REPLACING}
    assert Path(bundle).read_text() == (folder / "company.pem").read_text() + ca.read_text()
    assert len(ssl.create_default_context(cafile=bundle).get_ca_certs()) == 2


def test_without_a_choice_of_the_callers_the_usual_ones_are_kept(ca: Path, folder: Path) -> None:
    found = environment_for({}, ACCESS, ca, folder)

    bundle = Path(found["SSL_CERT_FILE"]).read_text()
    assert bundle.endswith(ca.read_text())
    assert bundle.count("BEGIN CERTIFICATE") > 50


def test_added_trust_stores_hold_only_our_authority(ca: Path, folder: Path) -> None:
    found = environment_for({}, ACCESS, ca, folder)

    assert found["NODE_EXTRA_CA_CERTS"] == found["DENO_CERT"] == str(ca)


def test_an_addition_of_the_callers_stays_beside_ours(ca: Path, folder: Path) -> None:
    authority.ensure(folder / "company.pem", folder / "company.key")

    found = environment_for({"NODE_EXTRA_CA_CERTS": str(folder / "company.pem")}, ACCESS, ca, folder)

    assert Path(found["NODE_EXTRA_CA_CERTS"]).read_text() == (folder / "company.pem").read_text() + ca.read_text()
    assert found["DENO_CERT"] == str(ca)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot read"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "contains no certificate"),
        (b"", "contains no certificate"),
        (b"\xff", "contains no certificate"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "contains a private key"),
    ],
)
def test_a_file_that_programs_cannot_trust_is_refused(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    file = tmp_path / "given.pem"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(BadSetting, match=complaint):
        proxied.certificates(file)


def test_a_missing_file_of_the_callers_is_named_by_its_variable(ca: Path, folder: Path) -> None:
    with pytest.raises(BadSetting, match=r"SSL_CERT_FILE: cannot read /nowhere\.pem"):
        environment_for({"SSL_CERT_FILE": "/nowhere.pem"}, ACCESS, ca, folder)


def test_the_token_does_not_show_where_access_is_printed() -> None:
    assert TOKEN not in repr(ACCESS)
    assert TOKEN not in repr([ACCESS, msgspec.structs.astuple(ACCESS)[0]])

"""The environment in which an unchanged program calls APIs through the proxy.

Every client reads other names. Of the ones for certificates some replace what the client trusts, so they get everything
trusted so far and ours; some add to it, so they get ours.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import certifi
import msgspec

from custody.kit.environment import BadSetting
from ops import children

_PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_REPLACING = (
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
    # Before a `cafile` of its configuration, which would make it forget what Node trusts.
    "npm_config_cafile",
)
_ADDING = ("NODE_EXTRA_CA_CERTS", "DENO_CERT")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Debian, Fedora, SUSE, Alpine.
_SYSTEM = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


class Access(msgspec.Struct, frozen=True):
    """As whom a program acts, and where it finds proxy and API."""

    agent: str
    token: str
    proxy_url: str
    api_url: str

    def __repr__(self) -> str:
        return f"Access({self.agent})"


def environment_for(given: Mapping[str, str], access: Access, ca_file: Path, folder: Path) -> dict[str, str]:
    """The caller's environment with proxy, certificates and token, and without any of Custody's keys.

    Bundles of certificates are written into `folder`, which must be private and outlive the program.
    """
    found = {name: value for name, value in given.items() if not children.is_reserved(name)}
    found |= {spelled: _with_token(access) for name in _PROXY for spelled in (name, name.lower())}
    bypass = _bypassing(given, access)
    found |= {"NO_PROXY": bypass, "no_proxy": bypass, "NODE_USE_ENV_PROXY": "1"}
    bundle = _write(folder / "trusted.pem", trust_store(given), certificates(ca_file))
    found |= dict.fromkeys(_REPLACING, str(bundle))
    found |= {name: str(_add(name, given, ca_file, folder)) for name in _ADDING}
    return found | {
        "SERVICE_URL": access.api_url,
        "SERVICE_PROXY_URL": access.proxy_url,
        "SERVICE_AGENT_ID": access.agent,
        "SERVICE_AGENT_TOKEN": access.token,
    }


def certificates(ca_file: Path) -> bytes:
    """The proxy's certificate; raises BadSetting when the file is not one, or holds its key too."""
    try:
        content = ca_file.read_bytes()
    except OSError as problem:
        raise BadSetting(
            "SERVICE_PROXY_CA_FILE", f"cannot read {ca_file}: {problem.strerror}; copy the proxy's proxy-ca.pem here"
        ) from None
    if b"PRIVATE KEY" in content:
        raise BadSetting(
            "SERVICE_PROXY_CA_FILE", f"{ca_file} contains a private key; programs need only the certificate"
        )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=content.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise BadSetting("SERVICE_PROXY_CA_FILE", f"{ca_file} contains no certificate in PEM form") from None
    return content


def trust_store(given: Mapping[str, str]) -> bytes:
    """The certificates that a program trusts so far: the caller's own, else the system's, else a usual set."""
    if own := given.get("SSL_CERT_FILE", "").strip():
        return _read("SSL_CERT_FILE", own)
    system = (ssl.get_default_verify_paths().openssl_cafile, *_SYSTEM)
    return Path(next((name for name in system if Path(name).is_file()), certifi.where())).read_bytes()


def _with_token(access: Access) -> str:
    parts = urlsplit(access.proxy_url)
    return urlunsplit(parts._replace(netloc=f"agent:{access.token}@{parts.netloc}"))


def _bypassing(given: Mapping[str, str], access: Access) -> str:
    """The hosts that are called directly: the caller's, this machine, and our own two, which take the token itself."""
    theirs = [name.strip() for variable in ("NO_PROXY", "no_proxy") for name in given.get(variable, "").split(",")]
    ours = [urlsplit(url).hostname or "" for url in (access.api_url, access.proxy_url)]
    # With `*` nothing would go through the proxy, and then there was no sense in asking for it.
    return ",".join(dict.fromkeys(name for name in (*theirs, *_LOOPBACK, *ours) if name not in {"", "*"}))


def _add(name: str, given: Mapping[str, str], ca_file: Path, folder: Path) -> Path:
    """Return what a variable adds to the trusted ones: ours, and the caller's where there are any."""
    if not (theirs := given.get(name, "").strip()):
        return ca_file
    return _write(folder / f"{name.lower()}.pem", _read(name, theirs), certificates(ca_file))


def _read(name: str, file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as problem:
        raise BadSetting(name, f"cannot read {file}: {problem.strerror}") from None


def _write(file: Path, *parts: bytes) -> Path:
    file.write_bytes(b"".join(part.rstrip(b"\n") + b"\n" for part in parts))
    return file

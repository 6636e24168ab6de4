"""`custody run`: start an unchanged program whose API calls go through the proxy, as an agent.

The token lives in the program's environment and nowhere else: not in a command line, a file or a line we print. Our
own keys never reach the program.
"""

import socket
import ssl
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from custody.kit import environment as read
from custody.kit.environment import BadSetting
from ops import foreground, node, proxied
from ops.settings import Settings

_CONNECT_SECONDS, _ANSWER_SECONDS = 3.0, 30.0


class RunFailed(RuntimeError):
    """The program was not started."""


def run(settings: Settings, agent: str, expires_in: str, ca_file: Path | None, program: Sequence[str]) -> int:
    """Mint a token with the tenant's key, run the program with it, and return the program's exit status."""
    given = settings.environment
    api_url = read.url(given, "SERVICE_URL", settings.api_url)
    proxy_url = read.url(given, "SERVICE_PROXY_URL", settings.proxy_url, schemes=("http",))
    ca_file = (ca_file or settings.proxy_ca_file).absolute()
    # The token comes last: none is made in vain.
    key = _tenant_key(given)
    proxied.certificates(ca_file)
    _insist_on_proxy(proxy_url)
    token = _mint(api_url, key, agent, expires_in)
    with tempfile.TemporaryDirectory(prefix="custody-run-") as folder:
        access = proxied.Access(agent, token, proxy_url, api_url)
        environment = proxied.environment_for(given, access, ca_file, Path(folder))
        if (warning := node.warning(program[0], environment)) is not None:
            print(f"custody run: {warning}", file=sys.stderr)
        try:
            return foreground.run(program, environment)
        except OSError as problem:
            print(f"custody run: cannot start {program[0]}: {problem.strerror}", file=sys.stderr)
            return foreground.NOT_FOUND if isinstance(problem, FileNotFoundError) else foreground.CANNOT_RUN


def _tenant_key(given: Mapping[str, str]) -> str:
    name, key = "SERVICE_KEY", given.get("SERVICE_KEY", "").strip()
    if given.get("SERVICE_KEY_FILE", "").strip():
        name, key = "SERVICE_KEY_FILE", _private_text(read.path(given, "SERVICE_KEY_FILE", ""))
    if not key:
        raise BadSetting(
            "SERVICE_KEY_FILE",
            "name a file (mode 0600) with your tenant's API key, or put the key into SERVICE_KEY; the operator gets "
            "one by creating the tenant, POST /platform/tenants",
        )
    if not (key.isascii() and key.isprintable()):
        raise BadSetting(name, "not an API key")
    return key


def _private_text(file: Path) -> str:
    try:
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            raise BadSetting("SERVICE_KEY_FILE", f"other users can read {file}: chmod 0600 {file}")
        return file.read_text("ascii").strip()
    except OSError as problem:
        raise BadSetting("SERVICE_KEY_FILE", f"cannot read {file}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise BadSetting("SERVICE_KEY_FILE", f"{file} contains no API key") from None


def _insist_on_proxy(url: str) -> None:
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 80), _CONNECT_SECONDS).close()
    except OSError as problem:
        raise RunFailed(
            f"the proxy does not answer at {url} ({problem.strerror or problem}); start it with `custody up`, or set "
            "SERVICE_PROXY_URL"
        ) from None


def _mint(api_url: str, key: str, agent: str, expires_in: str) -> str:
    path = f"/agents/{quote(agent, safe='')}/token"
    try:
        # The caller's proxies are not for this: one of them may be ours, which lets nobody through without a token.
        with httpx.Client(trust_env=False, verify=_tls(api_url), timeout=_ANSWER_SECONDS) as client:
            answer = client.post(f"{api_url}{path}", json={"expiresIn": expires_in}, headers={"X-Service-Key": key})
    except httpx.HTTPError as problem:
        raise RunFailed(
            f"the API does not answer at {api_url} ({problem or type(problem).__name__}); start it with "
            "`custody up`, or set SERVICE_URL"
        ) from None
    if answer.status_code == 401:
        raise RunFailed(
            f"the API at {api_url} rejects this tenant key: it is wrong, or was replaced or revoked; check "
            "SERVICE_KEY_FILE or SERVICE_KEY"
        )
    if answer.status_code == 404:
        raise RunFailed(f"your tenant has no agent {agent!r}; create it with POST /agents")
    try:
        said = msgspec.json.decode(answer.content)
        if answer.is_success:
            return str(said["data"]["token"])
        reason = str(said["error"])
    except (msgspec.MsgspecError, LookupError, TypeError):
        # Never what came instead: it may hold a token all the same.
        reason = f"status {answer.status_code}, not a response of Custody"
    raise RunFailed(f"no token for {agent!r}: {reason}")


def _tls(url: str) -> ssl.SSLContext:
    """Trust what the caller's SSL_CERT_FILE and the system trust; over plain http nothing is read."""
    if url.startswith("http:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()

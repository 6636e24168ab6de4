"""Every variable of the environment, looked at before anything starts.

Each process reads its own strictly; this table only brings a mistake to the operator's eyes at once, by its name,
instead of into the log of a process that will not start. A variable that has no effect is named.
"""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509

from custody.chains import prices, table
from custody.credentials.aliases import parse_aliases
from custody.credentials.patterns import InvalidPattern, compile_host
from custody.identity import login_redirects
from custody.kit import environment as read
from custody.kit import metrics_address, oauth_endpoints, quota_settings
from custody.kit.environment import BadSetting
from custody.policies import user_wallets
from custody.tenants import presets
from ops import database_addresses

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}

_Reader = Callable[[Mapping[str, str], str], Any]


def _number(low: int, high: int = 2**31 - 1) -> _Reader:
    return lambda environment, name: read.integer(environment, name, low, low=low, high=high)


def _word(*allowed: str) -> _Reader:
    return lambda environment, name: read.choice(environment, name, allowed)


def _port(environment: Mapping[str, str], name: str) -> int:
    return read.port(environment, name, 1)


def _any(environment: Mapping[str, str], name: str) -> str:
    return environment[name]


def _in_a_folder(environment: Mapping[str, str], name: str) -> None:
    folder = read.path(environment, name, "").parent
    if not folder.is_dir():
        raise BadSetting(name, f"the folder {folder} does not exist")


def _file(environment: Mapping[str, str], name: str) -> None:
    file = read.path(environment, name, "")
    if not file.is_file():
        raise BadSetting(name, f"no such file: {file}")


def _certificates(environment: Mapping[str, str], name: str) -> None:
    _file(environment, name)
    file = read.path(environment, name, "")
    try:
        x509.load_pem_x509_certificates(file.read_bytes())
    except (OSError, ValueError):
        raise BadSetting(name, f"{file} contains no certificate in PEM form that can be read") from None


def _output_file(environment: Mapping[str, str], name: str) -> None:
    _in_a_folder(environment, name)
    if (file := read.path(environment, name, "")).is_dir():
        raise BadSetting(name, f"{file} is a folder; name a file in it")


def _networks(environment: Mapping[str, str], name: str) -> None:
    read.networks(environment, name)


def _flag(environment: Mapping[str, str], name: str) -> bool:
    return read.flag(environment, name, default=False)


def _url(*schemes: str) -> _Reader:
    return lambda environment, name: read.url(environment, name, "", schemes=schemes)


def _aliases(environment: Mapping[str, str], name: str) -> None:
    try:
        parse_aliases(environment[name])
    except ValueError as problem:
        raise BadSetting(name, str(problem)) from None


def _hosts(environment: Mapping[str, str], name: str) -> None:
    for part in filter(None, (part.strip() for part in environment[name].split(","))):
        try:
            compile_host(part)
        except InvalidPattern as problem:
            raise BadSetting(name, f"{part!r}: {problem.message}") from None


def _presets(environment: Mapping[str, str], name: str) -> None:
    presets.load(environment)


def _quotas(environment: Mapping[str, str], name: str) -> None:
    quota_settings.load(environment)


def _user_wallet_policies(environment: Mapping[str, str], name: str) -> None:
    user_wallets.default_policies({name: environment[name]})


def _prices(environment: Mapping[str, str], name: str) -> None:
    prices.load(environment)


def _redirects(environment: Mapping[str, str], name: str) -> None:
    login_redirects.load(environment)


def _oauth_endpoints(environment: Mapping[str, str], name: str) -> None:
    oauth_endpoints.load(environment)


def _public_url(environment: Mapping[str, str], name: str) -> None:
    """Over plain http what is sent can be read on its way; only a first look on this machine may."""
    parts = urlsplit(read.public_url(environment))
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise BadSetting(name, "must be https unless it names this machine (localhost)")


def _address(*schemes: str) -> _Reader:
    """An address that may carry a password, so a wrong one is not repeated."""

    def check(environment: Mapping[str, str], name: str) -> None:
        parts = urlsplit(environment[name].strip())
        if parts.scheme not in schemes or not parts.hostname:
            raise BadSetting(name, f"must look like {schemes[0]}://host")

    return check


def _database(environment: Mapping[str, str], name: str) -> str:
    return database_addresses.readable(name, environment[name].strip(), environment)


def _rate_limit_store(environment: Mapping[str, str], name: str) -> None:
    if environment[name].strip() != "memory":
        _address("redis", "rediss", "valkey", "valkeys")(environment, name)


_KNOWN: dict[str, _Reader] = {
    "SERVICE_ENV": _word("development", "production"),
    "SERVICE_HOME": _any,
    "SERVICE_DATABASE_URL": _database,
    database_addresses.CA_FILE: _certificates,
    "SERVICE_DATABASE_URL_API": _database,
    "SERVICE_DATABASE_URL_SIGNER": _database,
    "SERVICE_DATABASE_URL_IDENTITY": _database,
    "SERVICE_DATABASE_URL_SCHEDULER": _database,
    "SERVICE_DATABASE_URL_PROXY": _database,
    "SERVICE_API_HOST": _any,
    "SERVICE_API_PORT": _port,
    "SERVICE_API_WORKERS": _number(1, 64),
    "SERVICE_API_DRAIN_SECONDS": _number(0, 60),
    "SERVICE_API_CONNECTIONS": _number(1, 64),
    "SERVICE_SIGNER_CONNECTIONS": _number(2, 64),
    "SERVICE_IDENTITY_CONNECTIONS": _number(2, 64),
    "SERVICE_PROXY_HOST": _any,
    "SERVICE_PROXY_PORT": _port,
    "SERVICE_PROXY_WORKERS": _number(1, 64),
    "SERVICE_PROXY_ALIASES": _aliases,
    "SERVICE_PROXY_ALLOW_PRIVATE_HOSTS": _hosts,
    "SERVICE_PROXY_EXTRA_CA_FILE": _certificates,
    "SERVICE_WEBHOOK_EXTRA_CA_FILE": _certificates,
    "SERVICE_PROXY_CA_FILE": _in_a_folder,
    "SERVICE_PROXY_CA_KEY_FILE": _in_a_folder,
    "SERVICE_PROXY_MAX_BODY_BYTES": _number(0, 2**40),
    "SERVICE_PROXY_CONNECT_SECONDS": _number(1, 3_600),
    "SERVICE_PROXY_HEADER_SECONDS": _number(1, 86_400),
    "SERVICE_PROXY_IDLE_SECONDS": _number(1, 86_400),
    "SERVICE_METRICS_HOST": lambda environment, _: metrics_address.host(environment),
    "SERVICE_METRICS_PORT_API": _port,
    "SERVICE_METRICS_PORT_PROXY": _port,
    "SERVICE_METRICS_PORT_SCHEDULER": _port,
    "SERVICE_PUBLIC_URL": _public_url,
    "SERVICE_MASTER_KEY_FILE": _in_a_folder,
    "SERVICE_PLATFORM_KEY_FILE": _in_a_folder,
    "SERVICE_IDENTITY_KEY_FILE": _any,
    "SERVICE_CHECKPOINT_FILE": _output_file,
    "SERVICE_CHAINS_FILE": _any,
    "SERVICE_DEFAULT_CHAIN_ID": _any,
    "SERVICE_EMPTY_POLICY": _word("allow", "deny"),
    "SERVICE_AGENT_POLICY_PUT": _word("tighten", "replace"),
    "SERVICE_ALLOW_BROAD_SECRET_ROUTES": _flag,
    "SERVICE_USER_WALLET_POLICIES_FILE": _user_wallet_policies,
    "SERVICE_ALLOW_PRIVATE_KEY_IMPORT": _flag,
    "SERVICE_ALLOW_VAULT_PRIVATE_KEY_IMPORT": _flag,
    "SERVICE_ALLOW_USER_PRIVATE_KEY_IMPORT": _flag,
    "SERVICE_ALLOW_COOKIE_INJECTION": _flag,
    "SERVICE_ALLOW_UNSAFE_CALLS": _flag,
    "SERVICE_RATE_LIMIT_MAX": _number(0),
    "SERVICE_RATE_LIMIT_ANONYMOUS_MAX": _number(0),
    "SERVICE_RATE_LIMIT_WINDOW_SECONDS": _number(1),
    "SERVICE_RATE_LIMIT_NONCE": _number(0),
    "SERVICE_RATE_LIMIT_VERIFY": _number(0),
    "SERVICE_RATE_LIMIT_CODES": _number(0),
    "SERVICE_RATE_LIMIT_REFRESH": _number(0),
    "SERVICE_RATE_LIMIT_DEVICE_CODE": _number(0),
    "SERVICE_RATE_LIMIT_DEVICE_TOKEN": _number(0),
    "SERVICE_RATE_LIMIT_INVITATIONS": _number(0),
    "SERVICE_RATE_LIMIT_DISCOVER": _number(0),
    "SERVICE_RATE_LIMIT_SSO": _number(0),
    "SERVICE_RATE_LIMIT_CALLBACK": _number(0),
    "SERVICE_RATE_LIMIT_EXCHANGE": _number(0),
    "SERVICE_RATE_LIMIT_STORE": _rate_limit_store,
    "SERVICE_TRUSTED_PROXIES": _networks,
    "SERVICE_SCOPED_PLATFORM_KEYS": _flag,
    "SERVICE_ALLOW_SELF_REGISTRATION": _flag,
    "SERVICE_QUOTAS_FILE": _quotas,
    "SERVICE_QUOTA_AGENTS": _quotas,
    "SERVICE_QUOTA_POLICY_BYTES": _quotas,
    "SERVICE_QUOTA_ORDERS": _quotas,
    "SERVICE_QUOTA_ORDERS_PER_DAY": _quotas,
    "SERVICE_QUOTA_BYTES_PER_DAY": _quotas,
    "SERVICE_QUOTA_SECRETS": _quotas,
    "SERVICE_QUOTA_CREDENTIAL_ROUTES": _quotas,
    "SERVICE_QUOTA_WEBHOOKS": _quotas,
    "SERVICE_QUOTA_MEMBERS": _quotas,
    "SERVICE_QUOTA_EVENT_STREAMS": _quotas,
    "SERVICE_QUOTA_TENANTS_PER_PERSON": _quotas,
    "SERVICE_QUOTA_EVENT_STREAMS_PER_PERSON": _quotas,
    "SERVICE_TENANT_PRESETS_FILE": _presets,
    "SERVICE_PRICES_FILE": _prices,
    "SERVICE_LOGIN_REDIRECT_URLS": _redirects,
    oauth_endpoints.FILE: _oauth_endpoints,
    "SERVICE_REQUIRE_REQUEST_EXPIRY": _flag,
    "SERVICE_REQUIRE_AUTH_SIGNATURE": _flag,
    "SERVICE_DNS_SERVER": _any,
    "SERVICE_SMTP_URL": _address("smtp", "smtps"),
    "SERVICE_SMS_URL": _address("https", "http"),
    "SERVICE_SMS_MAX_PER_HOUR": _number(0),
    "SERVICE_SIGN_SOCKET": _any,
    "SERVICE_REVEAL_SOCKET": _any,
    "SERVICE_IDENTITY_SOCKET": _any,
    "SERVICE_PEER_UIDS": _any,
    # A client's: `custody run` reads some and sets the others.
    "SERVICE_URL": _url("http", "https"),
    "SERVICE_PROXY_URL": _url("http"),
    "SERVICE_KEY": _any,
    "SERVICE_KEY_FILE": _any,
    "SERVICE_AGENT_ID": _any,
    "SERVICE_AGENT_TOKEN": _any,
}
NAMES = frozenset(_KNOWN)
# Those with a few words for values.
SWITCHES = frozenset(
    name for name, reader in _KNOWN.items() if reader is _flag or reader.__qualname__.startswith("_word.")
)
# Of effect where a process runs alone; `custody up` sets them itself.
SET_BY_SUPERVISOR = ("SERVICE_SIGN_SOCKET", "SERVICE_REVEAL_SOCKET", "SERVICE_IDENTITY_SOCKET", "SERVICE_PEER_UIDS")
_KNOWN_PREFIXES = ("SERVICE_RPC_URL_", "SERVICE_TENANT_OIDC_SECRET_")


def check(environment: Mapping[str, str]) -> list[str]:
    """Raise BadSetting for the first wrong value; otherwise name the variables that have no effect."""
    ours = sorted(name for name, value in environment.items() if name.startswith("SERVICE_") and value.strip())
    for name in ours:
        if name in _KNOWN:
            _KNOWN[name](environment, name)
    try:
        table.load(environment)
    except ValueError as problem:
        name = str(problem).split(" ", 1)[0].rstrip(":")
        raise BadSetting(name, str(problem).removeprefix(name).lstrip(": ")) from problem
    return [name for name in ours if name not in _KNOWN and not name.startswith(_KNOWN_PREFIXES)]

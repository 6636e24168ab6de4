"""Every variable of the environment, looked at before anything starts.

Each process reads its own strictly; this table only brings a mistake to the operator's eyes at once, by its name,
instead of into the log of a process that will not start. A variable that has no effect is named. The table is the
list of what there is: the page of settings (docs/environment.md) has a row for each, and a test compares the two.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from custody.chains import built_in, chains_file, families
from custody.kit import name_server, oauth_endpoints, opener_settings
from custody.kit.environment import BadSetting
from ops import connections, database_addresses, holders, places
from ops import variable_kinds as kinds

KNOWN: Final[dict[str, kinds.Kind]] = {
    "SERVICE_ENV": kinds.word("development", "production"),
    "SERVICE_HOME": kinds.HOME,
    places.BASE_VARIABLE: kinds.UIDS,
    "SERVICE_DATABASE_URL": kinds.DATABASE,
    database_addresses.CA_FILE: kinds.CERTIFICATES,
    "SERVICE_DATABASE_URL_API": kinds.DATABASE,
    "SERVICE_DATABASE_URL_SIGNER": kinds.DATABASE,
    "SERVICE_DATABASE_URL_IDENTITY": kinds.DATABASE,
    "SERVICE_DATABASE_URL_SCHEDULER": kinds.DATABASE,
    "SERVICE_DATABASE_URL_PROXY": kinds.DATABASE,
    connections.HOSTS: kinds.number(1, 64),
    "SERVICE_API_HOST": kinds.HOST,
    "SERVICE_API_PORT": kinds.PORT,
    "SERVICE_API_WORKERS": kinds.number(1, 64),
    "SERVICE_API_WORKER": kinds.number(0, 1023),
    "SERVICE_API_DRAIN_SECONDS": kinds.number(0, 60),
    "SERVICE_API_CONNECTIONS": kinds.number(1, 64),
    "SERVICE_SIGNER_CONNECTIONS": kinds.number(2, 64),
    "SERVICE_IDENTITY_CONNECTIONS": kinds.number(2, 64),
    "SERVICE_PROXY_HOST": kinds.HOST,
    "SERVICE_PROXY_PORT": kinds.PORT,
    "SERVICE_PROXY_WORKERS": kinds.number(1, 64),
    "SERVICE_PROXY_WORKER": kinds.number(0, 1023),
    "SERVICE_PROXY_PUBLIC_URL": kinds.url("http", "https"),
    "SERVICE_PROXY_ALIASES": kinds.ALIASES,
    "SERVICE_PROXY_ALLOW_PRIVATE_HOSTS": kinds.HOSTS,
    "SERVICE_PROXY_EXTRA_CA_FILE": kinds.CERTIFICATES,
    "SERVICE_WEBHOOK_EXTRA_CA_FILE": kinds.CERTIFICATES,
    "SERVICE_PROXY_CA_FILE": kinds.FILE_TO_BE,
    "SERVICE_PROXY_CA_KEY_FILE": kinds.FILE_TO_BE,
    "SERVICE_PROXY_MAX_BODY_BYTES": kinds.number(0, 2**40),
    "SERVICE_PROXY_CONNECT_SECONDS": kinds.number(1, 3_600),
    "SERVICE_PROXY_HEADER_SECONDS": kinds.number(1, 86_400),
    "SERVICE_PROXY_IDLE_SECONDS": kinds.number(1, 86_400),
    "SERVICE_PROXY_DRAIN_SECONDS": kinds.number(0, 60),
    "SERVICE_METRICS_HOST": kinds.METRICS_HOST,
    "SERVICE_METRICS_PORT_API": kinds.PORT,
    "SERVICE_METRICS_PORT_PROXY": kinds.PORT,
    "SERVICE_METRICS_PORT_SCHEDULER": kinds.PORT,
    "SERVICE_PUBLIC_URL": kinds.PUBLIC_URL,
    "SERVICE_MASTER_KEY_FILE": kinds.FILE_TO_BE,
    holders.SOURCE: kinds.HOLDERS,
    holders.UNLOCK: kinds.ANYTHING,
    # Openers read these by themselves.
    opener_settings.OPENER: kinds.ANYTHING,
    opener_settings.PKCS11_MODULE: kinds.ANYTHING,
    opener_settings.PKCS11_PIN_FILE: kinds.ANYTHING,
    opener_settings.TRANSIT_URL: kinds.url("https", "http"),
    opener_settings.TRANSIT_TOKEN_FILE: kinds.ANYTHING,
    opener_settings.TRANSIT_CA_FILE: kinds.CERTIFICATES,
    opener_settings.RECOVERY_KEY_FILE: kinds.ANYTHING,
    opener_settings.UNLOCK_SOCKET: kinds.ANYTHING,
    opener_settings.HEAD_FILE: kinds.ANYTHING,
    "SERVICE_PLATFORM_KEY_FILE": kinds.FILE_TO_BE,
    "SERVICE_IDENTITY_KEY_FILE": kinds.FILE_TO_BE,
    "SERVICE_CHECKPOINT_FILE": kinds.FILE_TO_BE,
    "SERVICE_CHAINS_FILE": kinds.CHAINS,
    "SERVICE_DEFAULT_CHAIN_ID": kinds.CHAIN,
    "SERVICE_EMPTY_POLICY": kinds.word("allow", "deny"),
    "SERVICE_AGENT_POLICY_PUT": kinds.word("tighten", "replace"),
    "SERVICE_ALLOW_BROAD_SECRET_ROUTES": kinds.FLAG,
    "SERVICE_USER_WALLET_POLICIES_FILE": kinds.USER_WALLETS,
    "SERVICE_ALLOW_PRIVATE_KEY_IMPORT": kinds.FLAG,
    "SERVICE_ALLOW_VAULT_PRIVATE_KEY_IMPORT": kinds.FLAG,
    "SERVICE_ALLOW_USER_PRIVATE_KEY_IMPORT": kinds.FLAG,
    "SERVICE_ALLOW_COOKIE_INJECTION": kinds.FLAG,
    "SERVICE_ALLOW_UNSAFE_CALLS": kinds.FLAG,
    "SERVICE_RATE_LIMIT_MAX": kinds.number(0, 10**9),
    "SERVICE_RATE_LIMIT_ANONYMOUS_MAX": kinds.number(0),
    "SERVICE_RATE_LIMIT_WINDOW_SECONDS": kinds.number(1),
    "SERVICE_RATE_LIMIT_NONCE": kinds.number(0),
    "SERVICE_RATE_LIMIT_VERIFY": kinds.number(0),
    "SERVICE_RATE_LIMIT_CODES": kinds.number(0),
    "SERVICE_RATE_LIMIT_REFRESH": kinds.number(0),
    "SERVICE_RATE_LIMIT_DEVICE_CODE": kinds.number(0),
    "SERVICE_RATE_LIMIT_DEVICE_TOKEN": kinds.number(0),
    "SERVICE_RATE_LIMIT_INVITATIONS": kinds.number(0),
    "SERVICE_RATE_LIMIT_DISCOVER": kinds.number(0),
    "SERVICE_RATE_LIMIT_SSO": kinds.number(0),
    "SERVICE_RATE_LIMIT_CALLBACK": kinds.number(0),
    "SERVICE_RATE_LIMIT_EXCHANGE": kinds.number(0),
    "SERVICE_RATE_LIMIT_NODE_CALLS": kinds.number(0),
    "SERVICE_RATE_LIMIT_STORE": kinds.COUNTS,
    "SERVICE_TRUSTED_PROXIES": kinds.NETWORKS,
    "SERVICE_SCOPED_PLATFORM_KEYS": kinds.FLAG,
    "SERVICE_ALLOW_SELF_REGISTRATION": kinds.FLAG,
    "SERVICE_QUOTAS_FILE": kinds.QUOTAS,
    "SERVICE_QUOTA_AGENTS": kinds.QUOTA,
    "SERVICE_QUOTA_POLICY_BYTES": kinds.QUOTA,
    "SERVICE_QUOTA_ORDERS": kinds.QUOTA,
    "SERVICE_QUOTA_ORDERS_PER_DAY": kinds.QUOTA,
    "SERVICE_QUOTA_BYTES_PER_DAY": kinds.QUOTA,
    "SERVICE_QUOTA_SECRETS": kinds.QUOTA,
    "SERVICE_QUOTA_CREDENTIAL_ROUTES": kinds.QUOTA,
    "SERVICE_QUOTA_WEBHOOKS": kinds.QUOTA,
    "SERVICE_QUOTA_MEMBERS": kinds.QUOTA,
    "SERVICE_QUOTA_EVENT_STREAMS": kinds.QUOTA,
    "SERVICE_QUOTA_TENANTS_PER_PERSON": kinds.QUOTA,
    "SERVICE_QUOTA_EVENT_STREAMS_PER_PERSON": kinds.QUOTA,
    "SERVICE_TENANT_PRESETS_FILE": kinds.PRESETS,
    "SERVICE_PRICES_FILE": kinds.PRICES,
    "SERVICE_PRICES_URL": kinds.PRICES_URL,
    "SERVICE_PRICES_KEY_FILE": kinds.PRICES_KEY,
    "SERVICE_PRICES_MAX_AGE_SECONDS": kinds.number(30, 7 * 86_400),
    "SERVICE_LOGIN_REDIRECT_URLS": kinds.REDIRECTS,
    oauth_endpoints.FILE: kinds.ENDPOINTS,
    "SERVICE_REQUIRE_REQUEST_EXPIRY": kinds.FLAG,
    "SERVICE_REQUIRE_AUTH_SIGNATURE": kinds.FLAG,
    name_server.VARIABLE: kinds.NAME_SERVER,
    "SERVICE_SMTP_URL": kinds.server("smtp", "smtps"),
    "SERVICE_SMS_URL": kinds.server("https", "http"),
    "SERVICE_SMS_MAX_PER_HOUR": kinds.number(0),
    "SERVICE_SIGN_SOCKET": kinds.SOCKET,
    "SERVICE_REVEAL_SOCKET": kinds.SOCKET,
    "SERVICE_IDENTITY_SOCKET": kinds.SOCKET,
    "SERVICE_PEER_UIDS": kinds.PEERS,
    # A client's: `custody run` reads some and sets the others.
    "SERVICE_SESSION": kinds.ANYTHING,
    "SERVICE_URL": kinds.url("http", "https"),
    "SERVICE_PROXY_URL": kinds.url("http"),
    "SERVICE_KEY": kinds.ANYTHING,
    "SERVICE_KEY_FILE": kinds.ANYTHING,
    "SERVICE_AGENT_ID": kinds.ANYTHING,
    "SERVICE_AGENT_TOKEN": kinds.ANYTHING,
    # `custody mcp` reads these by itself.
    "SERVICE_AGENT_TOKEN_FILE": kinds.ANYTHING,
    "SERVICE_MCP_PORT": kinds.PORT,
    "SERVICE_MCP_HOST": kinds.ANYTHING,
    "SERVICE_MCP_ALLOWED_HOSTS": kinds.ANYTHING,
}
# One half of a pair turns nothing on. Their names have no SERVICE_, so another program's may be meant.
PAIRS: Final = tuple((f"{name}_CLIENT_ID", f"{name}_CLIENT_SECRET") for name in ("GOOGLE", "DISCORD", "TWITTER"))
# Without the key nothing that comes is believed, and without the address nothing comes.
PRICES_PAIR: Final = ("SERVICE_PRICES_URL", "SERVICE_PRICES_KEY_FILE")
NAMES = frozenset(KNOWN) | {name for pair in PAIRS for name in pair}
# Names that go on with what the operator chose.
PREFIXES = ("SERVICE_RPC_URL_", "SERVICE_TENANT_OIDC_SECRET_")
# Those with a few words for values.
SWITCHES = frozenset(name for name, kind in KNOWN.items() if kind.name in {"flag", "word"})
# Of effect where a process runs alone; `custody up` sets them itself.
SET_BY_SUPERVISOR = (
    *("SERVICE_SIGN_SOCKET", "SERVICE_REVEAL_SOCKET", "SERVICE_IDENTITY_SOCKET", "SERVICE_PEER_UIDS"),
    *("SERVICE_API_WORKER", "SERVICE_PROXY_WORKER", holders.UNLOCK),
)


def check(environment: Mapping[str, str]) -> list[str]:
    """Raise BadSetting for the first wrong value; otherwise name the variables that have no effect."""
    families.hand_in(built_in.LISTED)
    ours = sorted(name for name, value in environment.items() if name.startswith("SERVICE_") and value.strip())
    for name in ours:
        if name in KNOWN:
            _name_in(partial(KNOWN[name].look, environment, name))
    if os.geteuid() == 0:
        # The processes run under the usual uids where none are chosen.
        _name_in(partial(places.unused_uid_base, environment))
    _name_in(partial(chains_file.load, environment))
    return [name for name in ours if name not in KNOWN and not name.startswith(PREFIXES)]


def _name_in(look: Callable[[], object]) -> None:
    """Some readers say the variable in their sentence alone."""
    try:
        look()
    except BadSetting:
        raise
    except ValueError as problem:
        name = str(problem).split(" ", 1)[0].rstrip(":")
        raise BadSetting(name, str(problem).removeprefix(name).lstrip(": ")) from problem


def halves(environment: Mapping[str, str]) -> list[str]:
    """A sentence for each pair, of a sign-in provider or of prices, of which one is set without the other."""
    found = []
    for pair in (*PAIRS, PRICES_PAIR):
        there = [name for name in pair if environment.get(name, "").strip()]
        if len(there) == 1:
            other = next(name for name in pair if name not in there)
            what = "no price counts for limits" if pair is PRICES_PAIR else "that provider is off"
            found.append(f"{there[0]} is set and {other} is not, so {what}: set both, or neither")
    return found

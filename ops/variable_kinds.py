"""The kinds of values that variables of the environment have, and who looks at each before anything starts.

Where a process has a reader of its own, that one is asked, so that what passes here stops no process later.
"""

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from cryptography import x509

from custody.chains import price_document, prices
from custody.credentials import private_hosts
from custody.credentials.aliases import parse_aliases
from custody.identity import login_redirects
from custody.kit import environment as read
from custody.kit import metrics_address, name_server, networks, oauth_endpoints, price_url, quota_settings, server_urls
from custody.kit.environment import BadSetting
from custody.policies import user_wallets
from custody.tenants import presets
from ops import database_addresses, holders, places

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
# A last label of digits would be an address that is none.
_HOST_NAME = re.compile(r"(?!(?:.*\.)?[0-9]+\Z)(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.?)+")

Reader = Callable[[Mapping[str, str], str], Any]


class Kind(msgspec.Struct, frozen=True):
    """The kind of a value; `look` raises BadSetting for one that it may not."""

    name: str
    look: Reader
    low: int = 0
    high: int = 0
    words: tuple[str, ...] = ()


def number(low: int, high: int = 2**31 - 1) -> Kind:
    """A whole number; both bounds are good."""
    return Kind("number", lambda source, name: read.integer(source, name, low, low=low, high=high), low, high)


def word(*allowed: str) -> Kind:
    """One of a few words."""
    return Kind("word", lambda source, name: read.choice(source, name, allowed), words=allowed)


def url(*schemes: str) -> Kind:
    """The address of a service, without a password."""
    return Kind("url", lambda source, name: read.url(source, name, "", schemes=schemes), words=schemes)


def server(*schemes: str) -> Kind:
    """The address of a server that may carry a password."""
    return Kind("server", lambda source, name: server_urls.read(source, name, schemes), words=schemes)


def _anything(source: Mapping[str, str], name: str) -> str:
    return source[name]


def _port(source: Mapping[str, str], name: str) -> int:
    return read.port(source, name, 1)


def _flag(source: Mapping[str, str], name: str) -> bool:
    return read.flag(source, name, default=False)


def _host(source: Mapping[str, str], name: str) -> None:
    value = read.text(source, name)
    try:
        ip_address(value)
    except ValueError:
        if _HOST_NAME.fullmatch(value) is None:
            complaint = "must be an address or a name of this machine, without scheme, brackets and port"
            raise BadSetting(name, f"{complaint}, not {value!r}") from None


def _home(source: Mapping[str, str], name: str) -> None:
    folder = read.path(source, name, "")
    found = next(part for part in (folder, *folder.parents) if part.exists())
    if not found.is_dir():
        raise BadSetting(name, f"{found} is not a folder; name one that exists or can be created")


def _file_to_be(source: Mapping[str, str], name: str) -> None:
    file = read.path(source, name, "")
    # The start makes this folder.
    if not file.parent.is_dir() and file.parent != read.home(source) / "identity-key":
        raise BadSetting(name, f"the folder {file.parent} does not exist")
    if file.is_dir():
        raise BadSetting(name, f"{file} is a folder; name a file in it")


def _certificates(source: Mapping[str, str], name: str) -> None:
    file = read.path(source, name, "")
    if not file.is_file():
        raise BadSetting(name, f"no such file: {file}")
    try:
        x509.load_pem_x509_certificates(file.read_bytes())
    except (OSError, ValueError):
        raise BadSetting(name, f"{file} contains no certificate in PEM form that can be read") from None


def _aliases(source: Mapping[str, str], name: str) -> None:
    try:
        parse_aliases(source[name])
    except ValueError as problem:
        raise BadSetting(name, str(problem)) from None


def _private_hosts(source: Mapping[str, str], _name: str) -> None:
    private_hosts.read(source)


def _public_url(source: Mapping[str, str], name: str) -> None:
    """Over plain http what is sent can be read on its way; only a first look on this machine may."""
    parts = urlsplit(read.public_url(source))
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK:
        raise BadSetting(name, "must be https unless it names this machine (localhost)")


def _database(source: Mapping[str, str], name: str) -> str:
    return database_addresses.readable(name, source[name].strip(), source)


HOLDERS: Final = Kind("holders", lambda source, _: holders.kinds_of(source))
ANYTHING: Final = Kind("anything", _anything)
PORT: Final = Kind("port", _port)
FLAG: Final = Kind("flag", _flag)
HOST: Final = Kind("host", _host)
HOME: Final = Kind("home", _home)
FILE_TO_BE: Final = Kind("file to be", _file_to_be)
CERTIFICATES: Final = Kind("certificates", _certificates)
SOCKET: Final = Kind("socket", lambda source, name: read.short(name, read.socket_path(source, name, "")))
UIDS: Final = Kind("uids", lambda source, _: places.unused_uid_base(source))
PEERS: Final = Kind("peers", lambda source, _: read.peer_uids(source))
ALIASES: Final = Kind("aliases", _aliases)
HOSTS: Final = Kind("hosts", _private_hosts)
NETWORKS: Final = Kind("networks", networks.read)
PUBLIC_URL: Final = Kind("public url", _public_url)
DATABASE: Final = Kind("database", _database)
METRICS_HOST: Final = Kind("metrics host", lambda source, _: metrics_address.host(source))
NAME_SERVER: Final = Kind("name server", lambda source, _: name_server.load(source))
COUNTS: Final = Kind("counts", lambda source, _: server_urls.rate_limit_store(source))
REDIRECTS: Final = Kind("redirects", lambda source, _: login_redirects.load(source))
# Files with a form of their own, and figures that one of them may replace.
PRESETS: Final = Kind("file", lambda source, _: presets.load(source))
QUOTAS: Final = Kind("file", lambda source, _: quota_settings.load(source))
QUOTA: Final = Kind("quota", lambda source, _: quota_settings.load(source))
USER_WALLETS: Final = Kind("file", lambda source, _: user_wallets.default_policies(source))
PRICES: Final = Kind("file", lambda source, _: prices.load(source))
PRICES_URL: Final = Kind("prices url", lambda source, _: price_url.load(source))
PRICES_KEY: Final = Kind("file", lambda source, _: price_document.load_key(source))
ENDPOINTS: Final = Kind("file", lambda source, _: oauth_endpoints.load(source))
# Of these three `check` asks the table of chains itself.
CHAINS: Final = Kind("file", _anything)
CHAIN: Final = Kind("chain", _anything)

"""Laws of the environment: a wrong value stops the start with its name; what passes there stops no process later."""

from collections.abc import Callable
from pathlib import Path

import pytest

from api.settings import read as read_api
from custody.kit import opener_settings
from custody.kit.environment import BadSetting
from custody.kit.quotas import HIGHEST
from custody.notifications.mail import Mail
from identity.settings import read as read_identity
from ops import children, settings, variables
from ops import variable_kinds as kinds
from ops.variable_kinds import Kind
from proxy_addon.settings import read as read_proxy
from scheduler.settings import read as read_scheduler
from signer.settings import read as read_signer
from tests.fixtures.each import each

READERS: dict[str, Callable[[dict[str, str]], object]] = {
    "api": read_api,
    "signer": read_signer,
    "identity": read_identity,
    "scheduler": read_scheduler,
    "proxy": read_proxy,
}
ADDRESSES = {name: f"postgresql://{name}:pw@/custody?host=/run/db" for name in READERS}
GIVEN = {f"SERVICE_DATABASE_URL_{name.upper()}": address for name, address in ADDRESSES.items()}
# Of these any text may be right: what others gave the operator, or a client's own.
ANY = {
    *("SERVICE_SESSION", "SERVICE_KEY", "SERVICE_KEY_FILE", "SERVICE_AGENT_ID", "SERVICE_AGENT_TOKEN"),
    *("SERVICE_AGENT_TOKEN_FILE", "SERVICE_MCP_PORT", "SERVICE_MCP_HOST", "SERVICE_MCP_ALLOWED_HOSTS"),
    *(name for pair in variables.PAIRS for name in pair),
    # The opener of their kind reads these, the signer its own, and each says what is wrong: tests/openers.
    *(name for name, kind in variables.KNOWN.items() if kind is kinds.ANYTHING and name in opener_settings.RESERVED),
    *("SERVICE_MASTER_KEY_UNLOCK", "SERVICE_MASTER_KEY_HEAD_FILE"),
}
CHECKED = [*sorted(variables.NAMES - ANY), "SERVICE_RPC_URL_1"]
NODE = Kind("node", lambda _source, _name: None)

BROKEN = ("host:0", "host:99999", "host:port", "[::1", "")
NO_ADDRESS = ["no-scheme", "//host", "ftp://host", "http://", "hunter2-is-secret"]
NO_FILE = ["/nowhere/at/all", "/nowhere/at all/x.toml"]
HERE = str(Path(__file__).parent)


def servers(*schemes: str) -> list[str]:
    """Another scheme or none, a port that is none, a bracket that is not closed, nobody."""
    return [*NO_ADDRESS, *(f"{scheme}://{rest}" for scheme in schemes for rest in BROKEN)]


def beside(low: int, high: int) -> list[str]:
    """Numbers beyond each bound, and what is no whole number."""
    return [str(low - 1), str(high + 1), str(10**30), "1.5", "1_0", "0x10", "many", "+1", "1e3", "\u00b2", "1 2"]


WRONG: dict[str, Callable[[Kind], list[str]]] = {
    "number": lambda kind: beside(kind.low, kind.high),
    "quota": lambda _: beside(0, HIGHEST),
    "port": lambda _: beside(1, 65_535),
    "word": lambda kind: ["perhaps", kind.words[0].upper(), f"{kind.words[0]},{kind.words[-1]}", "0"],
    "flag": lambda _: ["perhaps", "2", "truely", "y"],
    "url": lambda kind: servers(*kind.words),
    "server": lambda kind: servers(*kind.words),
    "node": lambda _: servers("https"),
    "public url": lambda _: [*servers("https"), "http://custody.example.com", "https://u:p@custody.example.com"],
    "prices url": lambda _: [*servers("https"), "http://prices.example.com", "https://u:p@prices.example.com"],
    "database": lambda _: [*servers(), "postgresql://u:p/w@h/db", "postgresql://u:p@h/d?sslmode=no", "mysql://h/db"],
    "counts": lambda _: servers("redis", "valkeys"),
    "host": lambda _: ["0.0.0.0:1", "[::1]", "http://localhost", "a b", "1.2.3", "300.0.0.1", "-a", "a/b", "a_b"],
    "metrics host": lambda _: ["prometheus", "localhost", "0.0.0.0:1", "[::1]"],
    "home": lambda _: [__file__, f"{__file__}/home"],
    "file to be": lambda _: ["/nowhere/at/all/key", HERE],
    "certificates": lambda _: [*NO_FILE, __file__, HERE, "/dev/null"],
    "file": lambda _: [*NO_FILE, __file__, HERE],
    "socket": lambda _: ["/" + "s" * 107, "/run/" + "s/" * 200],
    # No step, a user's of every system, beyond what the kernel counts; and root's.
    "uids": lambda _: ["64715", "65530", "2147483640", "990", "0", "-10", "6471.0", "many"],
    "peers": lambda _: ["api", "api:x", "api:-1", "api:1;scheduler:2", "api:\u00b2"],
    "aliases": lambda _: ["up", "Foo=api.example.com", "up=https://api.example.com", "health=a.b"],
    "hosts": lambda _: ["10.0.0.1/40", "10.0.0.1/8", "https://a.example.com", "a..b"],
    "networks": lambda _: ["nonsense", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/8;::1"],
    "name server": lambda _: ["nonsense", "dns.example.com", "10.0.0.2:0", "fd00::2", "10.0.0.2/x"],
    "redirects": lambda _: [*NO_ADDRESS, "https://a.example.com#part"],
    "holders": lambda _: ["paper", "awskms,paper", "AWSKMS", "file,awskms", "awskms;people"],
    "chain": lambda _: ["0", "7", "mainnet", "-1", "1.0", "\u00b2"],
}
# A wrong one is never repeated, for it may hold a password.
SECRETIVE = {"url", "server", "node", "public url", "prices url", "database", "counts"}


def kind_of(name: str) -> Kind:
    return variables.KNOWN.get(name, NODE)


@each("name", CHECKED)
def test_a_wrong_value_stops_the_start_with_its_name(name: str) -> None:
    kind = kind_of(name)
    for value in WRONG[kind.name](kind):
        with pytest.raises(BadSetting) as refused:
            variables.check({name: value})

        assert refused.value.name == name, value
        assert len(str(refused.value)) > len(name) + 10, value
        assert kind.name not in SECRETIVE or len(value) < 12 or value not in str(refused.value)


def values_to_try(kind: Kind) -> list[str]:
    """Right values, the edges of every number, and wrong ones, for whatever the check lets pass of them."""
    edges = [kind.low, kind.high, 0, 1, 64, 65, 1023, 1024, 65_535, 65_536, 10**9, 10**9 + 1, 2**31 - 1, 2**31, HIGHEST]
    right = [
        "true",
        "::1",
        "localhost",
        "127.0.0.1",
        "https://a.example.com",
        "smtp://u:p@h:25",
        "redis://h",
        "~/there",
    ]
    right += ["up=a.example.com", "*.example.com", "10.0.0.0/8", "10.0.0.2:53", "postgresql://u:p@h/db", "api:1", " "]
    wrong = WRONG[kind.name](kind) if kind.name in WRONG else []
    return [*map(str, edges), *right, *kind.words, *wrong, "\u0663", " 1 ", "a,b", "\U0001f511"]


@each("name", [*sorted(variables.NAMES), "SERVICE_RPC_URL_1", "SERVICE_TENANT_OIDC_SECRET_A"])
def test_no_process_is_stopped_by_what_passes(name: str) -> None:
    passed = 0
    for value in values_to_try(kind_of(name)):
        # An empty one is unset: for an address that means the file in the state folder.
        environment = GIVEN | ({name: value} if value.strip() or name not in GIVEN else {})
        try:
            settings.load(environment)
            variables.check(environment)
        except BadSetting:
            continue
        passed += 1
        for process, reader in READERS.items():
            reader(children.environment_for(process, environment))
        if name == "SERVICE_SMTP_URL":
            Mail(read_api(environment).smtp_url, "https://custody.example.com")
    assert passed


def test_every_kind_has_wrong_values() -> None:
    used = {kind.name for name, kind in variables.KNOWN.items() if name not in ANY}

    assert used | {"node"} == set(WRONG)


@each("pair", (*variables.PAIRS, variables.PRICES_PAIR))
def test_half_of_a_pair_is_said(pair: tuple[str, str]) -> None:
    for one, other in (pair, pair[::-1]):
        [sentence] = variables.halves({one: "x", other: " "})
        assert sentence.startswith(f"{one} is set and {other} is not")
    assert variables.halves(dict.fromkeys(pair, "x")) == variables.halves({}) == []

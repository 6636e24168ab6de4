"""A mistake in the environment is named before anything starts; production tells all it needs."""

from pathlib import Path

import pytest

from custody.kit.environment import BadSetting
from ops import production, variables
from ops.settings import load


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SERVICE_ENV", "staging"),
        ("SERVICE_API_WORKERS", "0"),
        ("SERVICE_METRICS_PORT_API", "http"),
        ("SERVICE_METRICS_HOST", "prometheus"),
        ("SERVICE_METRICS_HOST", "0.0.0.0:3290"),
        ("SERVICE_PROXY_PORT", "0"),
        ("SERVICE_DATABASE_HOSTS", "0"),
        ("SERVICE_UID_BASE", "64715"),
        ("SERVICE_UID_BASE", "65530"),
        ("SERVICE_UID_BASE", "0"),
        ("SERVICE_PROXY_WORKERS", "65"),
        ("SERVICE_PROXY_ALIASES", "up=https://api.example.com"),
        ("SERVICE_PROXY_ALIASES", "up"),
        ("SERVICE_PROXY_ALIASES", "Foo=api.example.com"),
        ("SERVICE_PROXY_ALIASES", "health=api.example.com"),
        ("SERVICE_PROXY_ALIASES", "a = api.example.com"),
        ("SERVICE_TRUSTED_PROXIES", "nonsense"),
        ("SERVICE_TRUSTED_PROXIES", "10.0.0.1/8"),
        ("SERVICE_PROXY_EXTRA_CA_FILE", __file__),
        ("SERVICE_WEBHOOK_EXTRA_CA_FILE", __file__),
        ("SERVICE_CHECKPOINT_FILE", str(Path(__file__).parent)),
        ("SERVICE_RPC_URL_1", "localhost"),
        ("SERVICE_RPC_URL_1", "http://localhost:0"),
        ("SERVICE_PUBLIC_URL", "https://user:pw@custody.example.com"),
        ("SERVICE_PUBLIC_URL", "https://custody.example.com:99999"),
        ("SERVICE_PROXY_ALLOW_PRIVATE_HOSTS", "10.0.0.1/8"),
        ("SERVICE_PROXY_ALLOW_PRIVATE_HOSTS", "10.0.0.300"),
        ("SERVICE_PROXY_ALLOW_PRIVATE_HOSTS", "a b"),
        ("SERVICE_PROXY_EXTRA_CA_FILE", "/nowhere/ca.pem"),
        ("SERVICE_PROXY_CA_FILE", "/nowhere/at/all/ca.pem"),
        ("SERVICE_PROXY_CONNECT_SECONDS", "0"),
        ("SERVICE_PROXY_URL", "https://proxy.example.com"),
        ("SERVICE_PROXY_URL", "http://agent:token@proxy.example.com"),
        ("SERVICE_URL", "custody.example.com"),
        ("SERVICE_ALLOW_BROAD_SECRET_ROUTES", "perhaps"),
        ("SERVICE_ALLOW_COOKIE_INJECTION", "perhaps"),
        ("SERVICE_PUBLIC_URL", "http://custody.example.com"),
        ("SERVICE_MASTER_KEY_FILE", "/nowhere/at/all/master.key"),
        ("SERVICE_CHAINS_FILE", "/nowhere/chains.toml"),
        ("SERVICE_DEFAULT_CHAIN_ID", "7"),
        ("SERVICE_RPC_URL_7", "http://localhost"),
        ("SERVICE_RATE_LIMIT_STORE", "memcached://localhost"),
        ("SERVICE_REQUIRE_AUTH_SIGNATURE", "perhaps"),
        ("SERVICE_SMTP_URL", "mail.example.com"),
        ("SERVICE_RATE_LIMIT_NONCE", "many"),
        ("SERVICE_QUOTA_AGENTS", "many"),
        ("SERVICE_QUOTAS_FILE", "/nowhere/quotas.toml"),
        ("SERVICE_ALLOW_SELF_REGISTRATION", "perhaps"),
        ("SERVICE_DATABASE_URL", "postgresql://u:p/w@h/db"),
        ("SERVICE_DATABASE_URL_PROXY", "custody"),
    ],
)
def test_a_wrong_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(BadSetting) as refused:
        variables.check({name: value})

    assert refused.value.name == name


def test_the_variables_of_proxy_and_client_have_an_effect() -> None:
    given = {
        "SERVICE_PROXY_HOST": "127.0.0.1",
        "SERVICE_PROXY_PORT": "8080",
        "SERVICE_PROXY_WORKERS": "2",
        "SERVICE_PROXY_ALIASES": "up=up.example.com, other=up.example.com:8443",
        "SERVICE_PROXY_MAX_BODY_BYTES": "0",
        "SERVICE_PROXY_ALLOW_PRIVATE_HOSTS": "*.internal.example.com, localhost:8443, 10.0.0.0/8, [fd00::5]:8443",
        "SERVICE_PROXY_CONNECT_SECONDS": "1",
        "SERVICE_PROXY_HEADER_SECONDS": "1",
        "SERVICE_PROXY_IDLE_SECONDS": "1",
        "SERVICE_METRICS_PORT_PROXY": "3291",
        "SERVICE_ALLOW_BROAD_SECRET_ROUTES": "true",
        "SERVICE_ALLOW_COOKIE_INJECTION": "true",
        "SERVICE_URL": "https://custody.example.com",
        "SERVICE_PROXY_URL": "http://proxy.example.com:8080",
        "SERVICE_AGENT_ID": "a",
        "SERVICE_AGENT_TOKEN": "t",
        "SERVICE_AGENT_TOKEN_FILE": "agent.token",
        "SERVICE_MCP_PORT": "8090",
        "SERVICE_MCP_HOST": "0.0.0.0",
        "SERVICE_MCP_ALLOWED_HOSTS": "tools.example.com",
    }

    assert variables.check(given) == []


def test_a_misspelt_variable_is_named() -> None:
    assert variables.check({"SERVICE_API_PROT": "1", "PATH": "p", "SERVICE_API_PORT": "3200"}) == ["SERVICE_API_PROT"]


def test_a_wrong_value_that_may_hold_a_password_is_not_repeated() -> None:
    for name, value in (("SERVICE_PUBLIC_URL", "https://user:s3cret@h"), ("SERVICE_RPC_URL_1", "ws://key-s3cret")):
        with pytest.raises(BadSetting) as refused:
            variables.check({name: value})
        assert "s3cret" not in str(refused.value)


def test_variables_set_by_the_supervisor_are_known() -> None:
    given = {"SERVICE_PEER_UIDS": "api:1", "SERVICE_API_WORKER": "1", "SERVICE_PROXY_WORKER": "1"}

    assert variables.check(dict.fromkeys(variables.SET_BY_SUPERVISOR, "x") | given) == []


def test_production_says_everything_that_is_missing_at_once(tmp_path: Path) -> None:
    missing = production.missing(load({"SERVICE_ENV": "production", "SERVICE_HOME": str(tmp_path / "closed" / "home")}))

    assert any("SERVICE_PUBLIC_URL" in sentence for sentence in missing)
    assert any("SERVICE_PLATFORM_KEY_FILE" in sentence for sentence in missing)


def test_production_wants_no_key_of_the_state_folder(tmp_path: Path) -> None:
    (tmp_path / "platform.key").write_text("x" * 40)
    given = {"SERVICE_ENV": "production", "SERVICE_HOME": str(tmp_path), "SERVICE_PUBLIC_URL": "https://example.com"}

    missing = production.missing(load(given))

    assert any("outside the state folder" in sentence for sentence in missing)
    assert not any("SERVICE_PUBLIC_URL" in sentence for sentence in missing)

"""A mistake in the environment is named before anything starts; production tells all it needs. Decisions 2."""

from pathlib import Path

import pytest

from custody.cli import production, variables
from custody.cli.settings import load
from custody.kit.environment import BadSetting


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SERVICE_ENV", "staging"),
        ("SERVICE_API_WORKERS", "0"),
        ("SERVICE_METRICS_PORT_API", "http"),
        ("SERVICE_PUBLIC_URL", "http://custody.example.com"),
        ("SERVICE_MASTER_KEY_FILE", "/nowhere/at/all/master.key"),
        ("SERVICE_CHAINS_FILE", "/nowhere/chains.toml"),
        ("SERVICE_DEFAULT_CHAIN_ID", "7"),
        ("SERVICE_RPC_URL_7", "http://localhost"),
        ("SERVICE_RATE_LIMIT_STORE", "redis://localhost"),
        # Safety that cannot be kept is refused, never ignored.
        ("SERVICE_REQUIRE_AUTH_SIGNATURE", "true"),
    ],
)
def test_a_wrong_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(BadSetting) as refused:
        variables.check({name: value})

    assert refused.value.name == name


def test_a_misspelt_variable_is_named() -> None:
    assert variables.check({"SERVICE_API_PROT": "1", "PATH": "p", "SERVICE_API_PORT": "3200"}) == ["SERVICE_API_PROT"]


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

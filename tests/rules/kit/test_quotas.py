"""The operator's figures of what tenants may have: everybody's, and those of a file. No process is needed."""

from pathlib import Path

import pytest

from custody.kit import quota_settings, quotas
from custody.kit.environment import BadSetting
from custody.kit.errors import Conflict, TooMany
from tests.fixtures.each import each


def test_a_tenant_of_the_file_has_what_it_names_and_else_what_everybody_has(tmp_path: Path) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text('[acme]\nagents = 7\n["shop.example"]\norders = 0\n')

    limits = quota_settings.load(
        {"SERVICE_QUOTA_AGENTS": "5", "SERVICE_QUOTA_SECRETS": "9", "SERVICE_QUOTAS_FILE": str(file)}
    )

    assert [limits.of(name).agents for name in ("acme", "shop.example", "another")] == [7, 5, 5]
    assert (limits.of("acme").secrets, limits.of("shop.example").orders) == (9, 0)
    assert limits.of("another") == limits.everybody


@pytest.mark.parametrize(
    "content", ["[acme]\nagent = 1\n", "[acme]\nagents = -1\n", "[acme]\nagents = 'many'\n", "agents = 1\n", "[acme"]
)
def test_a_file_that_says_something_else_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "quotas.toml"
    file.write_text(content)

    with pytest.raises(BadSetting, match="SERVICE_QUOTAS_FILE"):
        quota_settings.load({"SERVICE_QUOTAS_FILE": str(file)})


def test_an_exceeded_quota_names_the_amount_and_the_cure() -> None:
    quotas.check("agents", 2, 3)
    quotas.check("agents", 10**9, 0)
    with pytest.raises(Conflict) as refused:
        quotas.check("policy_bytes", 900, 1000, 101)
    with pytest.raises(TooMany) as later:
        quotas.check("orders_per_day", 5, 5)

    assert refused.value.code == later.value.code == "quota_exceeded"
    assert refused.value.context == {"quota": "policyBytes", "used": 900, "limit": 1000}
    assert "make their lists shorter, or ask the operator for more" in refused.value.message
    assert 0 < later.value.retry_after <= 86_400


@each("name", [*quotas.Quotas.__struct_fields__, *quotas.People.__struct_fields__])
def test_every_quota_has_a_sentence(name: str) -> None:
    assert quotas.camel(name) == quotas.excess(name, 1, 1).context["quota"]

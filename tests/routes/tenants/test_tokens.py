"""Names that the owners of a tenant give its tokens: words that nobody else changes, and that judge nothing."""

from contextlib import closing
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Client, Tenant, rule
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service

ASSET = f"evm:1:0x{'ab' * 20}"
USDC = {"asset": ASSET, "symbol": "USDC", "decimals": 6}
SOLANA = {"asset": "solana:EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", "symbol": "USDC.s", "decimals": 6}
TOLD = "SELECT actor_id, metadata FROM audit WHERE tenant_id = $1 AND action = 'tenant.tokens_named' ORDER BY seq"


def name(somebody: Client, tenant: Tenant, *tokens: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = somebody.ok("PUT", f"/tenants/{tenant.id}/tokens", {"tokens": [*tokens]})["tokens"]
    return found


def names(somebody: Client, tenant: Tenant) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = somebody.ok("GET", f"/tenants/{tenant.id}/tokens")["tokens"]
    return found


def test_an_owner_names_tokens_and_everybody_of_the_team_reads_them(tenant: Tenant, as_owner: Person) -> None:
    assert names(tenant, tenant) == []
    upper = {**USDC, "asset": f"evm:1:0x{'AB' * 20}"}

    assert name(as_owner, tenant, upper, SOLANA) == [USDC, SOLANA]

    assert names(tenant, tenant) == names(as_owner, tenant) == [USDC, SOLANA]
    assert name(as_owner, tenant) == names(tenant, tenant) == []


def test_the_tenants_key_and_an_admin_without_a_factor_name_none(
    service: Service, tenant: Tenant, as_owner: Person
) -> None:
    name(as_owner, tenant, USDC)
    path, body = f"/tenants/{tenant.id}/tokens", {"tokens": []}

    assert tenant.put(path, json=body).status_code == 403
    with closing(member(service, tenant, "admin")) as admin, closing(member(service, tenant, "developer")) as developer:
        assert admin.put(path, json=body).json()["data"]["code"] == "mfa_required"
        assert developer.put(path, json=body).status_code == 403
    assert names(tenant, tenant) == [USDC]


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ([USDC, {**USDC, "symbol": "USDT"}], "is named twice"),
        ([{**USDC, "symbol": "eth"}], "as a chain's own coin is"),
        ([{**USDC, "asset": "evm:native"}], "is no token"),
        ([{**USDC, "asset": "evm:137:native"}], "is no token"),
        ([{**USDC, "asset": "usd"}], "is no token"),
        ([{**USDC, "asset": "evm:1:0x12"}], "is no token"),
        ([{**USDC, "symbol": "US DC"}], "letters, digits"),
        ([{**USDC, "symbol": "U\u0405DC"}], "letters, digits"),
        ([{**USDC, "decimals": 37}], "decimals"),
        ([USDC] * 65, "64"),
    ],
)
def test_a_name_that_would_mislead_is_refused(
    tenant: Tenant, as_owner: Person, tokens: list[dict[str, Any]], said: str
) -> None:
    answer = as_owner.put(f"/tenants/{tenant.id}/tokens", json={"tokens": tokens})

    assert answer.status_code == 400
    assert said in answer.json()["error"]


def test_the_configuration_is_changed_without_the_names(tenant: Tenant, as_owner: Person) -> None:
    name(as_owner, tenant, USDC)
    as_owner.ok("PUT", f"/tenants/{tenant.id}/config", {"displayName": "Shown", "authAbuseConfig": {"mfa": {}}})
    assert names(tenant, tenant) == [USDC]

    name(as_owner, tenant, SOLANA)
    assert as_owner.ok("GET", f"/tenants/{tenant.id}/config")["displayName"] == "Shown"


def test_a_name_changes_nothing_that_is_judged(tenant: Tenant, as_owner: Person) -> None:
    """Ten of the smallest unit are ten, however many digits the owners put behind the point."""
    asset = f"evm:31337:{OTHER_ADDRESS.lower()}"
    agent = tenant.agent(rule("spending-limit", asset=asset, maxPerTx="10"))

    def send(amount: int) -> int:
        data = f"0xa9059cbb{ADDRESS[2:]:0>64}{amount:064x}"
        return agent.sign(to=OTHER_ADDRESS, value=0, data=data).status_code

    before = [send(10), send(11)]
    name(as_owner, tenant, {"asset": asset, "symbol": "USDC", "decimals": 6})

    assert [send(10), send(11)] == before
    assert before[1] == 403


async def test_names_given_and_dropped_are_in_the_audit_trail(
    service: Service, tenant: Tenant, as_owner: Person, owner: asyncpg.Connection
) -> None:
    name(as_owner, tenant, USDC)
    name(as_owner, tenant, {**SOLANA, "decimals": 9})

    first, second = await owner.fetch(TOLD, tenant.id)
    assert first["actor_id"] == second["actor_id"] == as_owner.id
    assert '"USDC, 6 decimals"' in first["metadata"]
    assert '"USDC.s, 9 decimals"' in second["metadata"]
    assert f'["{ASSET}"]' in second["metadata"].replace(" ", "")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tenant_config SET judging = replace(judging, 'USDC', 'USDT') WHERE tenant_id = $1",
        "UPDATE tenant_config SET judging = replace(judging, '\"decimals\":6', '\"decimals\":4') WHERE tenant_id = $1",
        "UPDATE tenant_config SET mac = '' WHERE tenant_id = $1",
    ],
    ids=["renamed", "moved the point", "without a seal"],
)
async def test_a_database_writer_renames_no_token(
    service: Service, tenant: Tenant, as_owner: Person, owner: asyncpg.Connection, change: str
) -> None:
    name(as_owner, tenant, USDC)
    assert names(tenant, tenant) == [USDC]

    assert await owner.execute(change, tenant.id) == "UPDATE 1"

    answer = tenant.get(f"/tenants/{tenant.id}/tokens")
    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "sealed_value_tampered")

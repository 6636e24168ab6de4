"""Limits in dollars over the whole service: what is charged, what has no price, and prices that change."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ops import places
from tests.fixtures.callers import ADDRESS, Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of, partner_of
from tests.fixtures.people import member
from tests.fixtures.server import Service
from tests.routes.vault.bitcoin import LISTED, payment, sign_psbt
from tests.routes.vault.transfers import with_signer

TOKEN = "0x" + "7a" * 20
UNLISTED = "0x" + "7b" * 20
CHAINS = f"""
[[chains]]
id = 10
tokens = [{{address = "{TOKEN}", symbol = "USDC", decimals = 6}}]
"""
# A wei comes to a millionth of a dollar, and then to three.
WEI = 10**12


def _settings(folder: Path, wei: int) -> dict[str, str]:
    folder.mkdir()
    (folder / "chains.toml").write_text(CHAINS)
    lines = {"evm:10:native": wei, f"evm:10:{TOKEN}": 1, f"evm:10:{UNLISTED}": 1, "POL": 1, "bitcoin": 100}
    (folder / "prices.toml").write_text("".join(f'"{name}" = "{price}"\n' for name, price in lines.items()))
    return {"SERVICE_CHAINS_FILE": str(folder / "chains.toml"), "SERVICE_PRICES_FILE": str(folder / "prices.toml")}


@pytest.fixture(scope="module")
def deployment(
    postgres_home: places.Home, worker_id: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("prices") / "first"
    with deploy(database_apart(postgres_home, f"{worker_id}_dollars"), **_settings(folder, WEI)) as service:
        yield service


@pytest.fixture
def payers(deployment: Service) -> Iterator[Tenant]:
    with new_tenant(deployment) as tenant:
        yield tenant


def limit(most: int, **more: Any) -> dict[str, Any]:
    return rule("spending-limit", maxPerDay=str(most), asset="usd", **more)


def pay(agent: Agent, wei: int, chain: int = 10) -> int:
    return agent.sign(to=ADDRESS, value=wei, chainId=chain).status_code


def pay_tokens(agent: Agent, amount: int, token: str = TOKEN) -> int:
    data = "0xa9059cbb" + ADDRESS[2:].rjust(64, "0") + f"{amount:064x}"
    return agent.sign(to=token, value=0, data=data, chainId=10).status_code


def spend_of(agent: Agent) -> dict[str, str]:
    page = agent.ok("GET", f"/dashboard/{agent.id}")
    return {one["asset"]: one["today"] for one in page["spend"]["assets"]}


def test_coins_and_tokens_fill_one_limit_and_what_was_before_it_counts(payers: Tenant) -> None:
    agent = payers.agent()
    assert (pay(agent, 3), pay_tokens(agent, 4)) == (200, 200)
    payers.ok("PUT", f"/agents/{agent.id}/policies", [limit(10)])

    assert (pay(agent, 4), pay_tokens(agent, 2), pay(agent, 1)) == (403, 200, 200)
    assert spend_of(agent) == {"evm:10:native": "4", f"evm:10:{TOKEN}": "6", "usd": "10"}
    order = {"kind": "evm", "request": {"to": ADDRESS, "value": "1", "chainId": 10, "broadcast": False}}
    foreseen = agent.ok("POST", f"/vault/{agent.id}/simulate", order)
    assert foreseen["decision"] == "refuse"
    assert [(one["asset"], one["spent"], one["remaining"]) for one in foreseen["budgets"]] == [("usd", "10", "0")]


def test_an_asset_without_a_price_waits_for_a_person_and_charges_no_dollars(payers: Tenant) -> None:
    agent = payers.agent(limit(10))

    # POL has a symbol's price alone, and nobody said how many decimals the other token has.
    assert (pay(agent, 1, chain=137), pay_tokens(agent, 1, UNLISTED), pay(agent, 1)) == (202, 202, 200)

    for one in payers.ok("GET", f"/approvals?agentId={agent.id}"):
        assert payers.post(f"/approvals/{one['id']}/approve", json={}).status_code == 200
    assert spend_of(agent)["usd"] == "1"


def test_an_order_above_a_threshold_in_dollars_waits_and_is_found_by_its_worth(payers: Tenant) -> None:
    agent = payers.agent(limit(100), rule("auto-approve-threshold", threshold="5", asset="usd"))

    assert [pay(agent, wei) for wei in (5, 6, 9)] == [200, 202, 202]

    found = payers.ok("GET", f"/approvals?agentId={agent.id}&asset=usd&minAmount=7")
    assert len(found) == 1


def test_a_price_that_changes_leaves_what_was_charged(deployment: Service, payers: Tenant, tmp_path: Path) -> None:
    agent = payers.agent(limit(10))
    assert pay(agent, 4) == 200

    address = {"SERVICE_PUBLIC_URL": f"http://localhost:{deployment.port}"}
    with partner_of(deployment, **_settings(tmp_path / "second", 3 * WEI), **address) as dearer:
        agent.base_url = dearer.url
        # Three times as dear: four are charged, and six more at most.
        assert [pay(agent, wei) for wei in (3, 2, 1)] == [403, 200, 403]
        assert spend_of(agent)["usd"] == "10"
        # What was signed by then is judged by what it was charged, whatever it would cost now.
        asked = {"policies": [limit(10)], "days": 1}
        found = payers.ok("POST", f"/agents/{agent.id}/policies/backtest", asked)
        assert (found["examined"], found["changed"]) == (4, [])
        asked["policies"] = [limit(9)]
        found = payers.ok("POST", f"/agents/{agent.id}/policies/backtest", asked)
        assert [(one["was"], one["now"]) for one in found["changed"]] == [("refuse", "sign"), ("sign", "refuse")]


def test_a_replaced_order_counts_once_at_the_larger_worth(payers: Tenant) -> None:
    agent = payers.agent(limit(10))

    assert agent.sign(to=ADDRESS, value=8, chainId=10, nonce=0).status_code == 200
    assert agent.sign(to=ADDRESS, value=9, chainId=10, nonce=0).status_code == 200
    assert agent.sign(to=ADDRESS, value=2, chainId=10, nonce=0).status_code == 200
    assert pay(agent, 2) == 403
    assert pay(agent, 1) == 200


def budget(most: int, **more: Any) -> dict[str, Any]:
    return rule("spending-limit", maxTotal=str(most), **more)


async def test_a_limit_for_life_counts_what_left_every_window(deployment: Service, payers: Tenant) -> None:
    agent = payers.agent()
    assert (pay(agent, 3), pay(agent, 2, chain=137), pay_tokens(agent, 4)) == (200, 200, 200)
    async with owner_of(deployment.database) as owner:
        # As if it had been weeks ago: the hours are gone.
        await owner.execute(
            "UPDATE transactions SET created_at = created_at - interval '90 days' WHERE tenant_id = $1", payers.id
        )
        await owner.execute("DELETE FROM spend WHERE tenant_id = $1", payers.id)
    rules = [
        budget(10),
        budget(8, asset="evm:10:native"),
        budget(5, asset=f"evm:10:{TOKEN.upper().replace('0X', '0x')}"),
    ]
    payers.ok("PUT", f"/agents/{agent.id}/policies", rules)

    page = agent.ok("GET", f"/dashboard/{agent.id}")
    assert [(one["asset"], one["window"], one["spent"]) for one in page["budgets"]] == [
        ("evm:native", "total", "5"),
        ("evm:10:native", "total", "3"),
        (f"evm:10:{TOKEN}", "total", "4"),
    ]
    assert [pay_tokens(agent, 2), pay_tokens(agent, 1)] == [403, 200]
    # Each signature counts at once, also for the next one that is judged without a look at the database.
    assert [pay(agent, 1) for _ in range(6)] == [200] * 5 + [403]
    assert pay(agent, 1, chain=137) == 403
    # Other rules on the same requests: what is older than the windows counts there too.
    found = payers.ok("POST", f"/agents/{agent.id}/policies/backtest", {"policies": [budget(9)], "days": 1})
    assert [(one["was"], one["now"]) for one in found["changed"]] == [
        ("sign", "refuse"),
        # Tokens are in no other rule.
        ("sign", "queue"),
        ("refuse", "queue"),
    ]


def test_a_replacement_counts_once_for_life(payers: Tenant) -> None:
    agent = payers.agent(budget(10, asset="evm:10:native"))

    for wei, status in ((8, 200), (10, 200), (2, 200), (11, 403)):
        assert agent.sign(to=ADDRESS, value=wei, chainId=10, nonce=0).status_code == status
    assert pay(agent, 1) == 403


def test_an_ended_rule_lets_nothing_pass_and_an_agent_cannot_put_its_end_off(payers: Tenant) -> None:
    ends = [limit(10, until=f"{year}-01-01T00:00:00Z") for year in (2020, 2090, 2095)]
    agent = payers.agent(ends[1])
    assert pay(agent, 1) == 200

    assert agent.put(f"/agents/{agent.id}/policies", json=[ends[2]]).json()["data"]["code"] == "policy_loosened"
    agent.ok("PUT", f"/agents/{agent.id}/policies", [ends[0]])

    assert pay(agent, 1) == 403
    soft = rule("auto-approve-threshold", threshold="9", until="2020-01-01T00:00:00Z")
    payers.ok("PUT", f"/agents/{agent.id}/policies", [soft])
    assert pay(agent, 1) == 202
    assert payers.ok("GET", f"/agents/{agent.id}/policies")[0]["config"]["until"] == "2020-01-01T00:00:00Z"


def test_the_same_psbt_counts_its_dollars_once(deployment: Service, payers: Tenant) -> None:
    """A satoshi is worth a millionth of a dollar."""
    with closing(member(deployment, payers.id, "owner", mfa=True)) as owner:
        agent = with_signer(owner, payers.agent(LISTED, limit(62_000)), "sign_transaction")
        psbt = payment(agent, 30_000)

        again = [sign_psbt(agent, psbt).status_code for _ in range(3)]
        more = [sign_psbt(agent, payment(agent, amount)).status_code for amount in (30_001, 30_000, 1_000)]

    assert (again, more) == ([200] * 3, [403, 200, 403])

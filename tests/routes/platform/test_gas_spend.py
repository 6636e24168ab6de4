"""Fees that the operator's report is about; their sums are in tests/tx_tracking/test_fees_paid.py."""

import time
from contextlib import closing
from typing import Any

import asyncpg
import httpx
import pytest

from tests.fixtures.callers import Agent, Client, Tenant
from tests.fixtures.people import Person, sign_in
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode
from tests.routes.platform.test_users import code_of, fresh, name_user

DAY = 86_400


def ask(operator: Client, tenant: Tenant | str, **query: Any) -> httpx.Response:
    tenant_id = tenant if isinstance(tenant, str) else tenant.id
    return operator.get("/platform/apps/gas_spend", params={"tenant_id": tenant_id, **query})


def report(operator: Client, tenant: Tenant | str, **query: Any) -> dict[str, Any]:
    answer = ask(operator, tenant, **query)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


def send(agent: Agent, evm_node: EvmNode) -> str:
    """A broadcast order; its id."""
    evm_node.fund(agent.evm_address)
    answer = agent.sign(broadcast=True)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["data"]["txId"])


async def age(owner: asyncpg.Connection, tx_id: str, days: float) -> None:
    """Let an order have been asked for so long ago."""
    await owner.execute(
        "UPDATE transactions SET created_at = now() - make_interval(secs => $2) WHERE id = $1", tx_id, days * DAY
    )


def test_without_a_price_an_entry_has_none_and_the_sums_are_there(
    as_platform: Client, tenant: Tenant, agent: Agent, evm_node: EvmNode
) -> None:
    empty = report(as_platform, tenant)
    tx = send(agent, evm_node)

    found = report(as_platform, tenant)

    nothing = {"tenantId": tenant.id, "walletIds": [], "reservedUsd": "0.000000", "actualUsd": "0.000000"}
    assert empty == {**nothing, "count": 0, "entries": []}
    [entry] = found.pop("entries")
    assert found == {**nothing, "count": 1}
    assert (entry["id"], entry["reservedUsd"], entry["actualUsd"]) == (tx, None, None)


async def test_without_timestamps_it_is_the_last_thirty_days(
    as_platform: Client, tenant: Tenant, agent: Agent, evm_node: EvmNode, owner: asyncpg.Connection
) -> None:
    recent, old = send(agent, evm_node), send(agent, evm_node)
    await age(owner, recent, 29.9)
    await age(owner, old, 30.1)
    now = int(time.time())

    def ids(**query: Any) -> list[str]:
        return [entry["id"] for entry in report(as_platform, tenant, **query)["entries"]]

    assert ids() == [recent]
    assert ids(end_timestamp=now - 30 * DAY) == [old]
    assert ids(start_timestamp=now - 31 * DAY, end_timestamp=(now - DAY) * 1000) == [recent, old]
    assert ids(start_timestamp=(now - 30 * DAY + 60) * 1000) == [recent]
    assert ids(start_timestamp=now - DAY) == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"start_timestamp": 1_700_000_000, "end_timestamp": 1_700_000_000 + 30 * DAY + 1}, "bad_gas_range"),
        ({"start_timestamp": 1_700_000_000_000, "end_timestamp": 1_700_000_000 + 31 * DAY}, "bad_gas_range"),
        ({"start_timestamp": 1_700_000_000}, "bad_gas_range"),
        ({"start_timestamp": 1_700_000_001, "end_timestamp": 1_700_000_000}, "bad_gas_range"),
        ({"start_timestamp": 9_999_999_999}, "bad_gas_range"),
        ({"end_timestamp": "9" * 15}, "bad_gas_range"),
        ({"end_timestamp": 0}, "bad_gas_range"),
        ({"start_timestamp": "-1"}, "bad_query"),
        ({"start_timestamp": "1.5"}, "bad_query"),
        ({"start_timestamp": ""}, "bad_query"),
        ({"start_timestamp": "2026-01-01"}, "bad_query"),
        ({"end_timestamp": "9" * 16}, "bad_query"),
        ({"wallet_ids": ","}, "bad_wallet_id"),
        ({"wallet_ids": "a,,b"}, "bad_wallet_id"),
        ({"wallet_ids": ",".join(f"a{n}" for n in range(101))}, "bad_wallet_id"),
        ({"wallet_external_ids": ",".join(f"a{n}" for n in range(101))}, "bad_wallet_id"),
        ({"wallet_ids": "a b"}, "bad_wallet_id"),
        ({"wallet_ids": "a/b"}, "bad_wallet_id"),
        ({"wallet_ids": "x" * 129}, "bad_wallet_id"),
        ({"wallet_external_ids": "a b"}, "bad_wallet_id"),
        ({"walletExternalIds": "x" * 129}, "bad_wallet_id"),
        ({"walletExternalIds": "x", "wallet_external_ids": "y"}, "bad_wallet_id"),
        ({"wallet_ids": ""}, "bad_query"),
        ({"sponsor": "true"}, "sponsorship_unavailable"),
        ({"limit": 0}, "bad_query"),
        ({"limit": 1001}, "bad_query"),
    ],
    ids=range(26),
)
def test_a_bad_question_is_400(as_platform: Client, tenant: Tenant, query: dict[str, Any], code: str) -> None:
    assert code_of(ask(as_platform, tenant, **query)) == (400, code)


def test_exactly_thirty_days_in_either_unit_are_taken(as_platform: Client, tenant: Tenant) -> None:
    begin = 1_700_000_000

    for end in (begin + 30 * DAY, (begin + 30 * DAY) * 1000):
        assert report(as_platform, tenant, start_timestamp=begin * 1000, end_timestamp=end)["count"] == 0


def test_without_a_tenant_or_of_an_unknown_one(as_platform: Client) -> None:
    assert code_of(as_platform.get("/platform/apps/gas_spend")) == (400, "bad_query")
    assert code_of(ask(as_platform, "absent")) == (404, "tenant_absent")


def test_a_wallet_that_the_tenant_has_not_is_404(
    as_platform: Client, tenant: Tenant, other_tenant: Tenant, agent: Agent
) -> None:
    theirs = other_tenant.agent().id

    assert report(as_platform, tenant, wallet_ids=f" {agent.id},{agent.id} ")["walletIds"] == [agent.id]
    for ids in (theirs, f"{agent.id},{theirs}", "absent"):
        assert code_of(ask(as_platform, tenant, wallet_ids=ids)) == (404, "wallet_absent")


def account_of(tenant: Tenant, user: str, *agents: Agent) -> None:
    """An account of the tenant that names a person as its owner."""
    body = {"ownerUserIds": [user], "walletIds": [agent.id for agent in agents]}
    tenant.ok("POST", "/accounts", body)


def test_an_external_id_means_the_one_wallet_of_its_person(
    as_platform: Client, tenant: Tenant, agent: Agent, evm_node: EvmNode
) -> None:
    external_id, tx = fresh(), send(agent, evm_node)
    another = tenant.agent()
    send(another, evm_node)
    user = name_user(as_platform, tenantId=tenant.id, walletExternalId=external_id)
    before = ask(as_platform, tenant, wallet_external_ids=external_id)
    account_of(tenant, user, agent)

    found = report(as_platform, tenant, wallet_external_ids=external_id)
    spelled = report(as_platform, tenant, walletExternalIds=external_id, wallet_ids=another.id)

    assert code_of(before) == (404, "wallet_external_id_absent")
    assert (found["walletIds"], [entry["id"] for entry in found["entries"]]) == ([agent.id], [tx])
    assert (spelled["walletIds"], spelled["count"]) == ([another.id, agent.id], 2)


def test_one_that_means_two_wallets_is_409_and_an_unknown_one_404(
    as_platform: Client, tenant: Tenant, other_tenant: Tenant, agent: Agent
) -> None:
    external_id, elsewhere = fresh(), fresh()
    account_of(tenant, name_user(as_platform, tenantId=tenant.id, walletExternalId=external_id), agent, tenant.agent())
    name_user(as_platform, tenantId=other_tenant.id, walletExternalId=elsewhere)

    assert code_of(ask(as_platform, tenant, wallet_external_ids=external_id)) == (409, "wallet_ambiguous")
    for unknown in (elsewhere, fresh()):
        answer = ask(as_platform, tenant, wallet_external_ids=unknown)
        assert code_of(answer) == (404, "wallet_external_id_absent")


def test_a_persons_own_wallet_has_the_external_id_in_their_tenant(service: Service, as_platform: Client) -> None:
    with closing(sign_in(service)) as person:
        person.enrol_totp()
        wallet = person.ok("POST", "/user/me/wallet", {})
        body = {"tenantId": person.tenant, "walletExternalId": (external_id := fresh())}
        as_platform.ok("POST", f"/platform/users/{person.id}/wallet/external-id", body)

        found = report(as_platform, person.tenant, wallet_external_ids=external_id)
        person.ok("POST", "/user/me/wallet", {"walletIndex": 1})
        answer = ask(as_platform, person.tenant, wallet_external_ids=external_id)

    assert found["walletIds"] == [wallet["agentId"]]
    assert code_of(answer) == (409, "wallet_ambiguous")


def test_only_the_operator_reads_it(as_nobody: Client, as_owner: Person, tenant: Tenant) -> None:
    assert [ask(one, tenant).status_code for one in (as_nobody, tenant, as_owner)] == [401, 403, 403]

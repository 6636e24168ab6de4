"""A quote says what the transfer then does, and leaves no trace."""

from contextlib import closing
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import OTHER_ADDRESS, Agent, Client, Tenant, rule
from tests.fixtures.eventually import soon
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode
from tests.routes.orders import TOKEN_CONTRACT
from tests.routes.vault.transfers import fields, list_entry, transfer, with_signer

RULES = (
    rule("spending-limit", maxPerTransaction="500", maxPerDay="1000"),
    rule("auto-approve-threshold", threshold="100"),
    rule("contract-allowlist", contracts=[list_entry()]),
)
TABLES = ("transactions", "approvals", "spend", "rate", "nonces", "idempotency", "audit", "outbox")


def quote(client: Client, agent: Agent, **changed: Any) -> dict[str, Any]:
    return client.ok("POST", f"/vault/{agent.id}/actions/transfer/quote", fields(**changed))


async def rows_of(owner: asyncpg.Connection, tenant: str) -> dict[str, int]:
    return {
        table: await owner.fetchval(f"SELECT count(*) FROM {table} WHERE tenant_id = $1", tenant) for table in TABLES
    }


async def test_a_quote_writes_nothing_and_counts_nothing(
    as_owner: Person, tenant: Tenant, owner: asyncpg.Connection
) -> None:
    agent = tenant.agent(*RULES, rule("rate-limit", maxTxPerHour=1))
    # The change of the rules is an event, which the scheduler takes out of the outbox meanwhile.
    await soon(lambda: owner.fetchval("SELECT count(*) FROM outbox WHERE tenant_id = $1", tenant.id), 0)
    before = await rows_of(owner, tenant.id)

    decisions = [quote(as_owner, agent, value=value)["decision"] for value in ("1", "101", "501", "1", "1")]

    assert decisions == ["sign", "queue", "refuse", "sign", "sign"]
    assert await rows_of(owner, tenant.id) == before
    assert agent.sign(value=1).status_code == 200


def test_a_quote_has_the_whole_transfer(as_owner: Person, tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent(*RULES)
    evm_node.fund(agent.evm_address)

    said = quote(as_owner, agent, amountWei="7", value=..., token="native")

    transferred = {"to": fields()["to"], "value": "7", "token": "native"}
    request = {**transferred, "amountWei": None, "chainId": 31337, "broadcast": False, "referenceId": None}
    assert said["request"] == {**request, "sponsor": False}
    assert {name: said[name] for name in ("type", "chainId", "caip2", "from", *transferred)} == {
        "type": "transfer",
        "chainId": 31337,
        "caip2": "eip155:31337",
        "from": agent.evm_address,
        **transferred,
    }
    assert (said["fee"]["asset"], int(said["fee"]["max"]) > 0, "usd" in said["fee"]) == ("evm:native", True, False)
    assert said["budgets"][0]["remaining"] == "1000"
    assert (said["decision"], said["needed"], said["effects"][0]["amount"]) == ("sign", [], "7")
    assert quote(as_owner, agent)["quoteId"] != said["quoteId"]


@pytest.mark.parametrize(
    "changed",
    [{"value": "100"}, {"value": "101"}, {"value": "501"}, {"token": TOKEN_CONTRACT}, {"token": OTHER_ADDRESS}],
    ids=str,
)
def test_a_quote_says_what_the_transfer_then_does(as_owner: Person, tenant: Tenant, changed: dict[str, str]) -> None:
    agent = with_signer(as_owner, tenant.agent(*RULES))

    said = quote(as_owner, agent, **changed)
    done = transfer(agent, **{name: one for name, one in said["request"].items() if one is not None})

    row = agent.ok("GET", f"/vault/{agent.id}/transactions/{done.json()['data']['txId']}")
    assert {200: "sign", 202: "queue", 403: "refuse"}[done.status_code] == said["decision"]
    assert (row["policyResults"], row["effects"]) == (said["results"], said["effects"])


def test_a_quote_without_a_reference_gives_its_own(as_owner: Person, tenant: Tenant, evm_node: EvmNode) -> None:
    agent = with_signer(as_owner, tenant.agent(*RULES))
    evm_node.fund(agent.evm_address)

    said = quote(as_owner, agent, broadcast=True)
    request = {name: one for name, one in said["request"].items() if one is not None}
    first, again = transfer(agent, **request), transfer(agent, **request)

    assert (said["decision"], request["referenceId"]) == ("sign", said["quoteId"])
    assert (first.status_code, again.json()["data"]["id"]) == (200, first.json()["data"]["id"])
    assert quote(as_owner, agent, broadcast=True, referenceId="mine")["request"]["referenceId"] == "mine"


def test_a_quote_names_what_is_missing(as_owner: Person, tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent(*RULES)

    assert quote(as_owner, agent)["needed"] == ["funds"]
    assert quote(as_owner, agent, value="101")["needed"] == ["approval", "funds"]
    # That chain has no node here.
    assert quote(as_owner, agent, chainId=8453, broadcast=True, referenceId="r")["needed"] == ["rpc"]
    assert quote(as_owner, agent, chainId=8453, broadcast=True, referenceId="r", value="501")["needed"] == []


def test_a_quote_is_for_owners_and_admins_with_a_recent_second_factor(
    service: Service, tenant: Tenant, agent: Agent
) -> None:
    path = f"/vault/{agent.id}/actions/transfer/quote"
    with (
        closing(member(service, tenant, "developer", mfa=True)) as developer,
        closing(member(service, tenant, "admin")) as admin,
    ):
        refused = [client.post(path, json=fields()) for client in (developer, admin, agent, tenant)]

    assert [answer.status_code for answer in refused] == [403] * 4
    assert [answer.json()["data"]["code"] for answer in refused] == [
        "wrong_role",
        "mfa_required",
        "wrong_kind",
        "wrong_kind",
    ]


def test_an_agent_simulates_its_own_transfer(tenant: Tenant) -> None:
    agent = tenant.agent(*RULES)

    said = agent.ok("POST", f"/vault/{agent.id}/simulate", {"kind": "transfer", "request": fields(value="101")})

    assert said["decision"] == "queue"

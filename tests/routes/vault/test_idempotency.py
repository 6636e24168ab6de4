"""One key, one signature: repeated, at once, after a hang-up, and for what was refused."""

import asyncio
import json
import socket
import uuid
from urllib.parse import urlsplit

import asyncpg
import httpx

from tests.fixtures.callers import ADDRESS, Agent, AsyncClient, Tenant, rule
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode


async def at_once(agent: Agent, count: int, key: str, **changed: str) -> list[httpx.Response]:
    headers = {**agent.headers, "Idempotency-Key": key}
    async with AsyncClient(base_url=agent.base_url, headers=headers, timeout=30) as client:
        order = {"to": ADDRESS, "value": "1", "broadcast": False, **changed}
        return await asyncio.gather(*(client.post(f"/vault/{agent.id}/sign", json=order) for _ in range(count)))


async def test_sixty_four_at_once_under_one_key_are_one_transaction(agent: Agent) -> None:
    answers = await at_once(agent, 64, str(uuid.uuid4()))

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
    assert len(agent.ok("GET", f"/vault/{agent.id}/history")) == 1


async def test_at_once_under_one_key_and_broadcast_the_node_gets_one(agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address)

    answers = await at_once(agent, 16, str(uuid.uuid4()), broadcast=True)  # type: ignore[arg-type]

    assert {answer.status_code for answer in answers} == {200}
    [tx_hash] = {answer.json()["data"]["txHash"] for answer in answers}
    assert evm_node.receipt(tx_hash)["status"] == "0x1"
    assert evm_node.sent_from(agent.evm_address) == 1


def test_equal_requests_without_a_key_are_two_payments(agent: Agent) -> None:
    first, second = agent.sign().json()["data"], agent.sign().json()["data"]

    assert first["txId"] != second["txId"]


def test_a_key_is_the_agents_own(tenant: Tenant) -> None:
    one, two = tenant.agent(), tenant.agent()
    key = str(uuid.uuid4())

    answers = [one.sign(key=key), two.sign(key=key)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert "Idempotency-Replayed" not in answers[1].headers


def test_refused_and_queued_answers_are_kept(tenant: Tenant) -> None:
    agent = tenant.agent(
        rule("spending-limit", maxPerTransaction="10"),
        rule("auto-approve-threshold", threshold="5"),
    )
    for value, status in ((11, 403), (6, 202)):
        key = str(uuid.uuid4())

        first, second = agent.sign(value=value, key=key), agent.sign(value=value, key=key)

        assert (first.status_code, second.status_code) == (status, status)
        assert first.json() == second.json()
        assert second.headers["Idempotency-Replayed"] == "true"
    assert len(agent.ok("GET", f"/vault/{agent.id}/history")) == 2


async def test_a_rate_limit_leaves_the_key_free_and_it_signs_once(tenant: Tenant) -> None:
    agent = tenant.agent(rule("rate-limit", maxTxPerHour=1))
    assert agent.sign().status_code == 200
    key = str(uuid.uuid4())

    early = [agent.sign(key=key) for _ in range(2)]
    other = agent.sign(value=5, key=key)
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [rule("rate-limit", maxTxPerHour=2)])
    late = await at_once(agent, 8, key)

    assert [answer.status_code for answer in (*early, other)] == [429] * 3
    assert all("Idempotency-Replayed" not in answer.headers for answer in early)
    assert {answer.status_code for answer in late} == {200}
    assert len({answer.text for answer in late}) == 1
    signed = [row for row in agent.ok("GET", f"/vault/{agent.id}/history") if row["status"] == "signed"]
    assert len(signed) == 2


def test_a_replay_stays_the_same_after_the_rules_have_changed(tenant: Tenant, agent: Agent) -> None:
    key = str(uuid.uuid4())
    first = agent.sign(key=key)

    tenant.ok("PUT", f"/agents/{agent.id}/policies", [rule("spending-limit", maxPerTransaction="0")])

    assert agent.sign(key=key).json() == first.json()
    assert agent.sign().status_code == 403


def test_a_failed_preparation_frees_the_key(agent: Agent, evm_node: EvmNode) -> None:
    key = str(uuid.uuid4())
    assert agent.sign(broadcast=True, key=key).status_code == 502

    evm_node.fund(agent.evm_address)

    assert agent.sign(broadcast=True, key=key).status_code == 200


async def test_a_key_is_free_again_after_its_day(agent: Agent, tenant: Tenant, owner: asyncpg.Connection) -> None:
    key = str(uuid.uuid4())
    first = agent.sign(key=key)
    await owner.execute("UPDATE idempotency SET expires_at = now() WHERE tenant_id = $1", tenant.id)

    assert agent.sign(key=key).json()["data"]["txId"] != first.json()["data"]["txId"]


def test_a_client_that_hangs_up_changes_nothing(service: Service, agent: Agent, evm_node: EvmNode) -> None:
    evm_node.fund(agent.evm_address)
    body = json.dumps({"to": ADDRESS, "value": "7"}).encode()
    key = str(uuid.uuid4())
    lines = [
        f"POST /vault/{agent.id}/sign HTTP/1.1",
        "Host: x",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        f"Idempotency-Key: {key}",
        f"Authorization: {agent.headers['Authorization']}",
    ]
    address = urlsplit(service.url)
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    again = agent.post(
        f"/vault/{agent.id}/sign", content=body, headers={"Content-Type": "application/json", "Idempotency-Key": key}
    )

    assert again.status_code == 200, again.text
    rows = agent.ok("GET", f"/vault/{agent.id}/history")
    assert [(row["status"], row["txHash"]) for row in rows] == [("broadcast", again.json()["data"]["txHash"])]
    assert evm_node.receipt(rows[0]["txHash"])["status"] == "0x1"
    assert evm_node.sent_from(agent.evm_address) == 1

"""The page at `/llms.txt` says what is so: its requests are sent as they stand, and its rules are what happens."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.callers import Agent, Client, Tenant, rule
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode

# Nobody has this one.
NO_TRANSACTION = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(name="spender")
def spender_fixture(tenant: Tenant, evm_node: EvmNode) -> Agent:
    """An agent with money, which may pay at once up to 50 wei."""
    agent = tenant.agent(
        rule("auto-approve-threshold", threshold="50"), rule("spending-limit", maxPerTransaction="500")
    )
    evm_node.fund(agent.evm_address)
    return agent


def steps(page: str) -> list[str]:
    """Every request of the page, by the order on it."""
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    return [step for block in blocks for step in re.findall(r"^curl (?:.*\\\n)*.*$", block, re.MULTILINE)]


def send(service: Service, agent: Agent, step: str, folder: Path, tx: str = NO_TRANSACTION) -> tuple[int, Any]:
    """Send a request of the page as a shell does; the status, and the answer."""
    given = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "SERVICE_URL": service.url,
        "SERVICE_AGENT_TOKEN": agent.headers["Authorization"].removeprefix("Bearer "),
        "AGENT": agent.id,
        "TX": tx,
    }
    command = step.replace("curl -sS", "curl -sS -w '\\n%{http_code}'")
    ran = subprocess.run(
        ["sh", "-euc", command], cwd=folder, env=given, check=True, capture_output=True, text=True, timeout=60
    )
    said, _, status = ran.stdout.rpartition("\n")
    return int(status), json.loads(said)


def test_every_request_of_the_page_is_answered_as_it_says(
    service: Service, as_nobody: Client, spender: Agent, tmp_path: Path
) -> None:
    answer = as_nobody.get("/llms.txt")
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    me, wallet, left, ask, pay, look, back, apis = steps(answer.text)

    assert send(service, spender, me, tmp_path)[1]["data"]["agentId"] == spender.id
    assert send(service, spender, wallet, tmp_path)[1]["data"]["walletAddresses"]["evm"] == spender.evm_address
    assert {"budgets", "pendingApprovals"} <= send(service, spender, left, tmp_path)[1]["data"].keys()
    assert send(service, spender, ask, tmp_path)[1]["data"]["decision"] == "sign"
    assert spender.ok("GET", f"/vault/{spender.id}/transactions")["transactions"] == []

    first = send(service, spender, pay, tmp_path)
    assert first == send(service, spender, pay, tmp_path)
    status, paid = first
    assert (status, paid["data"].keys() >= {"txId", "txHash"}) == (200, True)
    assert send(service, spender, look, tmp_path, paid["data"]["txId"])[1]["data"]["id"] == paid["data"]["txId"]
    assert send(service, spender, apis, tmp_path) == (200, {"ok": True, "data": []})

    more = pay.replace('"7"', '"70"')
    assert send(service, spender, more, tmp_path)[1]["data"]["code"] == "idempotency_mismatch"
    other = more.replace("Idempotency-Key: invoice-4711", "Idempotency-Key: invoice-4712")
    assert send(service, spender, ask.replace('"7"', '"70"'), tmp_path)[1]["data"]["decision"] == "queue"
    status, waiting = send(service, spender, other, tmp_path)
    assert (status, waiting["data"].keys() >= {"txId", "approvalId"}) == (202, True)
    assert send(service, spender, back, tmp_path, waiting["data"]["txId"])[0] == 200
    status, refused = send(service, spender, pay.replace('"7"', '"501"').replace("4711", "4713"), tmp_path)
    assert (status, any(not one["passed"] for one in refused["data"]["results"])) == (403, True)


def test_the_page_names_only_what_there_is(service: Service, as_nobody: Client) -> None:
    page, contract = as_nobody.get("/llms.txt").text, as_nobody.get("/openapi.json").json()
    paths = {re.sub(r"\{\w+\}", "{}", path) for path in contract["paths"]}

    vault = [f"/vault/{{}}{last}" for last in re.findall(r"`(/sign-[a-z-]+)`", page)]
    assert len(vault) == 3
    assert {*vault, "/vault/{}/sign-typed-data", "/vault/{}/x402"} <= paths
    for link in re.findall(r"\]\((/[^)]*)\)", page):
        assert as_nobody.get(link).status_code == 200, link

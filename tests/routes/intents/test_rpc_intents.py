"""Intents that ask a node: what it answers is kept, what it does not answer is told, and nothing waits for ever."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import asyncpg
import httpx
import pytest

from ops import places
from tests.fixtures.callers import Tenant, new_tenant
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person, member
from tests.fixtures.server import EVM_CHAIN, SOLANA_CHAIN, Service
from tests.outside.bad_node import BadNode, running_bad_node
from tests.outside.evm_node import EvmNode
from tests.routes.intents.makers import act, propose, state, status_and_code


def question(method: str, *params: Any, chain: int = EVM_CHAIN) -> dict[str, Any]:
    return {"intentType": "rpc", "payload": {"method": method, "params": list(params), "chainId": chain}}


def ask(tenant: Tenant, owner: Person, body: dict[str, Any]) -> dict[str, Any]:
    """The intent, authorised and executed."""
    intent = propose(tenant, body)
    assert act(owner, intent, "authorize").status_code == 200
    answer = act(owner, intent, "execute")
    assert answer.status_code == 200, answer.text
    done: dict[str, Any] = answer.json()["data"]
    return done


def test_a_nodes_answer_is_kept(as_owner: Person, tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent()
    evm_node.fund(agent.evm_address, 5)

    chain = ask(tenant, as_owner, question("eth_chainId"))
    balance = ask(tenant, as_owner, question("eth_getBalance", agent.evm_address, "latest"))
    solana = ask(tenant, as_owner, question("getBalance", agent.solana_address, chain=SOLANA_CHAIN))

    assert (chain["status"], chain["executionResult"]) == ("executed", {"result": hex(EVM_CHAIN)})
    assert int(balance["executionResult"]["result"], 16) == 5
    assert solana["executionResult"]["result"]["value"] == 0
    assert tenant.ok("GET", f"/intents/{chain['id']}")["execution_result"] == {"result": hex(EVM_CHAIN)}


def test_a_method_of_another_family_fails(as_owner: Person, tenant: Tenant) -> None:
    done = ask(tenant, as_owner, question("eth_chainId", chain=SOLANA_CHAIN))

    assert (done["status"], done["executionResult"]["code"]) == ("failed", "node_failed")


def test_a_question_that_a_node_refuses_fails_with_its_words(as_owner: Person, tenant: Tenant) -> None:
    done = ask(tenant, as_owner, question("eth_getBalance", "nonsense"))

    assert done["status"] == "failed"
    assert done["executionResult"]["message"]


@pytest.fixture(scope="module")
def bad_node() -> Iterator[BadNode]:
    with running_bad_node() as node:
        yield node


@pytest.fixture(scope="module")
def at_a_bad_node(postgres_home: places.Home, worker_id: str, bad_node: BadNode) -> Iterator[Service]:
    """A deployment whose node does what a test wants."""
    node = {f"SERVICE_RPC_URL_{EVM_CHAIN}": f"http://{bad_node.address}"}
    database = database_apart(postgres_home, f"{worker_id}_rpc_intents")
    with deploy(database, "signer", "identity", "api", "scheduler", **node) as service:
        yield service


@pytest.fixture
def holder(at_a_bad_node: Service) -> Iterator[Tenant]:
    with new_tenant(at_a_bad_node) as tenant:
        yield tenant


@pytest.fixture
def decider(at_a_bad_node: Service, holder: Tenant) -> Iterator[Person]:
    with closing(member(at_a_bad_node, holder, "owner", mfa=True)) as person:
        yield person


def _answer(text: bytes) -> Callable[[BadNode], None]:
    def set_it(node: BadNode) -> None:
        node.results, node.body = None, b'{"jsonrpc":"2.0","id":1,"result":' + text + b"}"

    return set_it


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [b'"' + b"x" * 300 * 1024 + b'"', b'"' + b"x" * 2**21 + b'"', b'"unclosed', b"[" * 2000 + b"]" * 2000],
    ids=["300 KiB", "2 MiB", "no JSON", "deep"],
)
def test_an_answer_that_cannot_be_kept_fails(holder: Tenant, decider: Person, bad_node: BadNode, text: bytes) -> None:
    _answer(text)(bad_node)

    done = ask(holder, decider, question("eth_chainId"))

    assert (done["status"], done["executionResult"]["code"]) == ("failed", "node_failed")
    assert len(str(done["executionResult"])) < 2000


@pytest.mark.long
def test_an_answer_loses_all_that_looks_signed(holder: Tenant, decider: Person, bad_node: BadNode) -> None:
    bad_node.results = {"eth_getTransactionByHash": {"hash": "0x1", "raw": "0xsigned", "signature": {"r": "0x2"}}}

    done = ask(holder, decider, question("eth_getTransactionByHash", "0x1"))

    assert done["executionResult"] == {"result": {"hash": "0x1", "raw": "[redacted]", "signature": "[redacted]"}}


@pytest.mark.long
async def test_one_left_while_its_node_was_asked_is_told_as_interrupted(
    at_a_bad_node: Service, holder: Tenant, decider: Person, bad_node: BadNode
) -> None:
    intent = propose(holder, question("eth_chainId"))
    act(decider, intent, "authorize")
    heard = len(bad_node.heard)
    bad_node.silent.clear()
    asking = threading.Thread(target=lambda: _until_cut(decider, intent))
    asking.start()
    try:
        eventually(lambda: len(bad_node.heard) > heard)
        assert state(holder, intent) == "executing"
        assert status_and_code(act(decider, intent, "cancel")) == (409, "intent_closed")
        at_a_bad_node.kill("api")
        asking.join()
    finally:
        bad_node.silent.set()
    at_a_bad_node.start("api")

    async with owner_of(at_a_bad_node.database) as owner:
        await _a_minute_later(owner, intent["id"])
    eventually(lambda: state(holder, intent), lambda found: found == "failed")

    assert holder.ok("GET", f"/intents/{intent['id']}")["executionResult"]["code"] == "interrupted"


def _until_cut(decider: Person, intent: dict[str, Any]) -> None:
    with suppress(httpx.HTTPError):
        act(decider, intent, "execute")


async def _a_minute_later(owner: asyncpg.Connection, intent: str) -> None:
    moved = "UPDATE intents SET updated_at = updated_at - interval '1 minute' WHERE id = $1"
    assert await owner.execute(moved, intent) == "UPDATE 1"


def test_a_result_of_an_operator_loses_all_that_looks_signed(as_owner: Person, tenant: Tenant) -> None:
    intent = propose(tenant, question("eth_chainId"))
    kept = {"note": "done elsewhere", "signedTransaction": "0xabc", "deep": [{"signature": "0xdef", "txHash": "0x1"}]}

    failed = act(as_owner, intent, "fail", {"executionResult": kept}).json()["data"]

    assert failed["executionResult"] == {
        "note": "done elsewhere",
        "signedTransaction": "[redacted]",
        "deep": [{"signature": "[redacted]", "txHash": "0x1"}],
    }
    for text in (as_owner.get("/audit/events?limit=200").text, tenant.get("/intents").text):
        assert "0xabc" not in text
        assert "0xdef" not in text


def test_a_result_of_an_operator_has_16_kib(as_owner: Person, tenant: Tenant) -> None:
    intent = propose(tenant, question("eth_chainId"))

    answer = act(as_owner, intent, "fail", {"executionResult": {"x": "a" * 17 * 1024}})

    assert status_and_code(answer) == (400, "result_too_large")
    both = act(as_owner, intent, "fail", {"executionResult": {"a": 1}, "execution_result": {"a": 2}})
    assert status_and_code(both) == (400, "alias_conflict")
    assert state(tenant, intent) == "pending"

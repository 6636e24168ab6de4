"""Nodes are shared by people: how much of one person is under way at once, and how much in a minute."""

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from typing import Any

import httpx
import pytest
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes

from custody.chains.node_shares import LOOKS_AT_ONCE, ORDERS_AT_ONCE
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Tenant, fresh, new_tenant, rule
from tests.fixtures.deployments import partner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.people import member, sign_in
from tests.fixtures.server import Service
from tests.outside.holding_node import HoldingNode, running_holding_node
from tests.routes.intents.makers import act, propose, state

QUESTIONS_OF_AN_ORDER = 7
# What one person's tenants may ask in a minute for orders, and as much for looking, where that is few.
FEW = 2 * QUESTIONS_OF_AN_ORDER
TENANTS, REQUESTS = 3, 12
# The time in which a request that was given up, and the next in its place, may both be seen.
BOTH_SEEN = 3
MET = {"nonce": 7, "gasLimit": "21000", "maxFeePerGas": "2000000000", "maxPriorityFeePerGas": "1000000000"}


@pytest.fixture(scope="module")
def node() -> Iterator[HoldingNode]:
    with running_holding_node() as running:
        yield running


@pytest.fixture(scope="module")
def wide(service: Service, node: HoldingNode) -> Iterator[Service]:
    """A deployment whose node holds back what a test says."""
    with partner_of(service, SERVICE_RPC_URL_31337=node.url) as running:
        yield running


@pytest.fixture(scope="module")
def narrow(service: Service, node: HoldingNode) -> Iterator[Service]:
    """The same where few questions of one person's are taken in a minute."""
    settings = {"SERVICE_RPC_URL_31337": node.url, "SERVICE_RATE_LIMIT_NODE_CALLS": str(FEW)}
    with partner_of(service, **settings) as running:
        yield running


def tenants_of_one_person(service: Service, ends: ExitStack) -> list[Tenant]:
    """Tenants that one person made."""
    person = ends.enter_context(closing(sign_in(service)))
    made = []
    for _ in range(TENANTS):
        name, key = fresh(), uuid.uuid4().hex
        hashed = sha256(key.encode()).hexdigest()
        person.ok("POST", "/tenants", {"id": name, "name": "One of many", "apiKeyHash": hashed})
        tenant = ends.enter_context(closing(Tenant(base_url=service.url, headers={"X-Service-Key": key})))
        tenant.id, tenant.key = name, key
        made.append(tenant)
    return made


def agents_of_one_person(service: Service, ends: ExitStack) -> list[Agent]:
    """An agent in each of them."""
    return [tenant.agent() for tenant in tenants_of_one_person(service, ends)]


@contextmanager
def flood(node: HoldingNode, agents: list[Agent], method: str, path: str, **body: Any) -> Iterator[list[Future[Any]]]:
    """Twelve requests of each agent at once, whose questions the node holds until the end."""
    node.hold(*(agent.evm_address for agent in agents))
    with ThreadPoolExecutor(len(agents) * REQUESTS) as threads:
        try:
            yield [
                threads.submit(agent.request, method, path.format(agent.id), json=body or None, timeout=60)
                for agent in agents
                for _ in range(REQUESTS)
            ]
        finally:
            node.release()


def test_one_person_who_looks_has_few_questions_under_way(wide: Service, node: HoldingNode) -> None:
    with ExitStack() as ends:
        agents = agents_of_one_person(wide, ends)
        innocent = ends.enter_context(closing(new_tenant(wide))).agent()
        with flood(node, agents, "GET", "/agents/{}/balance"):
            eventually(lambda: node.held >= LOOKS_AT_ONCE)

            found = innocent.ok("GET", f"/agents/{innocent.id}/balance")
            signed = innocent.sign()

            assert (found["balances"]["native"], nonce_of(signed)) == (str(10**18), 5)
            assert LOOKS_AT_ONCE <= node.most <= LOOKS_AT_ONCE + BOTH_SEEN


def test_two_people_have_twice_as_many(wide: Service, node: HoldingNode) -> None:
    with ExitStack() as ends:
        agents = [one for _ in range(2) for one in agents_of_one_person(wide, ends)]
        with flood(node, agents, "GET", "/agents/{}/balance"):
            eventually(lambda: node.most > LOOKS_AT_ONCE + BOTH_SEEN)


def test_one_person_has_few_orders_under_way_and_none_is_lost(wide: Service, node: HoldingNode) -> None:
    with ExitStack() as ends:
        agents = agents_of_one_person(wide, ends)
        innocent = ends.enter_context(closing(new_tenant(wide))).agent()
        with flood(node, agents, "POST", "/vault/{}/sign", to=ADDRESS, value="1", broadcast=False) as answers:
            eventually(lambda: node.held >= ORDERS_AT_ONCE)

            signed = innocent.sign()

            assert nonce_of(signed) == 5
            assert ORDERS_AT_ONCE <= node.most <= ORDERS_AT_ONCE + BOTH_SEEN
        assert {answer.result().status_code for answer in answers} == {200}


def test_a_long_order_that_waits_for_a_node_keeps_no_other_waiting(wide: Service, node: HoldingNode) -> None:
    long = {"to": ADDRESS, "value": "1", "data": "0x" + "00" * 40_000, "broadcast": False}
    with closing(new_tenant(wide)) as tenant, ThreadPoolExecutor(1) as thread:
        slow, other = tenant.agent(), tenant.agent()
        node.hold(slow.evm_address)
        try:
            waits = thread.submit(slow.post, f"/vault/{slow.id}/sign", json=long, timeout=60)
            eventually(lambda: node.held >= 1)

            answer = other.post(f"/vault/{other.id}/sign", json=long, timeout=60)

            assert (nonce_of(answer), waits.done(), node.held >= 1) == (5, False, True)
        finally:
            node.release()
        assert nonce_of(waits.result()) == 5


def nonce_of(answer: httpx.Response) -> int:
    """The nonce that was signed."""
    assert answer.status_code == 200, answer.text
    raw = HexBytes(answer.json()["data"]["signedTransaction"])
    return int(TypedTransaction.from_bytes(raw).transaction.dictionary["nonce"])


def spend(ask: Callable[[], httpx.Response]) -> None:
    """Ask the node until no more is taken."""
    answers = [ask() for _ in range(FEW + 1)]
    assert {answer.status_code for answer in answers} == {200, 429}
    assert answers[-1].json()["data"]["code"] == "node_calls_spent"
    assert 1 <= (seconds := int(answers[-1].headers["Retry-After"])) <= 60
    said = answers[-1].json()["error"]
    assert f"may ask the nodes {FEW} questions a minute for " in said
    assert f"(SERVICE_RATE_LIMIT_NODE_CALLS); retry in {seconds} s" in said


def look(agent: Agent) -> httpx.Response:
    """One question of somebody who looks."""
    return agent.get(f"/agents/{agent.id}/balance")


def test_a_person_who_asked_too_much_waits_in_every_tenant_and_others_do_not(
    narrow: Service, node: HoldingNode
) -> None:
    with ExitStack() as ends:
        agents = agents_of_one_person(narrow, ends)
        innocent = ends.enter_context(closing(new_tenant(narrow))).agent()
        spend(lambda: look(agents[0]))
        # Who looks takes no order away.
        assert agents[1].sign(broadcast=True).status_code == 200
        assert agents[0].sign(broadcast=True).status_code == 429
        asked = node.asked
        simulated = {"kind": "evm", "request": {"to": ADDRESS, "value": "1"}}

        of_another = agents[1]
        answers = {
            "balance": look(of_another),
            "tokens": of_another.get(f"/agents/{of_another.id}/tokens"),
            "simulate": of_another.post(f"/vault/{of_another.id}/simulate", json=simulated),
            "sign": of_another.sign(broadcast=True),
        }

        codes = {name: (one.status_code, one.json()["data"].get("code")) for name, one in answers.items()}
        assert codes == dict.fromkeys(answers, (429, "node_calls_spent"))
        assert len(of_another.ok("GET", f"/vault/{of_another.id}/history")) == 1
        assert node.asked == asked
        assert innocent.ok("GET", f"/agents/{innocent.id}/balance")
        assert innocent.sign(broadcast=True).status_code == 200


def test_an_order_that_needs_no_node_is_signed(narrow: Service) -> None:
    with ExitStack() as ends:
        agents = agents_of_one_person(narrow, ends)
        spend(lambda: agents[0].sign(broadcast=True))

        assert nonce_of(agents[1].sign(**MET)) == 7


def test_a_simulation_says_what_is_known_without_a_node(narrow: Service) -> None:
    with ExitStack() as ends:
        spender, refused, other = tenants_of_one_person(narrow, ends)
        refusing = rule("approved-addresses", mode="whitelist", addresses=[OTHER_ADDRESS])
        of_refused, of_other = refused.agent(refusing), other.agent()
        payer = spender.agent()
        spend(lambda: payer.sign(broadcast=True))

        def simulate(agent: Agent, **more: Any) -> httpx.Response:
            body = {"kind": "evm", "request": {"to": ADDRESS, "value": "1", **more}}
            return agent.post(f"/vault/{agent.id}/simulate", json=body)

        never, unknown = simulate(of_refused), simulate(of_other)

        assert (never.status_code, never.json()["data"].get("decision")) == (200, "refuse")
        # The control: what a node would have to say first.
        assert (unknown.status_code, unknown.json()["data"]["code"]) == (429, "node_calls_spent")
        met, sent = (simulate(of_other, **MET, broadcast=broadcast) for broadcast in (False, True))
        assert (met.json()["data"].get("decision"), met.json()["data"].get("needed")) == ("sign", [])
        # What is to be sent asks a node first, as signing does.
        assert (sent.status_code, of_other.sign(**MET, broadcast=True).status_code) == (429, 429)


def test_an_order_that_was_signed_is_sent_though_nothing_more_may_be_asked(narrow: Service, node: HoldingNode) -> None:
    with ExitStack() as ends:
        [payer, *_] = agents_of_one_person(narrow, ends)
        assert payer.sign().status_code == 200
        sent = len(node.sent)

        assert payer.sign(broadcast=True).status_code == 200
        assert len(node.sent) == sent + 1
        assert payer.sign(broadcast=True).status_code == 429
        assert look(payer).status_code == 200


def test_an_intents_question_that_is_one_too_many_is_refused_before_it_begins(narrow: Service) -> None:
    with ExitStack() as ends:
        [tenant, *_] = tenants_of_one_person(narrow, ends)
        owner = ends.enter_context(closing(member(narrow, tenant, "owner", mfa=True)))
        payload = {"chainId": 31337, "method": "eth_blockNumber", "params": []}
        intent = propose(tenant, {"intentType": "rpc", "payload": payload})
        assert act(owner, intent, "authorize").status_code == 200
        agent = tenant.agent()
        spend(lambda: look(agent))

        answer = act(owner, intent, "execute")

        assert (answer.status_code, answer.json()["data"]["code"]) == (429, "node_calls_spent"), answer.text
        assert state(tenant, intent) == "authorized"

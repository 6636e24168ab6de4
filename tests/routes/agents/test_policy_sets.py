"""Policy sets: who makes them, what agents that name them may do, and that no kind of order goes by them."""

import uuid
from collections.abc import Callable
from contextlib import closing
from typing import Any

import httpx
import pytest

from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.people import member
from tests.fixtures.safes import FORMAT, Safe, token_of
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet
from tests.routes.agents.makers import bind_all, charge, keep_set, make_route
from tests.routes.orders import CHAIN, SELLER, TOKEN_CONTRACT, payment_demand, permit, solana_payment
from tests.routes.vault.bitcoin import LISTED, payment, sign_psbt
from tests.routes.vault.transfers import transfer, with_signer

SETS = "/policy-sets"
ASK = rule("auto-approve-threshold", threshold="0")


def limit(most: int, **config: Any) -> dict[str, Any]:
    return rule("spending-limit", maxPerDay=str(most), **config)


def naming(policy_set: str) -> dict[str, Any]:
    return rule("policy-set", policySet=policy_set)


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"]["code"]


def foresee(agent: Agent, value: int) -> dict[str, Any]:
    request = {"to": ADDRESS, "value": str(value), "broadcast": False}
    found: dict[str, Any] = agent.ok("POST", f"/vault/{agent.id}/simulate", {"kind": "evm", "request": request})
    return found


def test_a_policy_set_is_made_listed_replaced_and_deleted(tenant: Tenant) -> None:
    made = tenant.ok("POST", SETS, {"name": "Team", "policies": [limit(5, scope="set")]})

    assert (made["name"], made["version"], made["agents"]) == ("Team", 1, 0)
    assert made["policies"][0]["config"] == {"maxPerDay": "5", "scope": "set"}
    assert tenant.ok("GET", SETS) == [made]
    path = f"{SETS}/{made['id']}"
    assert tenant.ok("GET", path) == made

    changed = tenant.ok("PUT", path, {"name": "Crew", "policies": []})

    assert (changed["name"], changed["version"], changed["policies"]) == ("Crew", 2, [])
    assert tenant.ok("DELETE", path) == {"deleted": made["id"]}
    for answer in (
        tenant.get(path),
        tenant.put(path, json={"name": "x", "policies": []}),
        tenant.delete(path),
    ):
        assert refusal(answer) == (404, "policy_set_absent")


def test_a_set_that_is_named_stays_and_one_that_is_not_there_is_not_named(tenant: Tenant) -> None:
    policy_set = keep_set(tenant)
    agent = tenant.agent(naming(policy_set))
    path = f"/agents/{agent.id}/policies"

    assert tenant.ok("GET", f"{SETS}/{policy_set}")["agents"] == 1
    assert refusal(tenant.delete(f"{SETS}/{policy_set}")) == (409, "policy_set_named")
    assert refusal(tenant.put(path, json=[naming(str(uuid.uuid4()))])) == (400, "unknown_policy_set")
    batch = {"agents": [{"id": "born", "name": "x"}], "applyPolicies": [naming(str(uuid.uuid4()))]}
    assert refusal(tenant.post("/agents/batch", json=batch)) == (400, "unknown_policy_set")
    # The control.
    tenant.ok("PUT", path, [])
    assert tenant.delete(f"{SETS}/{policy_set}").status_code == 200


def test_the_set_of_every_agent_is_made_by_its_first_replacement_and_stays(tenant: Tenant) -> None:
    agent, path = tenant.agent(), f"{SETS}/tenant"
    assert refusal(tenant.get(path)) == (404, "policy_set_absent")

    bind_all(tenant, limit(5, scope="set"))

    assert agent.sign(value=6).status_code == 403
    assert refusal(tenant.delete(path)) == (409, "policy_set_stays")
    bind_all(tenant)
    assert agent.sign(value=6).status_code == 200


@pytest.mark.parametrize(
    ("own", "policies"),
    [
        (False, [rule("approval-quorum", threshold=1, approvers=[{"userId": str(uuid.uuid4()), "keys": ["0" * 64]}])]),
        (False, [naming(str(uuid.uuid4()))]),
        (True, [limit(5, scope="set")]),
        (True, [naming(str(uuid.uuid4())), naming(str(uuid.uuid4()))]),
        (True, [rule("policy-set", enabled=False, policySet=str(uuid.uuid4()))]),
    ],
)
def test_a_rule_where_it_would_say_nothing_is_refused(
    tenant: Tenant, own: bool, policies: list[dict[str, Any]]
) -> None:
    agent = tenant.agent()

    answer = (
        tenant.put(f"/agents/{agent.id}/policies", json=policies)
        if own
        else tenant.post(SETS, json={"name": "x", "policies": policies})
    )

    assert refusal(answer) == (400, "invalid_policy")


def test_an_agents_own_rules_only_tighten_its_set(tenant: Tenant) -> None:
    policy_set = keep_set(tenant, limit(10))
    loose, tight = tenant.agent(naming(policy_set), limit(1000)), tenant.agent(naming(policy_set), limit(2))

    assert [agent.sign(value=11).status_code for agent in (loose, tight)] == [403, 403]
    assert [agent.sign(value=3).status_code for agent in (loose, tight)] == [200, 403]
    # Each by itself: another agent of the set has all of the limit.
    assert tenant.agent(naming(policy_set)).sign(value=10).status_code == 200
    assert loose.sign(value=7).status_code == 200
    assert loose.sign(value=1).status_code == 403


def test_a_replaced_set_binds_all_its_agents_at_once(tenant: Tenant) -> None:
    policy_set = keep_set(tenant, limit(1000))
    agents = [tenant.agent(naming(policy_set)) for _ in range(3)]
    assert [agent.sign(value=10).status_code for agent in agents] == [200] * 3

    tenant.ok("PUT", f"{SETS}/{policy_set}", {"name": "x", "policies": [limit(15)]})

    assert [agent.sign(value=10).status_code for agent in agents] == [403] * 3
    assert [agent.sign(value=5).status_code for agent in agents] == [200] * 3


def test_an_agent_neither_names_nor_leaves_a_set_by_its_own_token(tenant: Tenant) -> None:
    policy_set, other = keep_set(tenant, limit(10)), keep_set(tenant, limit(1000))
    inside, outside = tenant.agent(naming(policy_set)), tenant.agent(limit(10))

    for agent, policies in (
        (inside, []),
        (inside, [naming(other)]),
        (outside, [limit(10), naming(other)]),
    ):
        assert refusal(agent.put(f"/agents/{agent.id}/policies", json=policies)) == (403, "policy_loosened")
    # The control: it tightens.
    assert inside.put(f"/agents/{inside.id}/policies", json=[naming(policy_set), limit(5)]).status_code == 200


def test_the_budgets_of_a_set_are_shown_before_an_order(tenant: Tenant) -> None:
    bind_all(tenant, limit(100, scope="set"))
    one, other = tenant.agent(), tenant.agent()
    assert one.sign(value=40).status_code == 200

    foreseen = foresee(other, 70)

    assert foreseen["decision"] == "refuse"
    (shown,) = foreseen["budgets"]
    assert (shown["spent"], shown["remaining"], shown["policyId"][:7]) == ("40", "60", "tenant/")


def _plain(tenant: Tenant, agent: Agent) -> Callable[[], httpx.Response]:
    return lambda: agent.sign(value=60)


def _with_key(tenant: Tenant, agent: Agent) -> Callable[[], httpx.Response]:
    return lambda: agent.sign(value=60, key=str(uuid.uuid4()))


def _with_nonce(tenant: Tenant, agent: Agent) -> Callable[[], httpx.Response]:
    return lambda: agent.sign(value=60, nonce=0)


def _by_approval(tenant: Tenant, agent: Agent) -> Callable[[], httpx.Response]:
    tenant.ok("PUT", f"/agents/{agent.id}/policies", [ASK])
    queued = agent.sign(value=60)
    assert queued.status_code == 202, queued.text
    return lambda: tenant.post(f"/approvals/{queued.json()['data']['approvalId']}/approve", json={})


WAYS = {"plain": _plain, "with a key": _with_key, "with a nonce": _with_nonce, "approved": _by_approval}


@pytest.mark.parametrize("second", WAYS)
@pytest.mark.parametrize("first", WAYS)
def test_every_way_to_a_signature_counts_for_all_agents(tenant: Tenant, first: str, second: str) -> None:
    bind_all(tenant, limit(100, scope="set"))
    one, other = tenant.agent(), tenant.agent()
    asked = [WAYS[first](tenant, one), WAYS[second](tenant, other)]

    assert [ask().status_code for ask in asked] == [200, 403]
    # The control: what is left is there.
    assert tenant.agent().sign(value=40).status_code == 200


NAMED = rule("approved-addresses", addresses=[SELLER], mode="whitelist")
TOKEN = f"evm:{CHAIN}:{TOKEN_CONTRACT}"
# The asset that an order of this kind moves sixty of, and how an agent asks for it.
KINDS: dict[str, tuple[str, Callable[[Agent], httpx.Response]]] = {
    "solana": (
        "solana:native",
        lambda agent: agent.post(f"/vault/{agent.id}/sign-solana", json=solana_payment(agent, 60)),
    ),
    "typed data": (
        TOKEN,
        lambda agent: agent.post(f"/vault/{agent.id}/sign-typed-data", json=permit(agent.evm_address, 60)),
    ),
    "x402": (TOKEN, lambda agent: agent.post(f"/vault/{agent.id}/x402", json={"demand": payment_demand()})),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_order_counts_for_all_agents(tenant: Tenant, kind: str) -> None:
    asset, ask = KINDS[kind]
    bind_all(tenant, limit(100, scope="set", asset=asset))
    # A payment that a server demands goes to whom a rule lists.
    one, other = (tenant.agent(*[NAMED] * (kind == "x402")) for _ in range(2))

    assert [ask(agent).status_code for agent in (one, other)] == [200, 403]
    # The control: the set of every agent alone is in the way.
    bind_all(tenant)
    assert ask(other).status_code == 200


def test_a_psbt_and_a_transfer_count_for_all_agents(service: Service, tenant: Tenant) -> None:
    bind_all(tenant, limit(15_000, scope="set", asset="bitcoin"), limit(100, scope="set", asset="evm:native"))
    with closing(member(service, tenant, "owner", mfa=True)) as owner:
        payers = [with_signer(owner, tenant.agent(LISTED), "sign_transaction") for _ in range(2)]
        senders = [with_signer(owner, tenant.agent()) for _ in range(2)]

        assert [sign_psbt(agent, payment(agent, 10_000)).status_code for agent in payers] == [200, 403]
        assert [transfer(agent, value="60").status_code for agent in senders] == [200, 403]


def test_a_metered_calls_rest_comes_back_to_all_agents(service: Service, tenant: Tenant) -> None:
    bind_all(tenant, limit(10, scope="set", asset="usd"))
    safe = Safe(service, tenant)
    usage = {"form": "openai", "input": 1_000_000, "output": 2_000_000}
    route, call = safe.make_route(safe.secret, maxMicroUsd=10, usage=usage, **FORMAT), str(uuid.uuid4())
    one, other = tenant.agent(), tenant.agent()

    with greet(service, "proxy") as wire:
        wire.ask("ChargeCall", {"route": route, "call": call}, {"kind": "agent", "value": token_of(one)})
        before = foresee(other, 0)["budgets"]
        counts = {"input": 2, "output": 1}
        assert wire.ask("EndCharge", {"tenant": tenant.id, "call": call, "counts": counts})["returned"] == 6

    assert [budget["spent"] for budget in (*before, *foresee(other, 0)["budgets"])] == ["10", "4"]


def test_a_call_counts_for_all_agents(service: Service, tenant: Tenant) -> None:
    bind_all(tenant, limit(100, scope="set", asset="usd"))
    agents, route = [tenant.agent() for _ in range(3)], make_route(tenant, 60)

    for agent in agents:
        charge(service, agent, route)

    left = tenant.agent()
    charge(service, left, make_route(tenant, 40), 2)
    assert [budget["spent"] for budget in foresee(left, 0)["budgets"]] == ["100"]

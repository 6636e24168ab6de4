"""Settings that widen what is allowed: what passes with each of them, and is refused in a deployment without it.

One deployment has all of them set; the control is the one that most tests share, which has none.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from ops import places
from tests.fixtures.app_clients import app_client_of
from tests.fixtures.callers import ADDRESS, Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import Service
from tests.fixtures.sign_on import REDIRECT, Flow
from tests.routes.intents.test_send_calls import call, execute, listing, may_send, pay, send
from tests.routes.vault.transfers import APPROVE, TRANSFER

OTHER = "0x" + "22" * 20
# Tighter than what a wallet begins with otherwise in one way, and wider in another: no rate limit.
WALLET_RULES = [rule("spending-limit", maxPerTransaction="5")]
SECOND = "https://app.example.com/other?from=custody"


@pytest.fixture(scope="module")
def wide(
    postgres_home: places.Home, worker_id: str, sign_on_world: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A deployment with every switch set."""
    file = tmp_path_factory.mktemp("switches") / "policies.json"
    file.write_text(json.dumps(WALLET_RULES))
    switches = {
        "SERVICE_ALLOW_UNSAFE_CALLS": "true",
        "SERVICE_AGENT_POLICY_PUT": "replace",
        "SERVICE_USER_WALLET_POLICIES_FILE": str(file),
        "SERVICE_LOGIN_REDIRECT_URLS": f"{REDIRECT}, {SECOND}",
    }
    with deploy(database_apart(postgres_home, f"{worker_id}_switches"), **sign_on_world, **switches) as service:
        yield service


@pytest.fixture
def tenants(wide: Service, service: Service) -> Iterator[dict[str, tuple[Tenant, Person]]]:
    """A tenant and its owner in each deployment."""
    with new_tenant(wide) as widened, new_tenant(service) as usual:
        owners = member(wide, widened, "owner", mfa=True), member(service, usual, "owner", mfa=True)
        yield {"set": (widened, owners[0]), "not set": (usual, owners[1])}
        for owner in owners:
            owner.close()


def _sender(tenant: Tenant, owner: Person, *rules: dict[str, Any]) -> Agent:
    return may_send(owner, tenant.agent(*rules))


# ---- SERVICE_ALLOW_UNSAFE_CALLS


@pytest.mark.parametrize("calls", [[call(APPROVE, OTHER, 5)], [pay(), call("0xdeadbeef", 1)]], ids=["read", "unread"])
def test_a_person_may_authorise_calls_that_no_list_lists(
    tenants: dict[str, tuple[Tenant, Person]], calls: list[dict[str, Any]]
) -> None:
    limits = rule("rate-limit", maxTxPerHour=50)
    usual, wide = (_sender(*tenants[which], limits) for which in ("not set", "set"))

    refused = send(usual, *calls)
    waits = send(wide, *calls)

    assert refused.status_code == 403, refused.text
    done = execute(tenants["set"][1], waits)
    assert [one["status"] for one in done["executionResult"]["transactions"]] == ["signed"] * len(calls)


def test_a_call_that_a_list_refuses_stays_refused(tenants: dict[str, tuple[Tenant, Person]]) -> None:
    agent = _sender(*tenants["set"], listing(APPROVE))

    assert send(agent, call(APPROVE, OTHER, 5), call(TRANSFER, OTHER, 5)).status_code == 403
    assert send(agent, call(APPROVE, OTHER, 5)).status_code == 202


def test_no_call_of_a_batch_is_signed_unasked(tenants: dict[str, tuple[Tenant, Person]]) -> None:
    tenant, owner = tenants["set"]
    agent = _sender(tenant, owner)

    assert send(agent, call("0xdeadbeef", 1)).status_code == 202
    assert tenant.ok("GET", f"/vault/{agent.id}/history") == []


# ---- SERVICE_AGENT_POLICY_PUT


def test_an_agents_own_token_may_loosen_its_rules(tenants: dict[str, tuple[Tenant, Person]]) -> None:
    for which, status in (("not set", 403), ("set", 200)):
        tenant, _ = tenants[which]
        agent = tenant.agent(rule("spending-limit", maxPerDay="10"))
        assert agent.sign(value=11).status_code == 403

        for looser in ([rule("spending-limit", maxPerDay="20")], []):
            answer = agent.put(f"/agents/{agent.id}/policies", json=looser)
            assert answer.status_code == status, answer.text

        kept = [one["config"] for one in tenant.ok("GET", f"/agents/{agent.id}/policies")]
        assert kept == ([{"maxPerDay": "10"}] if status == 403 else [])
        assert agent.sign(value=11).status_code == status


def test_an_app_client_still_loosens_nothing(tenants: dict[str, tuple[Tenant, Person]]) -> None:
    tenant, owner = tenants["set"]
    agent = tenant.agent(rule("spending-limit", maxPerDay="10"))

    with closing(app_client_of(owner)) as client:
        answer = client.put(f"/agents/{agent.id}/policies", json=[])

    assert (answer.status_code, answer.json()["data"]["code"]) == (403, "policy_loosened")


def test_another_agents_rules_stay_out_of_reach(tenants: dict[str, tuple[Tenant, Person]]) -> None:
    tenant, _ = tenants["set"]
    agent, other = tenant.agent(), tenant.agent(rule("spending-limit", maxPerDay="10"))

    assert agent.put(f"/agents/{other.id}/policies", json=[]).status_code in (403, 404)


# ---- SERVICE_USER_WALLET_POLICIES_FILE


def _wallet(person: Person) -> str:
    person.enrol_totp()
    name: str = person.ok("POST", "/user/me/wallet", {})["agentId"]
    return name


def test_a_persons_wallet_begins_with_the_rules_of_the_file(wide: Service, service: Service) -> None:
    usual = [rule("rate-limit", maxTxPerHour=60, maxTxPerDay=500)]
    for where, rules, status in ((service, usual, 200), (wide, WALLET_RULES, 403)):
        with closing(sign_in(where)) as person:
            name = _wallet(person)
            shown = person.ok("GET", f"/agents/{name}/policies")
            order = {"to": ADDRESS, "broadcast": False}
            above = person.post(f"/vault/{name}/sign", json={**order, "value": "6"})
            within = person.post(f"/vault/{name}/sign", json={**order, "value": "5"})

        assert [(one["type"], one["enabled"], one["config"]) for one in shown] == [
            (one["type"], one["enabled"], one["config"]) for one in rules
        ]
        assert (above.status_code, within.status_code) == (status, 200)


# ---- SERVICE_LOGIN_REDIRECT_URLS


def _begin(where: Service, **query: str) -> tuple[int, str]:
    with Flow(where, "/auth/oauth/google/authorize", **query) as flow:
        begun = flow.begin()
    code = "" if begun.status_code == 302 else begun.json()["data"]["code"]
    return begun.status_code, code


@pytest.mark.parametrize("address", [REDIRECT, SECOND])
def test_people_without_a_tenant_may_go_to_the_addresses_of_the_list(
    wide: Service, service: Service, address: str
) -> None:
    assert _begin(wide, redirect_uri=address) == (302, "")
    assert _begin(service, redirect_uri=address) == (400, "bad_redirect_uri")


@pytest.mark.parametrize(
    "address",
    [
        f"{REDIRECT}/", f"{REDIRECT}?x=1", REDIRECT.upper(), REDIRECT.replace("https", "http"), f"{REDIRECT},{SECOND}",
        f" {SECOND}", SECOND.partition("?")[0], "https://app.example.com.evil.example/signed-in",
    ],
)  # fmt: skip
def test_an_address_is_on_the_list_character_by_character(wide: Service, address: str) -> None:
    assert _begin(wide, redirect_uri=address)[0] == 400


def test_the_list_is_for_nobody_who_names_a_tenant(wide: Service) -> None:
    with new_tenant(wide) as tenant:
        assert _begin(wide, redirect_uri=REDIRECT, tenant_id=tenant.id)[0] == 400

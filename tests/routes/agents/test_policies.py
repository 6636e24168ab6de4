"""Policy sets: what is taken, what is refused, and what an agent may do to its own."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from custody.policies.kinds import KINDS
from tests.fixtures.app_clients import app_client_of
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, Client, Tenant, rule
from tests.fixtures.people import Person

TYPES = tuple(KINDS)
EVERY = [
    rule(
        "spending-limit",
        maxPerTransaction="1",
        maxPerDay="2",
        maxPerWeek="3",
        asset="evm:native",
        alertPercents=[50, 100],
    ),
    rule("spending-limit", maxPerTx="1", enabled=False),
    rule("approved-addresses", addresses=[ADDRESS], mode="blacklist"),
    rule("auto-approve-threshold", threshold="5", asset="solana:native"),
    rule("time-window", allowedHours=[{"start": 22, "end": 6}], allowedDays=[0, 6], timezone="Europe/Berlin"),
    rule("rate-limit", maxTxPerHour=1, maxTxPerDay=2),
    rule("allowed-chains", chains=[1, "eip155:8453", 101, "bitcoin:regtest"]),
    rule(
        "contract-allowlist",
        contracts=[
            {
                "address": ADDRESS,
                "chainId": 1,
                "selectors": ["0xa9059cbb"],
                "constraints": {"0xa9059cbb": {"recipientAllowlist": [OTHER_ADDRESS], "maxAmount": "7"}},
            }
        ],
    ),
    rule("new-recipient", known=[ADDRESS]),
    rule("delay", minutes=10, above="5"),
    rule("circuit-breaker", minutes=10, refused=5, failed=3),
    rule(
        "external-check",
        url="https://check.example.com/orders",
        publicKeys=["11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="],
    ),
    rule("message-allowlist", siweDomains=["app.example.com"], patterns=["Log in to Example as *"]),
]


def path(agent: Agent) -> str:
    return f"/agents/{agent.id}/policies"


def test_every_type_is_stored_as_it_was_given(tenant: Tenant, agent: Agent) -> None:
    stored = tenant.ok("PUT", path(agent), EVERY)

    # approval-quorum is set by people alone: tests/routes/votes/test_rules.py. A policy-set names one that is there:
    # tests/routes/agents/test_policy_sets.py.
    assert {one["type"] for one in stored} == set(TYPES) - {"approval-quorum", "policy-set"}
    assert [{name: one[name] for name in ("type", "enabled", "config")} for one in stored] == EVERY
    assert all(one["id"] for one in stored)
    assert tenant.ok("GET", path(agent)) == agent.ok("GET", path(agent)) == stored


def test_ids_are_kept_and_a_set_is_replaced_as_a_whole(tenant: Tenant, agent: Agent) -> None:
    tenant.ok(
        "PUT", path(agent), [{**rule("rate-limit", maxTxPerHour=1), "id": "mine:1"}, rule("rate-limit", maxTxPerDay=1)]
    )
    kept = tenant.ok("PUT", path(agent), [{**rule("rate-limit", maxTxPerHour=2), "id": "mine:1"}])

    assert kept == [{"id": "mine:1", **rule("rate-limit", maxTxPerHour=2)}]
    assert tenant.ok("PUT", path(agent), []) == []
    assert tenant.ok("GET", path(agent)) == []


STRANGER = "0x" + "5e" * 20


def sources(client: Tenant | Agent, agent: Agent) -> list[tuple[str, str | None]]:
    return [(one["type"], one.get("source")) for one in client.ok("GET", path(agent))]


def test_a_rule_that_the_agent_set_says_so_and_the_tenants_rules_stay_the_tenants(tenant: Tenant) -> None:
    agent = tenant.agent(rule("approved-addresses", addresses=[ADDRESS, OTHER_ADDRESS]))
    (theirs,) = tenant.ok("GET", path(agent))
    assert "source" not in theirs

    shrunk = {**theirs, "config": {"addresses": [ADDRESS]}}
    own = rule("approved-addresses", addresses=[STRANGER])
    agent.ok("PUT", path(agent), [shrunk, own])
    # Sent back whole, also with a claim of its own, nothing changes hands.
    again = [{**one, "source": "tenant"} for one in agent.ok("GET", path(agent))]
    answered = agent.ok("PUT", path(agent), again)

    assert [one.get("source") for one in answered] == [None, "agent"]
    assert sources(tenant, agent) == [("approved-addresses", None), ("approved-addresses", "agent")]
    assert [one.get("source") for one in tenant.ok("GET", f"/dashboard/{agent.id}")["policies"]] == [None, "agent"]
    assert agent.sign().status_code == 403
    tenant.ok("PUT", path(agent), again)
    assert {source for _, source in sources(tenant, agent)} == {None}


def test_an_unknown_type_is_400_and_the_message_lists_the_supported_ones(tenant: Tenant, agent: Agent) -> None:
    answer = tenant.put(path(agent), json=[rule("no-limit", a=1)])

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "invalid_policy")
    assert all(name in answer.json()["error"] for name in TYPES)


BAD = {
    "enabled is a number": {"type": "rate-limit", "enabled": 1, "config": {"maxTxPerHour": 1}},
    "enabled is a word": {"type": "rate-limit", "enabled": "true", "config": {"maxTxPerHour": 1}},
    "enabled is missing": {"type": "rate-limit", "config": {"maxTxPerHour": 1}},
    "config is null": {"type": "rate-limit", "enabled": True, "config": None},
    "config is a list": {"type": "rate-limit", "enabled": True, "config": []},
    "config is missing": {"type": "rate-limit", "enabled": True},
    "type is missing": {"enabled": True, "config": {}},
    "type is a number": {"type": 5, "enabled": True, "config": {}},
    "a malformed id": {**rule("rate-limit", maxTxPerHour=1), "id": "a b"},
    "an unknown config field": rule("rate-limit", maxTxPerHour=1, surplus=1),
    "an empty limit": rule("spending-limit"),
    "a negative limit": rule("spending-limit", maxPerDay="-1"),
    "a limit with a fraction": rule("spending-limit", maxPerDay="1.5"),
    "a limit as a number": rule("spending-limit", maxPerDay=5),
    "a limit of 2^256": rule("spending-limit", maxPerDay=str(2**256)),
    "two names for one limit": rule("spending-limit", maxPerTx="1", maxPerTransaction="2"),
    "an unknown asset": rule("spending-limit", maxPerDay="1", asset="gold"),
    "no addresses": rule("approved-addresses"),
    "a wrong checksum": rule("approved-addresses", addresses=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD".swapcase()]),
    "no address": rule("approved-addresses", addresses=["somewhere"]),
    "an unknown mode": rule("approved-addresses", addresses=[ADDRESS], mode="greylist"),
    "no threshold": rule("auto-approve-threshold"),
    "no window": rule("time-window", allowedHours=[], allowedDays=[]),
    "hour 24 as a start": rule("time-window", allowedHours=[{"start": 24, "end": 24}]),
    "day 7": rule("time-window", allowedDays=[7]),
    "an unknown zone": rule("time-window", allowedDays=[1], timezone="Mars/Base"),
    "a zone that is a path": rule("time-window", allowedDays=[1], timezone="../../etc/passwd"),
    "an end without a zone": rule("time-window", notAfter="2090-01-01T00:00:00"),
    "an end before the beginning": rule(
        "time-window", notBefore="2090-01-02T00:00:00Z", notAfter="2090-01-01T00:00:00Z"
    ),
    "no rate": rule("rate-limit"),
    "a rate of nothing": rule("rate-limit", maxTxPerHour=0),
    "no chains": rule("allowed-chains", chains=[]),
    "an unknown chain name": rule("allowed-chains", chains=["mainnet"]),
    "a short selector": rule("contract-allowlist", contracts=[{"address": ADDRESS, "selectors": ["0xa9"]}]),
    "a constraint for an unlisted selector": rule(
        "contract-allowlist",
        contracts=[
            {"address": ADDRESS, "selectors": ["0xa9059cbb"], "constraints": {"0x00000000": {"maxAmount": "1"}}},
        ],
    ),
    "no rule": None,
    "a word": "rate-limit",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_bad_rule_is_400_and_the_set_stays(tenant: Tenant, agent: Agent, bad: Any) -> None:
    before = tenant.ok("PUT", path(agent), [rule("rate-limit", maxTxPerHour=3)])

    for sent in ([bad], [rule("rate-limit", maxTxPerDay=1), bad]):
        answer = tenant.put(path(agent), json=sent)

        assert answer.status_code == 400, answer.text
    assert tenant.ok("GET", path(agent)) == before


def test_a_set_has_at_most_fifty_rules_and_distinct_ids(tenant: Tenant, agent: Agent) -> None:
    one = rule("rate-limit", maxTxPerHour=1)

    answers = [tenant.put(path(agent), json=sent) for sent in ([one] * 50, [one] * 51, [{**one, "id": "x"}] * 2)]

    assert [answer.status_code for answer in answers] == [200, 400, 400]


def test_a_set_has_at_most_64_kib(tenant: Tenant, agent: Agent) -> None:
    addresses = [f"0x{number:040x}" for number in range(1, 1600)]

    assert tenant.put(path(agent), json=[rule("approved-addresses", addresses=addresses)]).status_code == 400
    assert tenant.put(path(agent), json=[rule("approved-addresses", addresses=addresses[:1000])]).status_code == 200


def test_an_absent_agent_is_404(tenant: Tenant) -> None:
    answers = [tenant.get("/agents/absent/policies"), tenant.put("/agents/absent/policies", json=[])]

    assert [(answer.status_code, answer.json()["data"]["code"]) for answer in answers] == [(404, "agent_absent")] * 2


def test_a_new_set_judges_the_next_order(tenant: Tenant, agent: Agent) -> None:
    assert agent.sign(value=10).status_code == 200

    tenant.ok("PUT", path(agent), [rule("spending-limit", maxPerTransaction="9")])

    refused = agent.sign(value=10)
    assert refused.status_code == 403
    assert refused.json()["data"]["results"][0] == {
        "type": "spending-limit",
        "passed": False,
        "reason": refused.json()["data"]["results"][0]["reason"],
        "policyId": tenant.ok("GET", path(agent))[0]["id"],
    }


def test_a_window_is_open_from_its_first_moment_and_over_at_its_last(tenant: Tenant) -> None:
    asks = rule("auto-approve-threshold", threshold="0")
    agent = tenant.agent(asks, rule("time-window", notBefore="2020-01-01T00:00:00Z", notAfter="2090-01-01T00:00:00Z"))
    waits = agent.sign(value=10)
    (item,) = tenant.ok("GET", "/approvals")

    for moments, reason in (
        ({"notAfter": "2020-01-01T00:00:00Z"}, "since 2020-01-01 00:00 UTC nothing is signed under these rules"),
        ({"notBefore": "2090-01-01T00:00:00Z"}, "until 2090-01-01 00:00 UTC nothing is signed under these rules"),
    ):
        tenant.ok("PUT", path(agent), [asks, rule("time-window", **moments)])
        refused = agent.sign(value=10)

        assert (refused.status_code, refused.json()["data"]["results"][1]["reason"]) == (403, reason)
        # What was queued in time is not approved out of it.
        approved = tenant.post(f"/approvals/{item['id']}/approve", json={"digest": item["digest"]})
        assert (waits.status_code, approved.status_code) == (202, 403)


TIGHTER = {
    "a lower limit": (rule("spending-limit", maxPerDay="10"), rule("spending-limit", maxPerDay="9")),
    "the same again": (rule("spending-limit", maxPerDay="10"), rule("spending-limit", maxPerDay="10")),
    "one more limit": (
        rule("spending-limit", maxPerDay="10"),
        rule("spending-limit", maxPerDay="10", maxPerTransaction="1"),
    ),
    "a shorter whitelist": (
        rule("approved-addresses", addresses=[ADDRESS, OTHER_ADDRESS]),
        rule("approved-addresses", addresses=[ADDRESS]),
    ),
    "a longer blacklist": (
        rule("approved-addresses", addresses=[ADDRESS], mode="blacklist"),
        rule("approved-addresses", addresses=[ADDRESS, OTHER_ADDRESS], mode="blacklist"),
    ),
    "fewer chains": (rule("allowed-chains", chains=[1, 31337]), rule("allowed-chains", chains=[31337])),
    "fewer orders": (rule("rate-limit", maxTxPerHour=5), rule("rate-limit", maxTxPerHour=4)),
    "fewer hours": (
        rule("time-window", allowedHours=[{"start": 8, "end": 18}]),
        rule("time-window", allowedHours=[{"start": 9, "end": 17}]),
    ),
    "an earlier end": (
        rule("time-window", notAfter="2090-01-02T00:00:00Z"),
        rule("time-window", notAfter="2090-01-01T00:00:00Z", notBefore="2020-01-01T00:00:00Z"),
    ),
}


@pytest.mark.parametrize(("wide", "narrow"), TIGHTER.values(), ids=TIGHTER)
def test_an_agent_may_tighten_its_own_rules(tenant: Tenant, wide: dict[str, Any], narrow: dict[str, Any]) -> None:
    agent = tenant.agent({**wide, "id": "r"})

    assert agent.put(path(agent), json=[{**narrow, "id": "r"}]).status_code == 200


@pytest.mark.parametrize(("wide", "narrow"), [TIGHTER[name] for name in TIGHTER if name != "the same again"])
def test_an_agent_may_not_loosen_its_own_rules(tenant: Tenant, wide: dict[str, Any], narrow: dict[str, Any]) -> None:
    agent = tenant.agent({**narrow, "id": "r"})

    for sent in ([{**wide, "id": "r"}], [], [{**narrow, "id": "r", "enabled": False}]):
        answer = agent.put(path(agent), json=sent)

        assert (answer.status_code, answer.json()["data"]["code"]) == (403, "policy_loosened"), answer.text
    assert [one["config"] for one in tenant.ok("GET", path(agent))] == [narrow["config"]]


def test_a_first_limit_and_any_contract_is_loosening_for_an_agent(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="10"))
    own = tenant.ok("GET", path(agent))
    token = "evm:31337:0x" + "33" * 20

    for surplus in (
        rule("spending-limit", maxPerDay="1", asset=token),
        rule("contract-allowlist", contracts=[{"address": ADDRESS, "selectors": ["0xa9059cbb"]}]),
    ):
        assert agent.put(path(agent), json=[*own, surplus]).status_code == 403
    assert agent.put(path(agent), json=[*own, rule("rate-limit", maxTxPerHour=1)]).status_code == 200


# ---- an integration


@pytest.fixture
def integration(as_owner: Person) -> Iterator[Client]:
    with closing(app_client_of(as_owner)) as client:
        yield client


def test_an_app_client_tightens_as_an_agent_may(tenant: Tenant, integration: Client) -> None:
    for wide, narrow in TIGHTER.values():
        agent = tenant.agent({**wide, "id": "r"})

        assert integration.put(path(agent), json=[{**narrow, "id": "r"}]).status_code == 200


def test_an_app_client_loosens_nothing(tenant: Tenant, integration: Client) -> None:
    for name, (wide, narrow) in TIGHTER.items():
        agent = tenant.agent({**narrow, "id": "r"})
        loose = [
            [],
            [{**narrow, "id": "r", "enabled": False}],
            *([] if name == "the same again" else [[{**wide, "id": "r"}]]),
        ]

        for sent in loose:
            answer = integration.put(path(agent), json=sent)

            assert (answer.status_code, answer.json()["data"]["code"]) == (403, "policy_loosened"), answer.text
        assert [one["config"] for one in tenant.ok("GET", path(agent))] == [narrow["config"]]


def test_with_a_token_that_an_app_client_made_the_rules_bind_as_before(tenant: Tenant, integration: Client) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="10"), rule("spending-limit", maxPerDay="1000"))
    token = integration.ok("POST", f"/agents/{agent.id}/token", {})["token"]

    with closing(Client(base_url=tenant.base_url, headers={"Authorization": f"Bearer {token}"})) as taken:
        order = {"to": ADDRESS, "broadcast": False}
        answers = [
            taken.put(path(agent), json=[]),
            integration.put(path(agent), json=[]),
            *(taken.post(f"/vault/{agent.id}/sign", json={**order, "value": value}) for value in ("11", "1001", "10")),
        ]

    assert [answer.status_code for answer in answers] == [403, 403, 202, 403, 200]
    queued = answers[2].json()["data"]["approvalId"]
    assert integration.post(f"/approvals/{queued}/approve", json={}).json()["data"]["code"] == "wrong_kind"

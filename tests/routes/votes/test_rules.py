"""Rules that ask for votes: who sets one, and what loosening one takes."""

import hashlib
import json
from contextlib import closing
from typing import Any

import pytest

from tests.fixtures.app_clients import app_client_of
from tests.fixtures.approvers import Approver, Authenticator, quorum
from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.people import member
from tests.fixtures.server import Service

NOBODY = "00000000-0000-4000-8000-000000000000"


def status_and_code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["data"].get("code")


def test_only_a_person_with_a_second_factor_adds_the_rule(
    service: Service, tenant: Tenant, three: list[Approver]
) -> None:
    agent, ada = tenant.agent(), three[0]
    plain, path = member(service, tenant, "owner"), f"/agents/{agent.id}/policies"
    owner = member(service, tenant, "owner", mfa=True)
    with closing(plain), closing(owner), closing(app_client_of(owner)) as client:
        for caller in (tenant, agent, client):
            assert status_and_code(caller.put(path, json=[quorum(1, ada)]))[0] == 403, caller
        assert status_and_code(plain.put(path, json=[quorum(1, ada)])) == (403, "mfa_required")
        batch = {"agents": [{"id": "x-1", "name": "X"}], "applyPolicies": [quorum(1, ada)]}
        assert not tenant.post("/agents/batch", json=batch).is_success

    assert tenant.ok("GET", path) == []


@pytest.mark.parametrize(
    "config", [{"threshold": 3}, {"threshold": 0}, {"asset": "evm:native"}, {"above": "-1"}], ids=str
)
def test_a_rule_that_makes_no_sense_is_refused(tenant: Tenant, three: list[Approver], config: dict[str, Any]) -> None:
    agent, (ada, ben, _) = tenant.agent(), three
    sent = quorum(2, ada, ben)

    answer = ada.person.put(f"/agents/{agent.id}/policies", json=[{**sent, "config": {**sent["config"], **config}}])

    assert answer.status_code == 400, answer.text


def test_a_rule_names_members_with_a_living_key_each_once(tenant: Tenant, three: list[Approver]) -> None:
    agent, (ada, ben, cyd) = tenant.agent(), three
    path, unknown = f"/agents/{agent.id}/policies", Authenticator().fingerprint
    ben.person.ok("DELETE", f"/approver-keys/{cyd.authenticator.id}")
    of_ben = ben.authenticator.fingerprint
    for named in (
        [{"userId": NOBODY, "keys": [ada.authenticator.fingerprint]}],
        [{"userId": ada.person.id, "keys": [unknown]}],
        [{"userId": ada.person.id, "keys": [of_ben]}],
        [cyd.reference()],
    ):
        sent = {"type": "approval-quorum", "enabled": True, "config": {"threshold": 1, "approvers": named}}
        assert status_and_code(ada.person.put(path, json=[sent])) == (400, "unknown_approver")
    for named in (
        [ada.reference(), ada.reference()],
        [ada.reference(), {"userId": ben.person.id, "keys": [ada.authenticator.fingerprint]}],
        [{"userId": ada.person.id, "keys": []}],
    ):
        sent = {"type": "approval-quorum", "enabled": True, "config": {"threshold": 1, "approvers": named}}
        assert ada.person.put(path, json=[sent]).status_code == 400


def test_a_looser_set_needs_votes(tenant: Tenant, voted_agent: Agent, three: list[Approver]) -> None:
    ada, ben, cyd = three
    path = f"/agents/{voted_agent.id}/policies"
    looser: list[list[dict[str, Any]]] = [
        [],
        [quorum(2, *three, enabled=False)],
        [quorum(1, *three)],
        [quorum(2, *three, above="1")],
        [rule("spending-limit", maxPerTx="5")],
    ]
    for caller in (tenant, ada.person):
        for rules in looser:
            assert status_and_code(caller.put(path, json=rules)) == (403, "quorum_needed"), rules

    (kept,) = tenant.ok("GET", path)
    assert kept["config"]["threshold"] == 2
    # Tightening is anybody's: a key of the tenant's adds what stands beside it, a person fewer approvers.
    tenant.ok("PUT", path, [kept, rule("allowed-chains", chains=[1])])
    ada.person.ok("PUT", path, [quorum(2, ben, cyd), rule("allowed-chains", chains=[1])])


def ballot(agent: Agent, voter: Approver, rules: list[dict[str, Any]], version: int) -> dict[str, Any]:
    """A vote for a set, over its canonical JSON."""
    canonical = [{key: one[key] for key in ("config", "enabled", "id", "type")} for one in rules]
    text = json.dumps(canonical, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    item = {"id": agent.id, "txId": str(version), "digest": digest}
    return {"policies": rules, "vote": voter.vote(item, said={"kind": "policies"})}


def test_votes_loosen_the_set(tenant: Tenant, voted_agent: Agent, three: list[Approver]) -> None:
    ada, ben, cyd = three
    path = f"/agents/{voted_agent.id}/policies"
    version = tenant.ok("GET", f"{path}/votes")["version"]
    looser = [{**rule("allowed-chains", chains=[1]), "id": "one"}]
    other = [{**rule("allowed-chains", chains=[2]), "id": "one"}]

    first = ada.person.post(f"{path}/votes", json=ballot(voted_agent, ada, looser, version))
    assert (first.status_code, first.json()["data"]["have"]) == (202, 1), first.text
    assert status_and_code(ben.person.post(f"{path}/votes", json=ballot(voted_agent, ben, looser, version + 1))) == (
        403,
        "vote_refused",
    )
    theirs = cyd.person.post(f"{path}/votes", json=ballot(voted_agent, cyd, other, version))
    assert (theirs.status_code, theirs.json()["data"]["have"]) == (202, 1)

    last = ben.person.post(f"{path}/votes", json=ballot(voted_agent, ben, looser, version))

    assert (last.status_code, last.json()["data"]["have"]) == (200, 2), last.text
    assert [one["type"] for one in tenant.ok("GET", path)] == ["allowed-chains"]
    assert tenant.ok("GET", f"{path}/votes")["version"] == version + 1
    late = cyd.person.post(f"{path}/votes", json=ballot(voted_agent, cyd, looser, version))
    assert status_and_code(late) == (403, "vote_refused")


def test_votes_need_the_id_of_every_rule(voted_agent: Agent, three: list[Approver]) -> None:
    body = {
        "policies": [rule("allowed-chains", chains=[1])],
        "vote": three[0].vote({"id": "x", "txId": "1", "digest": ""}),
    }

    assert three[0].person.post(f"/agents/{voted_agent.id}/policies/votes", json=body).status_code == 400

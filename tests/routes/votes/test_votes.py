"""An order under `approval-quorum`: signed once enough named people voted, each with their own pinned key."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from custody.receipts.verify import verify
from tests.fixtures.approvers import RP_ID, Approver, Authenticator, approver, quorum
from tests.fixtures.callers import Agent, Tenant, platform_client, rule
from tests.fixtures.server import Service


def waiting(tenant: Tenant, agent: Agent) -> dict[str, Any]:
    """An order that waits for votes."""
    answer = agent.sign(value=5)
    assert answer.status_code == 202, answer.text
    return tenant.ok("GET", f"/approvals/{answer.json()['data']['approvalId']}")


def test_two_votes_of_three_sign_an_order(tenant: Tenant, voted_agent: Agent, three: list[Approver]) -> None:
    item = waiting(tenant, voted_agent)
    ada, ben, cyd = three

    first = ada.approve(item)

    assert first.status_code == 202, first.text
    taken = first.json()["data"]
    assert (taken["approvalId"], taken["txId"], taken["status"]) == (item["id"], item["txId"], "pending")
    assert (taken["votes"]["have"], taken["votes"]["need"]) == (1, 2)
    assert [one["userId"] for one in taken["votes"]["by"]] == [ada.person.id]
    shown = tenant.ok("GET", f"/approvals/{item['id']}")
    assert (shown["status"], shown["votes"]["have"]) == ("pending", 1)
    assert set(shown["votes"]["waitingFor"]) == {ben.person.id, cyd.person.id}

    second = ben.approve(item)

    assert second.status_code == 200, second.text
    assert second.json()["data"]["status"] == "approved"
    assert tenant.ok("GET", f"/approvals/{item['id']}")["txStatus"] == "signed"


def test_an_approval_without_a_vote_leaves_the_item_waiting(
    tenant: Tenant, voted_agent: Agent, three: list[Approver]
) -> None:
    item = waiting(tenant, voted_agent)

    for caller in (tenant, three[0].person):
        answer = caller.post(f"/approvals/{item['id']}/approve", json={})
        assert (answer.status_code, answer.json()["data"]["code"]) == (403, "quorum_needed"), answer.text

    assert tenant.ok("GET", f"/approvals/{item['id']}")["status"] == "pending"


def test_the_same_person_votes_once(tenant: Tenant, voted_agent: Agent, three: list[Approver]) -> None:
    item = waiting(tenant, voted_agent)

    assert three[0].approve(item).status_code == 202
    again = three[0].approve(item)

    assert (again.status_code, again.json()["data"]["votes"]["have"]) == (202, 1)


def test_the_vault_takes_a_vote_as_the_queue_does(tenant: Tenant, voted_agent: Agent, three: list[Approver]) -> None:
    item = waiting(tenant, voted_agent)
    body = {"digest": item["digest"], "vote": three[0].vote(item)}

    answer = three[0].person.post(f"/vault/{voted_agent.id}/approve/{item['txId']}", json=body)

    assert (answer.status_code, answer.json()["data"]["votes"]["have"]) == (202, 1)
    assert three[1].approve(item).status_code == 200


def test_two_last_votes_at_once_sign_once(tenant: Tenant, voted_agent: Agent, three: list[Approver]) -> None:
    for _ in range(8):
        item = waiting(tenant, voted_agent)
        with ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda one, item=item: one.approve(item).status_code, three))
        assert sorted(answers).count(200) == 1, answers
        assert set(answers) <= {200, 202, 409}
        assert tenant.ok("GET", f"/approvals/{item['id']}")["txStatus"] == "signed"


def test_one_denial_ends_the_item(tenant: Tenant, voted_agent: Agent, three: list[Approver]) -> None:
    item = waiting(tenant, voted_agent)
    assert three[0].approve(item).status_code == 202

    tenant.ok("POST", f"/approvals/{item['id']}/deny", {"reason": "no"})

    assert (three[1].approve(item).status_code, three[2].approve(item).status_code) == (409, 409)


@pytest.mark.parametrize("order", ["removed", "revoked", "unnamed", "demoted"])
def test_a_vote_counts_no_more_once_what_it_stands_on_is_gone(
    service: Service, tenant: Tenant, voted_agent: Agent, three: list[Approver], order: str
) -> None:
    ada, ben, cyd = three
    item = waiting(tenant, voted_agent)
    assert ada.approve(item).status_code == 202
    with platform_client(service) as platform:
        members = f"/platform/tenants/{tenant.id}/members"
        if order == "removed":
            platform.ok("DELETE", f"{members}/{ada.person.id}")
        if order == "demoted":
            platform.ok("POST", members, {"userId": ada.person.id, "role": "viewer"})
    if order == "revoked":
        ben.person.ok("DELETE", f"/approver-keys/{ada.authenticator.id}")
    if order == "unnamed":
        ben.person.ok("PUT", f"/agents/{voted_agent.id}/policies", [quorum(2, ben, cyd)])

    second = ben.approve(item)

    assert (second.status_code, second.json()["data"]["votes"]["have"]) == (202, 1), second.text
    assert cyd.approve(item).status_code == 200


def test_only_orders_above_the_amount_need_votes(tenant: Tenant, three: list[Approver]) -> None:
    agent = tenant.agent()
    above = quorum(1, three[0], above="100", asset="evm:native")
    three[0].person.ok("PUT", f"/agents/{agent.id}/policies", [above])

    assert agent.sign(value=100).status_code == 200
    assert agent.sign(value=101).status_code == 202
    assert agent.sign(value=1, data="0xdeadbeef").status_code == 202


def test_a_hard_rule_refuses_however_many_voted(tenant: Tenant, three: list[Approver]) -> None:
    agent, ada = tenant.agent(), three[0]
    ada.person.ok("PUT", f"/agents/{agent.id}/policies", [quorum(1, ada)])
    item = waiting(tenant, agent)
    ada.person.ok("PUT", f"/agents/{agent.id}/policies", [quorum(1, ada), rule("allowed-chains", chains=[5])])

    refused = ada.approve(item)

    assert (refused.status_code, refused.json()["data"]["code"]) == (403, "policy_refused")
    assert tenant.ok("GET", f"/approvals/{item['id']}")["votes"]["have"] == 0


def test_a_vote_that_does_not_count_is_refused_and_kept_nowhere(
    service: Service, tenant: Tenant, voted_agent: Agent, three: list[Approver]
) -> None:
    ada, ben, _ = three
    item, other = waiting(tenant, voted_agent), waiting(tenant, voted_agent)
    stranger = approver(service, tenant)
    unpinned = Authenticator()
    unpinned.id = ada.person.ok("POST", "/approver-keys", unpinned.registration())["id"]
    honest = ada.vote(item)
    wrong: dict[str, tuple[Approver, dict[str, str]]] = {
        "of another item": (ada, ada.vote(other)),
        "of another digest": (ada, ada.vote(item, said={"digest": "0" * 64})),
        "of another person": (ben, honest),
        "by another's key": (ben, ben.authenticator.assertion(ben.challenge(item)) | {"keyId": ada.authenticator.id}),
        "by an unpinned key": (ada, unpinned.assertion(ada.challenge(item))),
        "by somebody who is not named": (stranger, stranger.vote(item)),
        "over": (ada, ada.vote(item, said={"seconds": -1})),
        "for too long": (ada, ada.vote(item, said={"seconds": 25 * 3600})),
        "a denial": (ada, ada.vote(item, said={"decision": "deny"})),
        "not verified": (ada, ada.vote(item, flags=1)),
        "of the main site": (ada, ada.vote(item, rp_id="localhost", client={"origin": service.url})),
        "from a frame": (ada, ada.vote(item, client={"crossOrigin": True})),
        "with an unknown key": (ada, honest | {"keyId": "00000000-0000-4000-8000-000000000000"}),
        "not of base64url": (ada, honest | {"signature": "AB"}),
    }
    for what, (voter, vote) in wrong.items():
        answer = voter.approve(item, vote)
        assert (answer.status_code, answer.json()["data"]["code"]) == (403, "vote_refused"), (what, answer.text)
    stranger.person.close()

    assert tenant.ok("GET", f"/approvals/{item['id']}")["votes"]["have"] == 0
    assert ada.approve(item, honest).status_code == 202


def test_a_counter_that_does_not_rise_is_refused(tenant: Tenant, voted_agent: Agent, three: list[Approver]) -> None:
    first, second = waiting(tenant, voted_agent), waiting(tenant, voted_agent)
    ada = three[0]

    assert ada.approve(first, ada.vote(first, count=5)).status_code == 202
    assert ada.approve(second, ada.vote(second, count=5)).status_code == 403
    assert ada.approve(second, ada.vote(second, count=0)).status_code == 403
    assert ada.approve(second, ada.vote(second, count=6)).status_code == 202


def test_a_vote_is_told_and_leaves_an_audit_row(tenant: Tenant, voted_agent: Agent, three: list[Approver]) -> None:
    item = waiting(tenant, voted_agent)
    three[0].approve(item)

    rows = three[0].person.ok("GET", f"/audit/events?resourceId={item['id']}")["data"]

    assert [row["action"] for row in rows] == ["approval.voted"]
    assert (rows[0]["metadata"]["have"], rows[0]["metadata"]["need"]) == (1, 2)


def test_the_receipt_states_the_votes(tenant: Tenant, voted_agent: Agent, three: list[Approver]) -> None:
    item = waiting(tenant, voted_agent)
    for one in three[:2]:
        one.approve(item)

    answer = tenant.get(f"/vault/{voted_agent.id}/transactions/{item['txId']}/receipt")

    votes = answer.json()["data"]["receipt"]["approval"]["votes"]
    assert {vote["userId"] for vote in votes} == {one.person.id for one in three[:2]}
    assert {vote["rpId"] for vote in votes} == {RP_ID}
    found = verify(answer.content, tenant.get("/.well-known/jwks.json").content)
    assert set(found.votes) == {(one.person.id, one.authenticator.fingerprint) for one in three[:2]}

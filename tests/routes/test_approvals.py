"""The tenant's queue: listed, counted, decided once."""

import asyncio
import json
import uuid
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from typing import Any

import asyncpg
import pytest

from custody.kit.tenant_semaphore import MAX_WAITING
from tests.fixtures.callers import ADDRESS, OTHER_ADDRESS, Agent, AsyncClient, Client, Tenant, rule
from tests.fixtures.people import member
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.outside.evm_node import EvmNode
from tests.routes.orders import mail, permit
from tests.routes.tenants.makers import CROWD, crowd, holding

FIELDS = {
    "id",
    "txId",
    "agentId",
    "agentName",
    "status",
    "requestedAt",
    "resolvedAt",
    "resolvedBy",
    "resolvedByUserId",
    "resolvedByName",
    "reason",
    "comment",
    "expiresAt",
    "kind",
    "referenceId",
    "toAddress",
    "releaseAt",
    "value",
    "chainId",
    "txStatus",
    "effects",
    "policyResults",
    "digest",
    "votes",
}


@pytest.fixture
def cautious(tenant: Tenant) -> Agent:
    """An agent whose every payment waits."""
    return tenant.agent(rule("auto-approve-threshold", threshold="0"))


def queue_order(agent: Agent, value: int = 5, **fields: Any) -> str:
    answer = agent.sign(value=value, **fields)
    assert answer.status_code == 202, answer.text
    return answer.json()["data"]["approvalId"]


def item(tenant: Client, approval: str) -> dict[str, Any]:
    return tenant.ok("GET", f"/approvals/{approval}")


def decide(tenant: Tenant, approval: str, way: str, **body: Any) -> tuple[int, Any]:
    answer = tenant.post(f"/approvals/{approval}/{way}", json=body)
    return answer.status_code, answer.json()["data"].get("code", answer.json()["data"].get("status"))


def test_an_item_says_what_a_person_must_know(tenant: Tenant, cautious: Agent) -> None:
    approval = queue_order(cautious, referenceId="invoice-7")

    shown = tenant.ok("GET", "/approvals")[0]

    assert set(shown) == FIELDS
    in_full = item(tenant, approval)
    assert json.loads(in_full.pop("order"))["value"] == "5"
    assert in_full.pop("paidBefore") is None
    assert in_full == shown
    assert shown["votes"] is None
    expected = {
        "agentId": cautious.id,
        "agentName": f"Agent {cautious.id}",
        "status": "pending",
        "resolvedAt": None,
        "resolvedBy": None,
        "resolvedByName": None,
        "comment": None,
        "kind": "evm",
        "referenceId": "invoice-7",
        "toAddress": ADDRESS,
        "value": "5",
        "chainId": 31337,
        "txStatus": "pending_approval",
    }
    assert {name: shown[name] for name in expected} == expected
    assert [effect["kind"] for effect in shown["effects"]] == ["transfer", "fee"]
    assert len(shown["digest"]) == 64


def test_the_list_is_filtered_paged_and_counted(tenant: Tenant, cautious: Agent) -> None:
    first, second, third = (queue_order(cautious) for _ in range(3))
    tenant.ok("POST", f"/approvals/{first}/deny", {})
    tenant.ok("POST", f"/approvals/{second}/approve", {})

    expected = {
        "pending": [third],
        "approved": [second],
        "rejected": [first],
        "expired": [],
        "all": [third, second, first],
    }
    for status, ids in expected.items():
        assert [one["id"] for one in tenant.ok("GET", f"/approvals?status={status}")] == ids
    page = tenant.get("/approvals?status=all&limit=1&offset=1")
    assert [one["id"] for one in page.json()["data"]] == [second]
    assert page.headers["X-Total-Count"] == "3"


@pytest.mark.parametrize(
    "query", ["status=open", "limit=0", "limit=201", "offset=-1", "kind=swap", "asset=evm:native&minAmount=-1"]
)
def test_a_malformed_filter_is_400(tenant: Tenant, query: str) -> None:
    assert tenant.get(f"/approvals?{query}").status_code == 400


def list_ids(tenant: Tenant, query: str) -> list[str]:
    return [one["id"] for one in tenant.ok("GET", f"/approvals?{query}")]


def test_the_list_is_filtered_by_agent_kind_and_reference(tenant: Tenant, cautious: Agent) -> None:
    other = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    first, second = queue_order(cautious, referenceId="invoice-7"), queue_order(other, referenceId="invoice-7")
    document = other.post(f"/vault/{other.id}/sign-typed-data", json=permit(other.evm_address, 5))
    third = document.json()["data"]["approvalId"]

    assert list_ids(tenant, f"agentId={cautious.id}") == [first]
    assert list_ids(tenant, "referenceId=invoice-7") == [second, first]
    assert list_ids(tenant, f"referenceId=invoice-7&agentId={other.id}") == [second]
    assert (list_ids(tenant, "kind=typed_data"), list_ids(tenant, "kind=evm")) == ([third], [second, first])
    assert list_ids(tenant, "kind=solana") == list_ids(tenant, "referenceId=invoice") == []
    page = tenant.get(f"/approvals?agentId={other.id}&limit=1")
    assert ([one["id"] for one in page.json()["data"]], page.headers["X-Total-Count"]) == ([third], "2")


def test_the_list_is_filtered_by_what_an_order_takes_of_an_asset(tenant: Tenant, cautious: Agent) -> None:
    little, much = queue_order(cautious, 5), queue_order(cautious, 10**30)
    token = "0x" + "ab" * 20
    call = "0xa9059cbb" + OTHER_ADDRESS[2:].rjust(64, "0") + format(7, "064x")
    paid = queue_order(cautious, 0, to=token, data=call)
    tenant.ok("POST", f"/approvals/{little}/deny", {})

    assert list_ids(tenant, "status=all&asset=evm:native") == [much, little]
    assert list_ids(tenant, "status=all&asset=evm:native&minAmount=5&maxAmount=5") == [little]
    assert list_ids(tenant, "asset=evm:native&minAmount=6") == [much]
    assert list_ids(tenant, f"asset=evm:native&maxAmount={10**30 - 1}") == []
    # Seven of its smallest unit, whatever it is worth.
    assert list_ids(tenant, f"asset=evm:31337:{token}&minAmount=7&maxAmount=7") == [paid]
    assert list_ids(tenant, f"asset=evm:31337:{token}&minAmount=8") == []


def test_an_amount_without_its_asset_is_400(tenant: Tenant) -> None:
    refused = tenant.get("/approvals?minAmount=1")

    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "amount_without_asset")
    unknown = tenant.get("/approvals?asset=dollars").json()
    assert unknown["data"]["code"] == "unknown_asset"
    # Each that the sentence names is taken.
    for asset in ("usd", "evm:native", "solana:native", "bitcoin"):
        assert f"`{asset}`" in unknown["error"]
        assert tenant.ok("GET", f"/approvals?asset={asset}") == []


async def test_stats_count_every_status(tenant: Tenant, cautious: Agent, owner: asyncpg.Connection) -> None:
    assert tenant.ok("GET", "/approvals/stats") == {
        "pending": 0,
        "approved": 0,
        "rejected": 0,
        "expired": 0,
        "total": 0,
        "avgWaitSeconds": 0,
    }
    denied, approved, expired, waiting = (queue_order(cautious) for _ in range(4))
    tenant.ok("POST", f"/approvals/{denied}/deny", {})
    tenant.ok("POST", f"/approvals/{approved}/approve", {})
    await owner.execute("UPDATE approvals SET expires_at = now() - interval '1 s' WHERE id = $1", expired)
    await owner.execute(
        "UPDATE approvals SET requested_at = resolved_at - interval '10 s' WHERE id = ANY ($1)", [denied, approved]
    )

    stats = tenant.ok("GET", "/approvals/stats")

    assert stats == {"pending": 1, "approved": 1, "rejected": 1, "expired": 1, "total": 4, "avgWaitSeconds": 10.0}
    assert [one["id"] for one in tenant.ok("GET", "/approvals")] == [waiting]
    assert item(tenant, waiting)["status"] == "pending"


def test_approving_answers_with_the_hash(tenant: Tenant, evm_node: EvmNode) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    evm_node.fund(agent.evm_address)
    approval = queue_order(agent, broadcast=True)

    approved = tenant.ok("POST", f"/approvals/{approval}/approve", {"digest": item(tenant, approval)["digest"]})

    shown = item(tenant, approval)
    assert set(approved) == {"approvalId", "status", "txHash", "resolvedAt"}
    assert (approved["approvalId"], approved["status"]) == (approval, "approved")
    assert evm_node.receipt(approved["txHash"])["status"] == "0x1"
    assert (shown["status"], shown["txStatus"], shown["resolvedBy"]) == ("approved", "broadcast", "manual")
    assert shown["resolvedAt"] >= approved["resolvedAt"] > shown["requestedAt"]


def test_an_approval_needs_no_body(tenant: Tenant, cautious: Agent) -> None:
    assert tenant.post(f"/approvals/{queue_order(cautious)}/approve").status_code == 200


def test_approved_typed_data_has_no_hash_and_its_signature_is_in_the_record(tenant: Tenant) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    answer = agent.post(f"/vault/{agent.id}/sign-typed-data", json=permit(agent.evm_address, 5))
    assert answer.status_code == 202, answer.text

    approved = tenant.ok("POST", f"/approvals/{answer.json()['data']['approvalId']}/approve", {})

    assert approved["txHash"] is None
    found = agent.ok("GET", f"/vault/{agent.id}/history?include=data")[0]
    assert (found["status"], len(found["signature"])) == ("signed", 132)
    assert agent.post(f"/vault/{agent.id}/sign-typed-data", json=mail()).status_code == 200


def test_denying_answers_who_and_keeps_the_reason(tenant: Tenant, cautious: Agent) -> None:
    approval = queue_order(cautious)

    denied = tenant.ok("POST", f"/approvals/{approval}/deny", {"reason": "no invoice\nattached"})

    assert set(denied) == {"approvalId", "status", "resolvedAt", "resolvedBy"}
    assert (denied["status"], denied["resolvedBy"]) == ("rejected", "manual")
    shown = item(tenant, approval)
    assert (shown["reason"], shown["txStatus"], shown["resolvedBy"]) == ("no invoice\nattached", "rejected", "manual")


def test_the_agent_learns_why_it_was_denied(tenant: Tenant, cautious: Agent) -> None:
    approval, other = queue_order(cautious), queue_order(cautious)
    tenant.ok("POST", f"/approvals/{approval}/deny", {"reason": "no invoice attached"})
    tenant.ok("POST", f"/approvals/{other}/approve", {"comment": "paid before"})

    second, first = cautious.ok("GET", f"/vault/{cautious.id}/history")
    assert (first["status"], first["statusDetail"], first["reason"]) == ("rejected", "denied", "no invoice attached")
    assert (second["status"], second["reason"]) == ("signed", None)


async def test_an_approver_may_say_something(tenant: Tenant, cautious: Agent, owner: asyncpg.Connection) -> None:
    approval, by_order = queue_order(cautious), queue_order(cautious)
    said = "checked with\nthe supplier " + "é" * 900
    tx = item(tenant, by_order)["txId"]

    assert tenant.post(f"/approvals/{approval}/approve", json={"comment": "x" * 1001}).status_code == 400
    tenant.ok("POST", f"/approvals/{approval}/approve", {"comment": said})
    tenant.ok("POST", f"/vault/{cautious.id}/approve/{tx}", {"comment": "by its order"})

    assert [item(tenant, one)["comment"] for one in (approval, by_order)] == [said, "by its order"]
    assert item(tenant, approval)["reason"] is None
    rows = await owner.fetch(
        "SELECT metadata::json ->> 'comment' AS said FROM audit WHERE tenant_id = $1 AND action = 'tx.approved' "
        "ORDER BY seq",
        tenant.id,
    )
    assert [row["said"] for row in rows] == [said, "by its order"]


def test_a_decider_is_named_while_they_are_a_member(
    service: Service, tenant: Tenant, cautious: Agent, as_platform: Client
) -> None:
    by_key, by_person = queue_order(cautious), queue_order(cautious)
    tenant.ok("POST", f"/approvals/{by_key}/approve", {})
    with closing(member(service, tenant, "owner", mfa=True)) as person:
        person.ok("POST", f"/approvals/{by_person}/deny", {"reason": "no"})
        shown = [item(person, one) for one in (by_key, by_person)]
        assert [(one["resolvedByUserId"], one["resolvedByName"]) for one in shown] == [
            (None, None),
            (person.id, person.wallet.address),
        ]
        assert [one["resolvedByName"] for one in tenant.ok("GET", "/approvals?status=rejected")] == [
            person.wallet.address
        ]
        as_platform.ok("DELETE", f"/platform/tenants/{tenant.id}/members/{person.id}", {"force": True})

        gone = item(tenant, by_person)
        assert (gone["resolvedByUserId"], gone["resolvedByName"]) == (person.id, None)


def test_an_item_of_another_tenant_is_absent(tenant: Tenant, other_tenant: Tenant, cautious: Agent) -> None:
    approval = queue_order(cautious)

    answers = [other_tenant.get(f"/approvals/{one}") for one in (approval, str(uuid.uuid4()))]

    assert [(one.status_code, one.json()["data"]["code"]) for one in answers] == [(404, "approval_absent")] * 2


def test_a_digest_of_something_else_is_refused_and_nothing_is_decided(tenant: Tenant, cautious: Agent) -> None:
    approval, other = queue_order(cautious), queue_order(cautious, 6)
    digest = item(tenant, other)["digest"]

    assert [decide(tenant, approval, way, digest=digest) for way in ("approve", "deny")] == [
        (409, "approval_changed")
    ] * 2
    assert decide(tenant, approval, "approve", digest="x")[0] == 400
    assert item(tenant, approval)["status"] == "pending"
    assert decide(tenant, approval, "approve", digest=item(tenant, approval)["digest"]) == (200, "approved")


@pytest.mark.parametrize("first", ["approve", "deny"])
def test_an_item_is_decided_once(tenant: Tenant, cautious: Agent, first: str) -> None:
    approval = queue_order(cautious)
    assert decide(tenant, approval, first)[0] == 200

    assert [decide(tenant, approval, way) for way in ("approve", "deny")] == [(409, "approval_resolved")] * 2


async def test_of_many_decisions_at_once_exactly_one_is_made(
    tenant: Tenant, cautious: Agent, owner: asyncpg.Connection
) -> None:
    approval = queue_order(cautious)
    async with AsyncClient(base_url=tenant.base_url, headers=tenant.headers, timeout=30) as client:
        ways = ["approve", "deny"] * 8
        answers = await asyncio.gather(*(client.post(f"/approvals/{approval}/{way}", json={}) for way in ways))

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 15
    actions = await owner.fetch(
        "SELECT action FROM audit WHERE tenant_id = $1 AND action IN ('tx.approved', 'tx.denied')", tenant.id
    )
    assert len(actions) == 1


async def test_an_expired_item_can_be_neither_approved_nor_denied(
    tenant: Tenant, cautious: Agent, owner: asyncpg.Connection
) -> None:
    approval = queue_order(cautious)
    await owner.execute("UPDATE approvals SET expires_at = now() - interval '1 ms' WHERE id = $1", approval)

    assert [decide(tenant, approval, way) for way in ("approve", "deny")] == [(409, "approval_expired")] * 2
    assert [one["id"] for one in tenant.ok("GET", "/approvals?status=expired")] == [approval]
    assert tenant.ok("GET", "/approvals") == []
    assert cautious.ok("GET", f"/vault/{cautious.id}/pending") == []


def test_todays_hard_rules_judge_the_approval_and_the_item_stays(tenant: Tenant, cautious: Agent) -> None:
    approval = queue_order(cautious)
    path = f"/agents/{cautious.id}/policies"
    tenant.ok("PUT", path, [rule("approved-addresses", addresses=[OTHER_ADDRESS])])

    refused = tenant.post(f"/approvals/{approval}/approve", json={})

    assert refused.status_code == 403
    assert [(one["type"], one["passed"]) for one in refused.json()["data"]["results"]] == [
        ("approved-addresses", False)
    ]
    assert (item(tenant, approval)["status"], item(tenant, approval)["txStatus"]) == ("pending", "pending_approval")
    tenant.ok("PUT", path, [])
    assert decide(tenant, approval, "approve") == (200, "approved")


def test_a_queued_order_holds_no_budget_and_counts_when_it_is_signed(tenant: Tenant) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerDay="10"), rule("auto-approve-threshold", threshold="5"))
    first, second = queue_order(agent, 6), queue_order(agent, 6)

    assert decide(tenant, first, "approve") == (200, "approved")
    assert decide(tenant, second, "approve")[0] == 403
    assert agent.sign(value=4).status_code == 200
    assert agent.sign(value=1).status_code == 403


def test_an_approval_does_not_count_against_its_own_rate(tenant: Tenant) -> None:
    agent = tenant.agent(rule("rate-limit", maxTxPerHour=1), rule("auto-approve-threshold", threshold="0"))
    approval = queue_order(agent)

    assert decide(tenant, approval, "approve") == (200, "approved")
    assert agent.sign().status_code == 429


async def test_an_order_changed_behind_our_back_is_not_signed(
    tenant: Tenant, cautious: Agent, owner: asyncpg.Connection
) -> None:
    approval = queue_order(cautious)
    await owner.execute(
        "UPDATE transactions SET order_text = replace(order_text, $1, $2) WHERE tenant_id = $3",
        ADDRESS,
        OTHER_ADDRESS,
        tenant.id,
    )

    status, code = decide(tenant, approval, "approve")

    assert status in (409, 503), code
    assert item(tenant, approval)["status"] == "pending"


async def test_many_who_deny_for_one_agent_keep_nobody_else_from_signing(
    service: Service, tenant: Tenant, other_tenant: Tenant, cautious: Agent, database: Database
) -> None:
    approvals, other = [queue_order(cautious) for _ in range(CROWD)], other_tenant.agent()
    acts = [lambda one=one: decide(tenant, one, "deny") for one in approvals]
    async with (
        holding(database, "SELECT FROM agents WHERE tenant_id = $1 FOR UPDATE", tenant.id) as meanwhile,
        crowd(service, *acts) as denying,
    ):
        # Less than the ten seconds after which the signer sends home those who wait.
        signed = await asyncio.wait_for(asyncio.to_thread(other.sign), 8)
        assert not any(one.done() for one in denying)
        await meanwhile.execute("ROLLBACK")
        ended = await asyncio.gather(*denying)

    assert signed.status_code == 200
    assert ended == [(200, "rejected")] * CROWD


@pytest.mark.parametrize(
    ("table", "filters"),
    [
        ("approvals", {"asset": "evm:native", "minAmount": "1"}),
        ("approvals", {"kind": "evm"}),
        ("approvals", {"referenceId": "r"}),
        ("transactions", {"toAddress": ADDRESS}),
    ],
)
async def test_searches_by_orders_leave_other_tenants_their_connections(
    tenant: Tenant, other_tenant: Tenant, owner: asyncpg.Connection, table: str, filters: dict[str, str]
) -> None:
    held = owner.transaction()
    await held.start()
    await owner.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
    with ThreadPoolExecutor(24) as threads:
        asked = [threads.submit(tenant.get, f"/{table}", params=filters, timeout=20) for _ in range(MAX_WAITING + 3)]
        try:
            # One runs, eight wait, and further ones are refused; in front of nobody else's reads.
            refused = [ended.result() for _, ended in zip(range(2), as_completed(asked, timeout=3), strict=False)]
            read = await asyncio.to_thread(other_tenant.get, "/agents", timeout=3)
        finally:
            await held.rollback()
        came = [one.result() for one in asked]

    assert [one.json()["data"]["code"] for one in refused] == ["searching_already"] * 2
    assert read.status_code == 200
    assert sorted(one.status_code for one in came) == [200] * (len(asked) - 2) + [429] * 2

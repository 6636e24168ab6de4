"""Freezing an agent or a tenant, and that nothing is signed once it is answered."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import asyncpg
import pytest

from tests.fixtures.callers import Agent, Client, Tenant
from tests.fixtures.people import Person, member
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.routes.tenants.makers import CROWD, as_app, crowd, holding, keep_client, keep_secret, somebody_waits

WHAT = ("agent", "tenant")


def path_of(what: str, agent: Agent, tenant: Tenant) -> str:
    return f"/agents/{agent.id}" if what == "agent" else f"/tenants/{tenant.id}"


@pytest.mark.parametrize("what", WHAT)
def test_a_frozen_agent_signs_nothing_until_a_person_unfreezes_it(
    tenant: Tenant, as_owner: Person, agent: Agent, what: str
) -> None:
    path = path_of(what, agent, tenant)

    frozen = tenant.ok("POST", f"{path}/freeze", {"reason": "lost laptop"})
    refused = agent.sign()
    thawed = as_owner.ok("POST", f"{path}/unfreeze")

    assert frozen == {
        f"{what}Id": agent.id if what == "agent" else tenant.id,
        "frozen": True,
        "frozenAt": frozen["frozenAt"],
        "reason": "lost laptop",
        **({"frozenBy": ["tenant"]} if what == "tenant" else {}),
    }
    assert (refused.status_code, refused.json()["data"]["code"]) == (423, "frozen")
    assert (thawed["frozen"], thawed["frozenAt"], thawed["reason"]) == (False, None, None)
    assert agent.sign().status_code == 200


@pytest.mark.parametrize("what", WHAT)
def test_freezing_again_keeps_the_first_time_and_reason(
    tenant: Tenant, as_owner: Person, agent: Agent, what: str
) -> None:
    path = path_of(what, agent, tenant)
    first = tenant.ok("POST", f"{path}/freeze", {"reason": "first"})

    again = as_owner.ok("POST", f"{path}/freeze", {"reason": "second"})

    assert again == first
    assert tenant.ok("GET", path)["frozenAt"] == first["frozenAt"]


@pytest.mark.parametrize("what", WHAT)
def test_unfreezing_what_is_not_frozen_changes_nothing(
    tenant: Tenant, as_owner: Person, agent: Agent, what: str
) -> None:
    assert as_owner.ok("POST", f"{path_of(what, agent, tenant)}/unfreeze")["frozen"] is False


def test_an_unfrozen_tenant_leaves_its_frozen_agent_frozen(tenant: Tenant, as_owner: Person, agent: Agent) -> None:
    for path in (f"/agents/{agent.id}", f"/tenants/{tenant.id}"):
        tenant.ok("POST", f"{path}/freeze", {})

    as_owner.ok("POST", f"/tenants/{tenant.id}/unfreeze")

    assert (agent.sign().status_code, tenant.agent().sign().status_code) == (423, 200)


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize(
    ("role", "code"), [("owner", "mfa_required"), ("developer", "wrong_role"), ("viewer", "wrong_role")]
)
def test_others_neither_freeze_nor_unfreeze(
    service: Service, tenant: Tenant, agent: Agent, what: str, role: str, code: str
) -> None:
    path = path_of(what, agent, tenant)
    with closing(member(service, tenant, role, mfa=role != "owner")) as somebody:
        answers = [somebody.post(f"{path}/freeze", json={}), somebody.post(f"{path}/unfreeze")]

    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in answers} == {(403, code)}
    assert agent.sign().status_code == 200


@pytest.mark.parametrize("what", WHAT)
def test_programs_may_freeze_with_the_tenants_key_alone_and_never_unfreeze(
    tenant: Tenant, as_owner: Person, as_platform: Client, agent: Agent, what: str
) -> None:
    path = path_of(what, agent, tenant)
    keep_client(as_owner)
    made = keep_secret(as_owner)

    with as_app(as_owner, made["appId"], made["appSecret"]) as app:
        refused = [one.post(f"{path}/freeze", json={}).status_code for one in (app, agent, as_platform)]
        refused += [one.post(f"{path}/unfreeze").status_code for one in (app, agent, as_platform, tenant)]

    assert refused == [403] * 7
    assert agent.sign().status_code == 200


def test_absent_and_foreign_ones_are_404(tenant: Tenant, other_tenant: Tenant) -> None:
    foreign = other_tenant.agent()

    answers = [
        tenant.post(path, json={})
        for path in ("/agents/nobody/freeze", f"/agents/{foreign.id}x/freeze", f"/tenants/{other_tenant.id}/freeze")
    ]

    assert [answer.status_code for answer in answers] == [404] * 3
    assert foreign.sign().status_code == 200


@pytest.mark.parametrize("bad", [{"reason": "x" * 1001}, {"reason": "a\0b"}, {"reason": 7}, {"why": "x"}], ids=str)
def test_a_bad_reason_is_400(tenant: Tenant, agent: Agent, bad: dict[str, object]) -> None:
    assert tenant.post(f"/agents/{agent.id}/freeze", json=bad).status_code == 400


async def test_only_what_changed_is_told(
    tenant: Tenant, as_owner: Person, agent: Agent, owner: asyncpg.Connection
) -> None:
    for path in (f"/agents/{agent.id}", f"/tenants/{tenant.id}"):
        for _ in range(2):
            tenant.ok("POST", f"{path}/freeze", {"reason": "why"})
        for _ in range(2):
            as_owner.ok("POST", f"{path}/unfreeze")

    rows = await owner.fetch(
        "SELECT action, actor_type, metadata FROM audit WHERE tenant_id = $1 AND action LIKE '%frozen' ORDER BY seq",
        tenant.id,
    )
    assert [tuple(row) for row in rows] == [
        ("agent.frozen", "system", '{"reason":"why"}'),
        ("agent.unfrozen", "user", "{}"),
        ("tenant.frozen", "system", '{"reason":"why"}'),
        ("tenant.unfrozen", "user", "{}"),
    ]


def test_a_repeated_request_gets_the_first_answer(tenant: Tenant, as_owner: Person, agent: Agent) -> None:
    key = {"Idempotency-Key": "freeze-it-once"}
    first = tenant.post(f"/tenants/{tenant.id}/freeze", json={}, headers=key)
    as_owner.ok("POST", f"/tenants/{tenant.id}/unfreeze")

    again = tenant.post(f"/tenants/{tenant.id}/freeze", json={}, headers=key)

    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first.json(), "true")
    assert agent.sign().status_code == 200


@pytest.mark.parametrize("what", WHAT)
async def test_a_freeze_waits_for_the_signature_that_is_being_written(
    tenant: Tenant, agent: Agent, database: Database, owner: asyncpg.Connection, what: str
) -> None:
    path = f"{path_of(what, agent, tenant)}/freeze"
    waited = "freeze_agent" if what == "agent" else "await_signatures"
    async with holding(database, "LOCK TABLE transactions IN EXCLUSIVE MODE"):
        signing = asyncio.create_task(asyncio.to_thread(agent.sign))
        await somebody_waits(owner, "sign_write")
        freezing = asyncio.create_task(asyncio.to_thread(tenant.ok, "POST", path, {}))
        await somebody_waits(owner, waited)
        assert not freezing.done()

    signed, frozen = await signing, await freezing

    assert (signed.status_code, frozen["frozen"]) == (200, True)
    assert agent.sign().status_code == 423


@pytest.mark.parametrize("what", WHAT)
async def test_an_order_that_was_judged_before_the_freeze_is_not_written_after_it(
    tenant: Tenant, agent: Agent, database: Database, owner: asyncpg.Connection, what: str
) -> None:
    async with holding(database, "SELECT FROM agents WHERE tenant_id = $1 FOR UPDATE", tenant.id) as frozen_meanwhile:
        signing = asyncio.create_task(asyncio.to_thread(agent.sign))
        await somebody_waits(owner, "sign_write")
        table, column = ("agents", "tenant_id") if what == "agent" else ("tenants", "id")
        await frozen_meanwhile.execute(f"UPDATE {table} SET frozen_at = now() WHERE {column} = $1", tenant.id)

    assert (await signing).status_code == 423


@pytest.mark.parametrize("what", WHAT)
def test_nothing_is_signed_once_a_freeze_was_answered(tenant: Tenant, what: str) -> None:
    agents = [tenant.agent() for _ in range(3)]
    frozen = threading.Event()
    late: list[int] = []

    def sign_on(agent: Agent) -> int:
        signed = 0
        while True:
            was_frozen = frozen.is_set()
            if agent.sign().status_code != 200:
                return signed
            late.extend([1] if was_frozen else [])
            signed += 1

    with ThreadPoolExecutor(6) as pool:
        signers = [pool.submit(sign_on, agent) for agent in agents for _ in range(2)]
        for path in [f"/agents/{agent.id}" for agent in agents] if what == "agent" else [f"/tenants/{tenant.id}"]:
            tenant.ok("POST", f"{path}/freeze", {})
        frozen.set()
        counted = [len(tenant.ok("GET", f"/vault/{agent.id}/history")) for agent in agents]
        for signer in signers:
            signer.result(90)

    assert late == []
    assert [len(tenant.ok("GET", f"/vault/{agent.id}/history")) for agent in agents] == counted


@pytest.mark.parametrize("what", WHAT)
async def test_many_who_freeze_one_thing_keep_nobody_else_from_signing(
    service: Service, tenant: Tenant, other_tenant: Tenant, agent: Agent, database: Database, what: str
) -> None:
    path, other = f"{path_of(what, agent, tenant)}/freeze", other_tenant.agent()
    async with (
        holding(database, "SELECT FROM agents WHERE tenant_id = $1 FOR UPDATE", tenant.id) as meanwhile,
        crowd(service, *[lambda: tenant.ok("POST", path, {})] * CROWD) as freezing,
    ):
        # Less than the ten seconds after which the signer sends home those who wait.
        signed = await asyncio.wait_for(asyncio.to_thread(other.sign), 8)
        assert not any(one.done() for one in freezing)
        await meanwhile.execute("ROLLBACK")
        await asyncio.gather(*freezing)

    assert signed.status_code == 200


async def test_a_freeze_that_changes_nothing_waits_all_the_same_for_what_may_be_under_way(
    tenant: Tenant, agent: Agent, database: Database, owner: asyncpg.Connection
) -> None:
    async with holding(database, "LOCK TABLE transactions IN EXCLUSIVE MODE"):
        signing = asyncio.create_task(asyncio.to_thread(agent.sign))
        await somebody_waits(owner, "sign_write")
        # Somebody froze the tenant and hung up before the answer.
        await owner.execute("UPDATE tenants SET frozen_at = now() WHERE id = $1", tenant.id)
        freezing = asyncio.create_task(asyncio.to_thread(tenant.ok, "POST", f"/tenants/{tenant.id}/freeze", {}))
        await somebody_waits(owner, "await_signatures")
        assert not freezing.done()

    assert ((await signing).status_code, (await freezing)["frozen"]) == (200, True)


async def test_an_unfreeze_and_a_freeze_of_long_ago_wait_for_no_order(
    tenant: Tenant, as_owner: Person, agent: Agent, database: Database, owner: asyncpg.Connection
) -> None:
    tenant.ok("POST", f"/tenants/{tenant.id}/freeze", {})
    await owner.execute("UPDATE tenants SET frozen_at = now() - interval '3 minutes' WHERE id = $1", tenant.id)

    async with holding(database, "SELECT FROM agents WHERE tenant_id = $1 FOR UPDATE", tenant.id):
        again = await asyncio.to_thread(tenant.ok, "POST", f"/tenants/{tenant.id}/freeze", {})
        thawed = await asyncio.to_thread(as_owner.ok, "POST", f"/tenants/{tenant.id}/unfreeze")

    assert (again["frozen"], thawed["frozen"]) == (True, False)

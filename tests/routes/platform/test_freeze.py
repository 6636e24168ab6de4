"""A tenant that the operator freezes: nothing is signed, and its own people cannot end that."""

import asyncio
import json

import asyncpg
import pytest

from tests.fixtures.callers import Agent, Client, Tenant
from tests.fixtures.people import Person
from tests.fixtures.postgres import Database
from tests.routes.tenants.makers import holding, somebody_waits


def path_of(tenant: Tenant, what: str) -> str:
    return f"/platform/tenants/{tenant.id}/{what}"


def test_a_tenant_that_the_operator_froze_is_not_unfrozen_by_its_people(
    as_platform: Client, as_owner: Person, tenant: Tenant, agent: Agent
) -> None:
    frozen = as_platform.ok("POST", path_of(tenant, "freeze"), {"reason": "a court said so"})
    again = as_platform.ok("POST", path_of(tenant, "freeze"), {"reason": "another"})
    refused = as_owner.post(f"/tenants/{tenant.id}/unfreeze")
    signed_meanwhile = agent.sign()
    ended = as_platform.ok("POST", path_of(tenant, "unfreeze"))

    assert frozen == again
    assert (frozen["tenantId"], frozen["frozen"], frozen["reason"], frozen["frozenBy"]) == (
        tenant.id,
        True,
        "a court said so",
        ["operator"],
    )
    assert (refused.status_code, refused.json()["data"]["code"]) == (409, "frozen_by_operator")
    assert (signed_meanwhile.status_code, signed_meanwhile.json()["data"]["code"]) == (423, "frozen")
    assert (ended["frozen"], ended["frozenAt"], ended["reason"], ended["frozenBy"]) == (False, None, None, [])
    assert agent.sign().status_code == 200


@pytest.mark.parametrize("first", ["tenant", "operator"])
def test_each_ends_only_their_own_freeze(
    as_platform: Client, as_owner: Person, tenant: Tenant, agent: Agent, first: str
) -> None:
    freezes = {
        "tenant": lambda: tenant.ok("POST", f"/tenants/{tenant.id}/freeze", {"reason": "ours"}),
        "operator": lambda: as_platform.ok("POST", path_of(tenant, "freeze"), {"reason": "theirs"}),
    }
    begun = freezes.pop(first)()
    both = next(iter(freezes.values()))()
    refused = as_owner.post(f"/tenants/{tenant.id}/unfreeze").status_code
    left = as_platform.ok("POST", path_of(tenant, "unfreeze"))
    signed_meanwhile = agent.sign().status_code
    ended = as_owner.ok("POST", f"/tenants/{tenant.id}/unfreeze")

    assert (both["frozenAt"], both["reason"], both["frozenBy"]) == (begun["frozenAt"], "theirs", ["tenant", "operator"])
    assert (refused, signed_meanwhile) == (409, 423)
    assert (left["frozen"], left["reason"], left["frozenBy"]) == (True, "ours", ["tenant"])
    assert (ended["frozen"], agent.sign().status_code) == (False, 200)


def test_only_the_operator_may(tenant: Tenant, as_owner: Person, agent: Agent) -> None:
    answers = [one.post(path_of(tenant, what)) for one in (tenant, as_owner, agent) for what in ("freeze", "unfreeze")]

    assert {answer.status_code for answer in answers} == {403}
    assert agent.sign().status_code == 200


def test_an_absent_tenant_is_404(as_platform: Client) -> None:
    answers = [as_platform.post(f"/platform/tenants/absent/{what}", json={}) for what in ("freeze", "unfreeze")]

    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in answers} == {(404, "tenant_absent")}


async def test_both_logs_tell_of_it(as_platform: Client, tenant: Tenant, owner: asyncpg.Connection) -> None:
    for what in ("freeze", "freeze", "unfreeze", "unfreeze"):
        as_platform.ok("POST", path_of(tenant, what), {"reason": "why"} if what == "freeze" else None)

    rows = await owner.fetch(
        "SELECT tenant_id, action, metadata, actor_id FROM audit WHERE resource_id = $1 AND action LIKE '%frozen' "
        "ORDER BY seq",
        tenant.id,
    )
    assert [(row["tenant_id"], row["action"], json.loads(row["metadata"])) for row in rows] == [
        (tenant.id, "tenant.frozen", {"reason": "why"}),
        ("platform", "tenant.frozen", {"reason": "why"}),
        (tenant.id, "tenant.unfrozen", {}),
        ("platform", "tenant.unfrozen", {}),
    ]
    assert {row["actor_id"].split(":")[0] for row in rows} == {"platform-key"}


async def test_it_waits_for_the_signature_that_is_being_written(
    as_platform: Client, tenant: Tenant, agent: Agent, database: Database, owner: asyncpg.Connection
) -> None:
    async with holding(database, "LOCK TABLE transactions IN EXCLUSIVE MODE"):
        signing = asyncio.create_task(asyncio.to_thread(agent.sign))
        await somebody_waits(owner, "sign_write")
        freezing = asyncio.create_task(asyncio.to_thread(as_platform.ok, "POST", path_of(tenant, "freeze"), {}))
        await somebody_waits(owner, "await_signatures")
        assert not freezing.done()

    assert ((await signing).status_code, (await freezing)["frozen"]) == (200, True)
    assert agent.sign().status_code == 423


async def test_no_freeze_is_kept_where_nobody_looks(tenant: Tenant, owner: asyncpg.Connection) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await owner.execute("UPDATE tenants SET operator_frozen_at = now() WHERE id = $1", tenant.id)

"""The name on an audit row: a person's only where a person acted."""

import asyncpg

from tests.fixtures.callers import Tenant
from tests.fixtures.people import Person


async def test_an_agent_that_is_called_like_a_person_acts_as_the_agent_it_is(
    tenant: Tenant, as_owner: Person, owner: asyncpg.Connection
) -> None:
    impostor = tenant.agent(agent_id=f"user:{as_owner.id}")
    order = impostor.sign().json()["data"]["txId"]

    row = await owner.fetchrow(
        "SELECT actor_type, actor_id FROM audit WHERE tenant_id = $1 AND resource_id = $2", tenant.id, order
    )
    assert tuple(row) == ("agent", impostor.id)


async def test_a_person_acts_in_their_own_name(as_owner: Person, owner: asyncpg.Connection) -> None:
    as_owner.ok("POST", "/agents", {"id": "made-by-a-person", "name": "An agent"})

    row = await owner.fetchrow(
        "SELECT actor_type, actor_id FROM audit WHERE tenant_id = $1 AND action = 'agent.created'", as_owner.tenant
    )
    assert tuple(row) == ("user", as_owner.id)

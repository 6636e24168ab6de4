"""A deployment that is not reached on loopback sends nothing into its own network."""

from tests.fixtures.hooked import Hooked, Hooks, rows


async def test_a_deployment_of_the_world_sends_nothing_into_its_own_network(hook_world: Hooked, hooks: Hooks) -> None:
    url, plain = hooks.endpoint(), hooks.endpoint(server="plain")
    hook_world.names(**{"d__receiver__test": [["10.0.0.1"]]})
    inside, nowhere = hooks.endpoint(host="d.receiver.test"), hooks.endpoint(host="e.receiver.test")
    with hook_world.scheduler(SERVICE_PUBLIC_URL="https://custody.example.com"):
        hooks.event()
        for there in (url, plain, inside, nowhere):
            hooks.ended_deliveries(there)

    query = "SELECT error FROM deliveries WHERE tenant_id = $1"
    found = await rows(hook_world.database, query, hooks.tenant.id)
    assert sorted([row[0] for row in found]) == ["address_blocked", "address_blocked", "address_blocked", "name"]
    assert hooks.receivers.at(url) == hooks.receivers.at(plain) == []

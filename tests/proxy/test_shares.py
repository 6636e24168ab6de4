"""One agent's share of what all have in common: rows of the audit log, and bodies that are held."""

import select
from contextlib import ExitStack

from custody.kit import clock
from proxy_addon.admission import MAX_INJECTED_BODY
from proxy_addon.mitm.handler import MAX_HELD_OF_AGENT
from proxy_addon.refusals import MAX_TOLD_OF_AGENT
from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless, new_keyless
from tests.proxy.envelope import refusal
from tests.proxy.written import rows


async def test_a_frozen_agent_that_goes_on_asking_is_counted_and_not_written_down_each_time(
    with_route: Keyless,
) -> None:
    async with owner_of(with_route.proxied.database) as owner:
        await owner.execute("UPDATE agents SET frozen_at = now() WHERE tenant_id = $1", with_route.tenant.id)
    before, asked = clock.now(), 250
    # An orderly stop writes the numbers of the minute that has not passed.
    with with_route.proxied.another_proxy() as proxy, ExitStack() as stack:
        wires = [stack.enter_context(proxy.connect()).say(with_route.head("/up/echo")) for _ in range(asked)]
        assert {refusal(wire.hear()) for wire in wires} == {(403, "frozen")}

    written = await rows(with_route, MAX_TOLD_OF_AGENT + 1)
    numbers = [row for row in written if "count" in row["metadata"]]
    # Should a minute end on the way, each half of it has its own.
    assert MAX_TOLD_OF_AGENT < len(written) <= 2 * MAX_TOLD_OF_AGENT + 2
    assert len(written) - len(numbers) + sum(row["metadata"]["count"] for row in numbers) == asked
    for row in numbers:
        metadata = row["metadata"]
        assert clock.iso(before) <= metadata.pop("since") <= metadata.pop("at") <= clock.iso(clock.now())
        assert metadata.pop("count") > 0
        assert metadata == {"status": 403, "refused": "frozen"}
        assert (row["actor_id"], row["resource_id"], row["ip_address"]) == (with_route.agent.id, "-", "127.0.0.1")


def test_bodies_that_are_held_have_a_bound_for_an_agent(keyless: Keyless) -> None:
    keyless.route(pathPattern="/count", injectAs="body", injectKey="key", injectFormat="{value}")
    whole, most = ["Content-Type: application/json", f"Content-Length: {MAX_INJECTED_BODY}"], MAX_INJECTED_BODY - 1
    with ExitStack() as stack:
        wires = [stack.enter_context(keyless.proxy.connect()) for _ in range(MAX_HELD_OF_AGENT // most + 3)]
        for wire in wires:
            wire.say(keyless.head("/up/count", "POST", *whole), b" " * most)
        # Nobody else is answered before the rest of its body comes.
        told = eventually(
            lambda: [wire for wire in wires if select.select([wire.socket], [], [], 0)[0]],
            lambda answered: len(answered) >= 3,
        )
        for answer in (wire.hear() for wire in told):
            assert refusal(answer) == (429, "too_much_held")
            assert answer.all("retry-after") == ["1"]
        with new_keyless(keyless.proxied) as other:
            other.route(pathPattern="/count", injectAs="body", injectKey="key", injectFormat="{value}")
            assert other.gateway().post("/count", json={"a": "b"}).status_code == 200

    # What was held is let go of with its connection.
    client = keyless.gateway()
    assert eventually(lambda: client.post("/count", json={"a": "b" * 900_000}).status_code, 200) == 200

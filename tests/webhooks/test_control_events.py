"""Events of what is done to agents and their rules, with who did it; of what changes nothing there are none."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fixtures.callers import rule
from tests.fixtures.hooked import Hooked, Hooks, new_hooks

EVENTS = ["agent.frozen", "agent.unfrozen", "tenant.frozen", "tenant.unfrozen", "policies.changed"]
LIMIT = rule("spending-limit", maxPerDay="100", maxPerWeek="1000")
LOWER = {**LIMIT, "config": {**LIMIT["config"], "maxPerDay": "50"}}


@pytest.fixture(scope="module")
def frozen_and_changed(hook_world: Hooked) -> Iterator[tuple[Hooks, list[dict[str, Any]]]]:
    """One tenant, to which everything here was done, and what its endpoint was sent, by time."""
    with new_hooks(hook_world) as hooks:
        agent, tenant = f"/agents/{hooks.agent.id}", f"/tenants/{hooks.tenant.id}"
        hooks.tenant.ok("PUT", f"{agent}/policies", [LIMIT])
        everything = hooks.endpoint(events=EVENTS)
        with hook_world.scheduler():
            hooks.tenant.ok("POST", f"{agent}/freeze", {"reason": "lost laptop"})
            hooks.tenant.ok("POST", f"{agent}/freeze", {"reason": "again"})
            hooks.owner.ok("POST", f"{agent}/unfreeze")
            hooks.owner.ok("POST", f"{tenant}/freeze", {})
            hooks.owner.ok("POST", f"{tenant}/unfreeze")
            hooks.owner.ok("POST", f"{tenant}/unfreeze")
            [kept] = hooks.tenant.ok("GET", f"{agent}/policies")
            hooks.tenant.ok("PUT", f"{agent}/policies", [kept])
            hooks.owner.ok("PUT", f"{agent}/policies", [{**LOWER, "id": kept["id"]}])
            hooks.tenant.ok("PUT", f"{agent}/policies", [])
            made = hooks.owner.ok("POST", "/policy-sets", {"name": "fleet", "policies": [LIMIT]})
            hooks.owner.ok("PUT", f"/policy-sets/{made['id']}", {"name": "fleet", "policies": [LOWER]})
            # The first rules too: a new endpoint gets what was not published yet when it was made.
            hooks.ended_deliveries(everything, 8)
        heard = sorted((one.envelope for one in hooks.receivers.at(everything)), key=lambda one: one["timestamp"])
        yield hooks, heard


def test_a_freeze_and_its_end_are_told_once_with_who_did_it(
    frozen_and_changed: tuple[Hooks, list[dict[str, Any]]],
) -> None:
    hooks, heard = frozen_and_changed
    person = f"user:{hooks.owner.id}"

    said = [(one["event"], one["agentId"], one["data"]) for one in heard if one["event"] != "policies.changed"]

    key = said[0][2]["by"]
    assert key.startswith("tenant-key:")
    assert said == [
        ("agent.frozen", hooks.agent.id, {"by": key, "reason": "lost laptop"}),
        ("agent.unfrozen", hooks.agent.id, {"by": person}),
        ("tenant.frozen", None, {"by": person, "reason": None}),
        ("tenant.unfrozen", None, {"by": person}),
    ]


def test_changed_rules_are_told_with_their_direction_and_the_same_rules_are_not(
    frozen_and_changed: tuple[Hooks, list[dict[str, Any]]],
) -> None:
    hooks, heard = frozen_and_changed

    changed = [one for one in heard if one["event"] == "policies.changed"]

    assert [(one["agentId"], one["data"]["change"]) for one in changed] == [
        (hooks.agent.id, "looser"),
        (hooks.agent.id, "tighter"),
        (hooks.agent.id, "looser"),
        (None, "tighter"),
    ]
    assert changed[1]["data"]["by"] == f"user:{hooks.owner.id}"
    assert changed[2]["data"]["by"].startswith("tenant-key:")
    assert [one["data"]["policySetId"] is None for one in changed] == [True, True, True, False]
    assert changed[3]["data"]["version"] == 2

"""Places where a delivery may go: every address of the name is judged, with each connection; no other is dialled."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fixtures.hooked import Hooked, Hooks, rows

METADATA = "169.254.169.254"


async def _errors(hooks: Hooks) -> list[Any]:
    query = "SELECT error FROM deliveries WHERE tenant_id = $1 ORDER BY created_at"
    return [row["error"] for row in await rows(hooks.service.database, query, hooks.tenant.id)]


NAMES = {
    "rebinds": [["127.0.0.1"], [METADATA]],
    "pinned": [["127.0.0.1"], [METADATA]],
    "second": [["127.0.0.1", METADATA]],
    "first": [[METADATA, "127.0.0.1"]],
    "mapped": [["::ffff:127.0.0.1"]],
    "unspecified": [["0.0.0.0"]],
    # This deployment is on loopback, so loopback may be dialled, and no other network of its operator.
    "private": [["127.0.0.1", "192.168.0.1"]],
    "unique-local": [["127.0.0.1", "fd12::1"]],
    "carrier": [["127.0.0.1", "100.64.0.1"]],
}


@pytest.fixture(scope="module")
def names(hook_world: Hooked) -> Iterator[Hooked]:
    """A scheduler whose resolver knows the names above, each with its own answers one after the other."""
    hook_world.names(**{f"{name}__receiver__test": answers for name, answers in NAMES.items()})
    with hook_world.scheduler():
        yield hook_world


async def test_a_name_that_leads_elsewhere_the_second_time_leads_nowhere(names: Hooked, hooks: Hooks) -> None:
    url = hooks.endpoint("closing", host="rebinds.receiver.test")

    hooks.event()
    hooks.ended_deliveries(url)
    hooks.event()
    hooks.ended_deliveries(url, 2)

    assert await _errors(hooks) == [None, "address_blocked"]
    assert len(hooks.receivers.at(url)) == 1


async def test_the_judged_address_is_the_dialled_address(names: Hooked, hooks: Hooks) -> None:
    url = hooks.endpoint("good", host="pinned.receiver.test")

    hooks.event()
    hooks.ended_deliveries(url)

    # The second answer would be refused: a second lookup before dialling would lead there.
    assert await _errors(hooks) == [None]
    assert len(hooks.receivers.at(url)) == 1


@pytest.mark.parametrize("name", ["second", "first", "mapped", "unspecified", "private", "unique-local", "carrier"])
async def test_one_bad_address_among_good_ones_is_enough(names: Hooked, hooks: Hooks, name: str) -> None:
    url = hooks.endpoint("good", host=f"{name}.receiver.test")

    hooks.event()
    hooks.ended_deliveries(url)

    assert await _errors(hooks) == ["address_blocked"]
    assert hooks.receivers.at(url) == []

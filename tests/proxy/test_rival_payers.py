"""Programs that would pay by themselves, with x402's own packages: what the proxy paid for they do not pay again."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from eth_account import Account

from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless
from tests.outside import npm
from tests.outside.x402.payer import Payer, running_payer
from tests.proxy.paying import change, demands, offer, payments_at, spending

pytestmark = pytest.mark.skipif(npm.missing() is not None, reason=npm.missing() or "")

VERSIONS = ["newest", pytest.param("lowest", marks=pytest.mark.long)]
KEY = b"\x2e" * 32
# As version 1 has it, on a network that its clients know.
OLD = offer(
    network="base-sepolia",
    maxAmountRequired="60",
    resource="https://localhost/weather",
    description="",
    mimeType="",
    outputSchema={},
)
REFUSED = {
    "asked for again": demands("never"),
    "asked for again by version 1": demands("never by v1", then=json.dumps([OLD])),
}


@pytest.fixture(name="payer", scope="module")
def payer_fixture() -> Iterator[Payer]:
    """The packages, with a key of their own."""
    with running_payer(KEY) as payer:
        yield payer


def fetch(paying: Keyless, payer: Payer, version: str, query: dict[str, str]) -> dict[str, Any]:
    """Have the program call the paywall through the proxy."""
    headers = {"Authorization": f"Bearer {paying.token}"}
    return payer.fetch(f"{paying.proxy.url}/paywall/?{urlencode(query)}", headers, version)


def requests_of(found: dict[str, Any]) -> tuple[int, int]:
    """Tell how many requests of the program left, and how many with a payment of its own."""
    return found["requests"], found["payments"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_program_that_would_pay_finds_its_call_paid_for(paying: Keyless, payer: Payer, version: str) -> None:
    found = fetch(paying, payer, version, demands())

    assert (found["status"], requests_of(found)) == (200, (1, 0))
    assert "amount=60" in found["paid"]
    assert (len(payments_at(paying)), spending(paying)) == (1, 60)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("why", REFUSED)
def test_a_program_pays_nothing_for_what_was_paid_and_not_given(
    paying: Keyless, payer: Payer, why: str, version: str
) -> None:
    found = fetch(paying, payer, version, REFUSED[why])

    assert requests_of(found) == (1, 0)
    assert "parse payment requirements" in found["problem"]
    # The one without a payment, and the one with ours.
    assert (len(paying.upstream.requests()), spending(paying)) == (2, 60)


def test_a_program_pays_nothing_while_a_person_decides(paying: Keyless, payer: Payer) -> None:
    change(paying, {"payTo": []})

    found = eventually(lambda: fetch(paying, payer, "newest", demands()), lambda found: "problem" in found)

    assert requests_of(found) == (1, 0)
    assert payments_at(paying) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("query", [demands(), demands("v1", OLD)], ids=["version 2", "version 1"])
def test_a_program_pays_by_itself_where_no_route_does(
    paying: Keyless, payer: Payer, query: dict[str, str], version: str
) -> None:
    """The control: it would, by either version, and then it is its own affair."""
    change(paying, {"enabled": False})

    found = eventually(lambda: fetch(paying, payer, version, query), lambda found: found["payments"] == 1)

    assert (found["status"], requests_of(found), found["paid"]) == (200, (2, 1), None)
    assert payments_at(paying)[-1]["payload"]["authorization"]["from"] == Account.from_key(KEY).address
    assert spending(paying) == 0

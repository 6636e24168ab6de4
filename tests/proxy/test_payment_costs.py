"""Paying costs nothing where nothing is demanded, else one question to the signer and one round trip."""

from collections import Counter
from collections.abc import Callable

from custody.protocol.command import commands_of, declaration_of
from signer import table  # noqa: F401 - it loads every command of the signer
from tests.fixtures.proxied import Keyless
from tests.fixtures.signer_socket import greet
from tests.proxy.paying import change, demands

# What only the proxy says: others may ask the signer for other things meanwhile.
OF_PROXY = [one.__name__ for one in commands_of("signer") if declaration_of(one).senders == {"proxy"}]
CALLS = 5


def said_during(keyless: Keyless, call: Callable[[], object]) -> Counter[str]:
    """Count what the proxy asked the signer meanwhile, what was signed, and the requests that the upstream got."""

    def count() -> Counter[str]:
        with greet(keyless.proxied) as wire:
            counters = wire.ask("Status")["data"]["counters"]
        told = Counter({name: counters.get(name, 0) for name in (*OF_PROXY, "batched_orders")})
        return told + Counter(requests=len(keyless.upstream.requests()))

    before = count()
    call()
    return count() - before


def test_a_call_for_nothing_costs_no_more_where_a_payment_route_covers_it(paying: Keyless) -> None:
    client = paying.gateway("paywall")

    def call() -> None:
        for _ in range(CALLS):
            assert client.get("/", params=demands("free")).status_code == 200

    call()
    covered = said_during(paying, call)
    change(paying, {"enabled": False})
    call()

    assert covered == said_during(paying, call) == Counter(requests=CALLS)


def test_a_paid_call_costs_one_signature_and_one_round_trip(paying: Keyless) -> None:
    client = paying.gateway("paywall")
    assert client.get("/", params=demands("free")).status_code == 200

    def call() -> None:
        for _ in range(CALLS):
            assert client.get("/", params=demands()).status_code == 200

    assert said_during(paying, call) == Counter(PayForRoute=CALLS, batched_orders=CALLS, requests=2 * CALLS)

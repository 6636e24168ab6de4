"""Refusals without end: a few of a minute have rows of their own, all others are one number for each reason."""

import pytest

from custody.kit.jwt import AgentClaims
from proxy_addon import refuse
from proxy_addon.audit import FEW_QUEUED, MAX_QUEUED_OF_AGENT, MAX_QUEUED_OF_TENANT, QUEUE, AuditTrail
from proxy_addon.exchange import Exchange, Ticket
from proxy_addon.refusals import MAX_TOLD_OF_AGENT, MAX_TOLD_OF_TENANT, WINDOW_SECONDS, Refusals
from proxy_addon.refuse import Refusal


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def close(agent: str, refusal: Refusal | None = refuse.FROZEN, tenant: str = "acme") -> Exchange:
    exchange = Exchange("gateway", "GET", "id", "127.0.0.1")
    exchange.claims = AgentClaims("custody", agent, tenant, "agent", "incarnation", 1, 0, 2**33, "id")
    exchange.refusal = refusal
    return exchange


def test_of_one_agents_refusals_a_few_of_a_minute_are_told_alone(clock: Clock) -> None:
    refusals = Refusals(clock)
    told = [refusals.told_alone(close("a")) for _ in range(1000)]

    assert told == [True] * MAX_TOLD_OF_AGENT + [False] * (1000 - MAX_TOLD_OF_AGENT)
    assert refusals.many(("acme", "a"))
    assert not refusals.many(("acme", "b"))
    assert refusals.told_alone(close("b"))
    clock.now = WINDOW_SECONDS
    assert not refusals.many(("acme", "a"))
    assert refusals.told_alone(close("a"))


def test_of_a_tenants_refusals_too(clock: Clock) -> None:
    refusals = Refusals(clock)
    told = [refusals.told_alone(close(f"agent-{number}")) for number in range(2 * MAX_TOLD_OF_TENANT)]

    assert sum(told) == MAX_TOLD_OF_TENANT
    assert refusals.told_alone(close("a", tenant="other"))


def test_a_forwarded_request_is_always_recorded_by_itself(clock: Clock) -> None:
    refusals = Refusals(clock)
    for _ in range(MAX_TOLD_OF_AGENT + 1):
        refusals.told_alone(close("a"))
    failed = close("a", refuse.UPSTREAM_FAILED)
    failed.ticket = Ticket(failed, "localhost", 443, private_allowed=False)

    assert refusals.told_alone(close("a", None))
    assert refusals.told_alone(failed)


def test_after_a_minute_the_number_of_each_reason_is_due_once(clock: Clock) -> None:
    refusals = Refusals(clock)
    for refusal, count in ((refuse.FROZEN, MAX_TOLD_OF_AGENT + 7), (refuse.NO_ROUTE, 3)):
        for _ in range(count):
            refusals.told_alone(close("a", refusal))
    clock.now = WINDOW_SECONDS - 1
    assert refusals.due() == []
    clock.now = WINDOW_SECONDS

    assert {(number.agent, number.code, number.status, number.count) for number in refusals.due()} == {
        (("acme", "a"), "frozen", 403, 7),
        (("acme", "a"), "no_route", 403, 3),
    }
    assert refusals.due(all_of_them=True) == []


def trail() -> AuditTrail:
    """A queue whose rows nobody writes."""
    return AuditTrail(None)  # type: ignore[arg-type]


def test_a_tenant_does_not_fill_the_queue() -> None:
    queue = trail()
    assert sum(queue.promise(("noisy", "a")) for _ in range(QUEUE)) == MAX_QUEUED_OF_AGENT
    assert sum(queue.promise(("noisy", f"a{number % 50}")) for number in range(QUEUE)) == (
        MAX_QUEUED_OF_TENANT - MAX_QUEUED_OF_AGENT
    )
    for tenant in range(8):
        for number in range(QUEUE):
            if not queue.promise((f"noisy-{tenant}", f"a{number % 50}")):
                break

    assert [queue.promise(("innocent", "a")) for _ in range(FEW_QUEUED)] == [True] * FEW_QUEUED


def test_refusals_that_are_counted_leave_their_places_at_once() -> None:
    queue = trail()
    for _ in range(10 * MAX_QUEUED_OF_TENANT):
        assert queue.promise(("acme", "a"))
        queue.keep(close("a"))

    # Should a minute end on the way, twice as many.
    assert MAX_TOLD_OF_AGENT <= queue.waiting <= 2 * MAX_TOLD_OF_AGENT

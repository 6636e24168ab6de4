"""The stream of a tenant's events: order, resuming, and when it ends. See docs/webhooks.md."""

import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import asyncpg
import httpx
import msgspec
import pytest

from api.areas.webhooks.stream import RECHECK_SECONDS
from tests.fixtures.callers import Agent, Client, Tenant, new_tenant, platform_client
from tests.fixtures.deployments import partner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.people import member
from tests.fixtures.server import STOP_SECONDS, Service
from tests.outside.loopback import HELD_BYTES

NEXT_SECONDS = 60
ROLES = ("owner", "admin", "developer", "billing", "viewer")


class Heard(msgspec.Struct):
    """One event of a stream; `id` is what it can be gone on from."""

    id: str = ""
    event: str = ""
    data: Any = None


class Stream:
    """A stream that is open, read like a browser does: the lines of an event, an empty one behind it."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self._lines = answer.iter_lines()
        assert answer.headers["content-type"] == "text/event-stream"
        # From here on nothing is missed.
        assert next(self._lines) == ": open"
        # What a browser comes back with when nothing else has arrived.
        self.place = next(self._lines).removeprefix("id: ")
        assert not self.place or next(self._lines) == ""

    def next(self) -> Heard | None:
        """The next event, past comments; None when the stream ended."""
        heard, began = Heard(), False
        deadline = time.monotonic() + NEXT_SECONDS
        for line in self._lines:
            name, _, value = line.partition(": ")
            if name in ("id", "event"):
                setattr(heard, name, value)
                began = True
            elif name == "data":
                heard.data = msgspec.json.decode(value)
            elif not line and began:
                return heard
            elif line.startswith(":"):
                # Comments come for ever, so the client's own patience never ends.
                assert time.monotonic() < deadline, "no event comes"
        return None

    def take(self, count: int) -> list[Heard]:
        """The next events."""
        found = [self.next() for _ in range(count)]
        return [one for one in found if one is not None]


@contextmanager
def listening(client: httpx.Client, last: str | None = None, query: str = "", **headers: str) -> Iterator[Stream]:
    if last is not None:
        headers["Last-Event-ID"] = last
    with client.stream("GET", f"/events{query}", headers=headers, timeout=20) as answer:
        assert answer.status_code == 200, answer.read()
        yield Stream(answer)


def events_after(client: httpx.Client, last: str) -> list[Heard]:
    """Return the events after an event."""
    with listening(client, last, "?follow=false") as stream:
        return list(iter(stream.next, None))


def sign(agent: Agent, *values: int) -> list[str]:
    """Sign, and give the orders' ids."""
    answers = [agent.sign(value=value) for value in values]
    return [answer.json()["data"]["txId"] for answer in answers]


def orders(heard: list[Heard]) -> list[str]:
    return [one.data["data"]["txId"] for one in heard]


def test_events_come_as_they_happen_in_their_order(tenant: Tenant, agent: Agent) -> None:
    with listening(tenant) as first:
        sign(agent, 1)
        first.take(1)
        with listening(tenant) as stream:
            signed = sign(agent, 2, 3, 4)
            heard = stream.take(3)

    assert orders(heard) == signed
    assert [one.event for one in heard] == ["tx.signed"] * 3
    numbers = [int(one.id) for one in heard]
    assert numbers == sorted(set(numbers))
    envelope = heard[0].data
    assert set(envelope) == {"id", "event", "tenantId", "agentId", "timestamp", "data"}
    assert (envelope["event"], envelope["tenantId"], envelope["agentId"]) == ("tx.signed", tenant.id, agent.id)


def test_one_goes_on_where_one_was(tenant: Tenant, agent: Agent) -> None:
    with listening(tenant) as stream:
        signed = sign(agent, 1, 2, 3)
        heard = stream.take(3)

    assert orders(events_after(tenant, heard[0].id)) == signed[1:]
    assert events_after(tenant, heard[2].id) == []
    with listening(tenant, heard[2].id) as stream:
        assert sign(agent, 4) == orders(stream.take(1))


def test_a_disconnect_before_the_first_event_loses_nothing(tenant: Tenant, agent: Agent) -> None:
    with listening(tenant) as first:
        sign(agent, 1)
        newest = first.take(1)[0].id
    with listening(tenant) as stream:
        cut_off_at = stream.place

    signed = sign(agent, 2)

    with listening(tenant, cut_off_at) as stream:
        assert orders(stream.take(1)) == signed
    assert cut_off_at == newest


def test_a_disconnect_before_any_event_exists_is_followed_by_a_reset(tenant: Tenant, agent: Agent) -> None:
    with listening(tenant) as stream:
        cut_off_at = stream.place
    with listening(tenant) as published:
        sign(agent, 1)
        published.take(1)

    assert [one.event for one in events_after(tenant, cut_off_at)] == ["reset"]


def test_no_proxy_in_front_is_to_hold_events_back(tenant: Tenant) -> None:
    with listening(tenant, query="?follow=false") as stream:
        assert stream.answer.headers["x-accel-buffering"] == "no"


@pytest.mark.parametrize("last", ["1", "999999999999999999"])
def test_after_an_event_that_is_not_kept_comes_one_reset(
    tenant: Tenant, agent: Agent, other_tenant: Tenant, last: str
) -> None:
    # All tenants' events have their numbers from one sequence, so the first of them is not this tenant's.
    with listening(other_tenant) as others:
        sign(other_tenant.agent(), 1)
        others.take(1)
    with listening(tenant) as stream:
        sign(agent, 1)
        newest = stream.take(1)[0].id

    with listening(tenant, last) as stream:
        signed = sign(agent, 2)
        reset, heard = stream.take(2)

    assert (reset.event, reset.id, reset.data) == ("reset", newest, {})
    assert orders([heard]) == signed


async def test_an_event_that_was_forgotten_is_told_by_a_reset(
    tenant: Tenant, agent: Agent, owner: asyncpg.Connection
) -> None:
    with listening(tenant) as stream:
        sign(agent, 1)
        forgotten = stream.take(1)[0].id
    assert events_after(tenant, forgotten) == []

    await owner.execute("DELETE FROM events WHERE tenant_id = $1", tenant.id)

    # Nothing is left to go on from, so a client that returns with the old number hears the same again.
    assert events_after(tenant, forgotten) == [Heard(event="reset", data={})]


def test_events_of_another_tenant_are_not_streamed(tenant: Tenant, agent: Agent, other_tenant: Tenant) -> None:
    other = other_tenant.agent()
    with listening(tenant) as stream, listening(other_tenant) as others:
        signed, foreign = sign(agent, 1), sign(other, 1)
        heard, told = stream.take(1), others.take(1)

    assert (orders(heard), orders(told)) == (signed, foreign)
    # The number of an event of somebody else is that of none.
    assert [one.event for one in events_after(tenant, told[0].id)] == ["reset"]


def test_every_role_but_a_member_may_listen(service: Service, tenant: Tenant, agent: Agent) -> None:
    with ExitStack() as stack:
        people = [stack.enter_context(closing(member(service, tenant, role))) for role in ROLES]
        streams = [stack.enter_context(listening(person)) for person in people]
        signed = sign(agent, 1)
        assert [orders(stream.take(1)) for stream in streams] == [signed] * len(ROLES)
        refused = [stack.enter_context(closing(member(service, tenant, "member"))).get("/events"), agent.get("/events")]

    assert [(one.status_code, one.json()["data"]["code"]) for one in refused] == [
        (403, "wrong_role"),
        (403, "wrong_kind"),
    ]


@pytest.mark.parametrize("last", ["x", "-1", "1 2", "1" * 19, "0x1"])
def test_a_number_that_is_none_is_refused(tenant: Tenant, last: str) -> None:
    answer = tenant.get("/events?follow=false", headers={"Last-Event-ID": f"{last}"})

    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["Last-Event-ID"])


def test_a_session_that_ended_does_not_hear_what_comes_after(service: Service, tenant: Tenant, agent: Agent) -> None:
    with closing(member(service, tenant, "viewer")) as person, listening(person) as stream:
        assert orders(stream.take(1) if (signed := sign(agent, 1)) else []) == signed
        with Client(base_url=service.url, headers=dict(person.headers)) as elsewhere:
            elsewhere.ok("POST", "/auth/logout")
        sign(agent, 2)

        assert stream.next() is None


def test_without_any_event_too_a_stream_ends_with_the_right_to_it(service: Service, tenant: Tenant) -> None:
    with ExitStack() as stack:
        gone = stack.enter_context(new_tenant(service))
        removed, stays = (stack.enter_context(closing(member(service, tenant, "viewer"))) for _ in range(2))
        streams = [stack.enter_context(listening(client)) for client in (gone, removed)]
        control = stack.enter_context(listening(stays))
        with platform_client(service) as platform:
            platform.ok("DELETE", f"/platform/tenants/{gone.id}")
            platform.ok("DELETE", f"/platform/tenants/{tenant.id}/members/{removed.id}")

        assert [stream.next() for stream in streams] == [None, None]

        signed = sign(tenant.agent(), 1)
        assert orders(control.take(1)) == signed


def test_a_tenant_has_twenty_streams_at_once(tenant: Tenant, other_tenant: Tenant) -> None:
    with ExitStack() as open_streams:
        clients = [
            open_streams.enter_context(Client(base_url=tenant.base_url, headers=tenant.headers)) for _ in range(21)
        ]
        # Kept, for a stream that nobody holds is closed.
        streams = [open_streams.enter_context(listening(client)) for client in clients[:20]]
        refused = clients[20].get("/events")
        with listening(other_tenant):
            pass

    assert len(streams) == 20
    assert (refused.status_code, refused.json()["data"]["code"]) == (429, "quota_exceeded")
    assert int(refused.headers["Retry-After"]) > 0
    # A closed stream makes room.
    eventually(lambda: tenant.get("/events?follow=false").status_code == 200)


async def test_one_who_does_not_read_is_let_go(service: Service, tenant: Tenant, owner: asyncpg.Connection) -> None:
    before = service.logs().count("slow_reader")
    # More than the kernels keep of what nobody reads.
    size = 200_000
    count = 2 * HELD_BYTES // size
    with listening(tenant) as stream:
        await owner.execute(
            "INSERT INTO events (tenant_id, id, event, data, created_at) SELECT $1, gen_random_uuid(), 'tx.signed', "
            "json_build_object('padding', repeat('x', $2))::text, service_now() FROM generate_series(1, $3)",
            tenant.id,
            size,
            count,
        )
        await owner.execute("SELECT pg_notify('custody_events', $1)", tenant.id)

        eventually(lambda: service.logs().count("slow_reader") == before + 1)
        # What the kernel already had still arrives, and then no more.
        with pytest.raises(httpx.TransportError):
            stream.take(count)

    assert tenant.get("/events?follow=false").status_code == 200


def test_a_stream_ends_cleanly_when_the_service_stops(service: Service, tenant: Tenant, agent: Agent) -> None:
    with partner_of(service) as second:
        headers = {"X-Service-Key": tenant.key}
        with Client(base_url=second.url, headers=headers) as client, listening(client) as stream:
            signed = sign(agent, 1)
            heard = stream.take(1)
            began = time.monotonic()
            second.processes["api"].send_signal(signal.SIGTERM)

            assert stream.next() is None
            # It was woken: it did not come upon the end at its next look whether one may still listen.
            assert time.monotonic() - began < RECHECK_SECONDS - 1
            assert second.processes["api"].wait(STOP_SECONDS) == 0

    assert orders(heard) == signed
    assert events_after(tenant, heard[0].id) == []

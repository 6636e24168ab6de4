"""Connections that end when too many are open: never the last ones of somebody who has few."""

import pytest

from proxy_addon.crowd import (
    CROWDED,
    FEW_PEERS,
    MAX_CONNECTIONS,
    MAX_KNOWN,
    MAX_PEERS_OF_AGENT,
    MAX_PEERS_OF_TENANT,
    Crowd,
)
from proxy_addon.peer import Peer


class Port:
    """The listener's part with a crowd, without sockets."""

    def __init__(self) -> None:
        self.crowd = Crowd()
        self.open: set[Peer] = set()
        self.ended: list[Peer] = []

    def connect(self) -> Peer | None:
        """A connection, if it is taken."""
        if len(self.open) >= CROWDED and (given := self.crowd.give_way()) is not None:
            given.end()
        if len(self.open) >= MAX_CONNECTIONS:
            return None
        peer = Peer("127.0.0.1", lambda: self.end(peer))
        self.open.add(peer)
        self.crowd.came(peer)
        return peer

    def end(self, peer: Peer) -> None:
        """A connection ends."""
        self.open.discard(peer)
        self.ended.append(peer)
        self.crowd.remove(peer)

    def show(self, tenant: str, agent: str = "agent", *, busy: bool = False) -> str | None:
        """Connect and show a token; what stands in the way, or None."""
        peer = self.connect()
        if peer is None:
            return "closed"
        lack = self.crowd.count_as(peer, (tenant, agent))
        peer.busy = busy and lack is None
        return lack


@pytest.fixture
def port() -> Port:
    return Port()


def fill(port: Port, tenants: int, *, busy: bool = False) -> None:
    """Tenants with four agents of 256 connections each."""
    for tenant in range(tenants):
        for agent in range(4):
            for _ in range(MAX_PEERS_OF_AGENT):
                port.show(f"hostile-{tenant}", f"agent-{agent}", busy=busy)


def test_an_agent_and_a_tenant_have_no_more_than_their_share(port: Port) -> None:
    assert [port.show("acme") for _ in range(MAX_PEERS_OF_AGENT + 1)] == [None] * MAX_PEERS_OF_AGENT + ["share"]
    others = [port.show("acme", f"agent-{number}") for number in range(MAX_PEERS_OF_TENANT)]
    assert others.count(None) == MAX_PEERS_OF_TENANT - MAX_PEERS_OF_AGENT


def test_idle_connections_of_four_tenants_lock_nobody_out(port: Port) -> None:
    assert [port.show("early") for _ in range(4)] == [None] * 4
    early = set(port.open)
    fill(port, 4)

    assert len(port.open) <= CROWDED + 1
    assert [port.show(f"innocent-{number}") for number in range(100)] == [None] * 100
    # Who has few keeps them, however long they are idle.
    assert early <= port.open


def test_busy_connections_of_tenants_leave_room_for_those_who_have_few(port: Port) -> None:
    fill(port, 8, busy=True)

    assert [port.show("innocent", busy=True) for _ in range(FEW_PEERS)] == [None] * FEW_PEERS
    assert port.show("innocent", busy=True) == "room"
    # A request that is under way is never ended for another's sake, only who has shown nothing yet.
    assert not any(peer.busy for peer in port.ended)


def test_tenants_together_never_have_all_places(port: Port) -> None:
    told = [port.show(f"tenant-{number // 8}", busy=True) for number in range(2 * MAX_CONNECTIONS)]

    assert told.count(None) == MAX_KNOWN
    assert "closed" not in told
    assert port.connect() is not None


def test_strangers_end_one_another_and_not_whom_we_know(port: Port) -> None:
    assert [port.show("innocent", f"agent-{number}") for number in range(200)] == [None] * 200
    known = set(port.open)
    strangers = [port.connect() for _ in range(2 * MAX_CONNECTIONS)]

    assert known <= port.open
    assert None not in strangers
    assert strangers[-1] in port.open
    assert port.ended == strangers[: len(port.ended)]


def test_the_tenant_that_has_most_gives_way_first(port: Port) -> None:
    for number in range(MAX_PEERS_OF_TENANT):
        port.show("large", f"agent-{number % 8}")
        for tenant in ("one", "two") if number % 8 else ():
            port.show(tenant, f"agent-{number % 8}")
    for number in range(CROWDED - len(port.open)):
        port.show(f"other-{number}")
    port.connect()

    (ended,) = port.ended
    assert {tenant for tenant, _ in ended.agents} == {"large"}


def test_a_connection_that_shows_two_tokens_counts_for_both_and_ends_once(port: Port) -> None:
    peer = port.connect()
    assert peer is not None
    for agent in (("acme", "a"), ("other", "b"), ("acme", "a")):
        assert port.crowd.count_as(peer, agent) is None
    assert peer.agents == {("acme", "a"), ("other", "b")}
    port.end(peer)
    port.crowd.remove(peer)

    assert [port.show("acme", "a") for _ in range(MAX_PEERS_OF_AGENT)] == [None] * MAX_PEERS_OF_AGENT

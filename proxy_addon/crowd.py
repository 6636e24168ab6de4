"""The owners of the open connections, and which of them ends when there are too many. Pure.

A *stranger* has shown no good token yet. Tenants together never have all places, so that there is room for strangers,
among whom is every agent that comes next; and strangers end each other rather than anybody that we know.
"""

from collections.abc import Iterator

from custody.kit.fair_slots import Bounds, FairSlots, Lack
from proxy_addon.peer import Agent, Peer

MAX_CONNECTIONS = 4096
CROWDED = 3 * MAX_CONNECTIONS // 4
MAX_PEERS_OF_AGENT, MAX_PEERS_OF_TENANT = 256, 1024
# Of the places beyond CROWDED, half are for tenants that have no more connections than these few.
FEW_PEERS, PLACES_KEPT_BACK = 16, 512
MAX_KNOWN = CROWDED + PLACES_KEPT_BACK
# When it is crowded, so many strangers may wait at the expense of who is idle.
_STRANGERS = 512


class Crowd:
    """Every open connection, strangers and agents'."""

    def __init__(self) -> None:
        # All in the order in which they came.
        self._strangers: dict[Peer, None] = {}
        self._known: dict[Agent, dict[Peer, None]] = {}
        self._slots = FairSlots(
            Bounds(MAX_KNOWN, MAX_PEERS_OF_AGENT, MAX_PEERS_OF_TENANT, reserve=PLACES_KEPT_BACK, few=FEW_PEERS)
        )

    def came(self, peer: Peer) -> None:
        """A connection was accepted."""
        self._strangers[peer] = None

    def count_as(self, peer: Peer, agent: Agent) -> Lack | None:
        """A connection has shown an agent's token: count it as that agent's, or say what stands in the way."""
        if agent in peer.agents:
            return None
        if (lack := self._slots.take(agent)) is None:
            self._strangers.pop(peer, None)
            self._known.setdefault(agent, {})[peer] = None
            peer.agents.add(agent)
        return lack

    def remove(self, peer: Peer) -> None:
        """A connection has ended, or is about to."""
        self._strangers.pop(peer, None)
        for agent in peer.agents:
            peers = self._known.get(agent, {})
            if peer in peers:
                del peers[peer]
                self._slots.give_back(agent)
            if not peers:
                self._known.pop(agent, None)

    def give_way(self) -> Peer | None:
        """The connection that has to end for another's sake; it is gone already. None when nobody can be asked to.

        That is an idle one of the caller with most, or the oldest stranger if strangers have most.
        """
        stranger = next(iter(self._strangers), None)
        idle = next(self._idle(), None) if len(self._strangers) < _STRANGERS else None
        if (found := idle or stranger) is not None:
            self.remove(found)
        return found

    def _idle(self) -> Iterator[Peer]:
        for agent in sorted(self._known, key=self._size, reverse=True):
            if self._slots.of_group(agent[0]) > FEW_PEERS:
                yield from (peer for peer in self._known[agent] if not peer.busy)

    def _size(self, agent: Agent) -> tuple[int, int]:
        return self._slots.of_group(agent[0]), len(self._known[agent])

"""The questions to a family's nodes, for the api and the scheduler; the signer imports none of it.

Each family's module `custody/chains/<family>/rpc.py` has these functions. Nothing a node says is trusted.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from custody.chains.evm import rpc as evm
from custody.chains.family import Chain
from custody.chains.rpc import Rpc, RpcUnavailable
from custody.chains.solana import rpc as solana


class Nodes(Protocol):
    """A module that knows how nodes of one family are asked."""

    # Whether a node must know who sends, to prepare an order.
    NEEDS_SENDER: bool

    async def prepare(self, rpc: Rpc, chain: Chain, sender: str, order: Any, /) -> Any:
        """Ask a node for its suggestion for an order; raises NotExecutable if it would fail."""

    async def broadcast(self, rpc: Rpc, chain: Chain, raw: bytes, tx_hash: str, /) -> None:
        """Send signed bytes; raises BroadcastRefused when no node has them afterwards."""

    async def balance(self, rpc: Rpc, chain: Chain, address: str, /) -> int:
        """The native balance in its smallest unit."""


NODES: Final[Mapping[str, Nodes]] = {"evm": evm, "solana": solana}


def nodes_of(chain: Chain) -> Nodes:
    """Find the client of a chain's nodes; RpcUnavailable for a family that is signed for and has none."""
    if (nodes := NODES.get(chain.family)) is None:
        raise RpcUnavailable("No node can be asked for this chain.")
    return nodes

"""What a node is asked before the signer: never trusted, and never needed to refuse or queue. Decisions 4."""

from dataclasses import dataclass

from custody.chains.evm import rpc as evm_rpc
from custody.chains.orders import EvmOrder, EvmPrepared, SolanaPrepared
from custody.chains.solana import rpc as solana_rpc
from custody.chains.table import Chain
from custody.kit.errors import UpstreamFailed
from custody.ports import Ports


class RpcUnavailable(UpstreamFailed):
    """No node is configured for this chain, so nothing can be broadcast on it."""


@dataclass(frozen=True)
class Preparation:
    """What a node said, or why it said nothing; the signer decides whether that matters."""

    evm: EvmPrepared | None = None
    solana: SolanaPrepared | None = None
    problem: UpstreamFailed | None = None


async def prepare_evm(ports: Ports, chain: Chain | None, sender: str, order: EvmOrder) -> Preparation:
    """Nonce, gas and fees of an order."""
    if chain is None or chain.family != "evm" or not chain.rpc_urls:
        return Preparation(problem=RpcUnavailable())
    try:
        return Preparation(evm=await evm_rpc.prepare(ports.rpc, chain, sender, order))
    except evm_rpc.NotExecutable as problem:
        # The node knows the nonce all the same, and an order that is not broadcast may use it.
        return Preparation(evm=None if order.broadcast else problem.prepared, problem=problem)
    except UpstreamFailed as problem:
        return Preparation(problem=problem)


async def prepare_solana(ports: Ports, chain: Chain | None) -> Preparation:
    """A recent blockhash."""
    if chain is None or chain.family != "solana" or not chain.rpc_urls:
        return Preparation(problem=RpcUnavailable())
    try:
        return Preparation(solana=await solana_rpc.prepare(ports.rpc, chain))
    except UpstreamFailed as problem:
        return Preparation(problem=problem)

"""The questions to a node before the signer's turn: never trusted, and never needed to refuse or queue."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from custody.chains import families
from custody.chains.bitcoin.orders import PsbtOrder
from custody.chains.evm import calls, transfers
from custody.chains.evm import rpc as evm
from custody.chains.evm.action_orders import CallsOrder, TransferOrder
from custody.chains.evm.orders import EvmOrder
from custody.chains.evm.typed_order import TypedDataOrder
from custody.chains.message_orders import MessageOrder
from custody.chains.node_shares import NodeCallsSpent
from custody.chains.nodes import nodes_of
from custody.chains.orders import Asked, Prepared, kind_of
from custody.chains.payment_orders import EvmPaymentOrder
from custody.chains.rpc import NotExecutable
from custody.kit import stages
from custody.kit.errors import CustodyError, UpstreamFailed
from custody.ports import Ports


class RpcUnavailable(UpstreamFailed):
    """No node is configured for this chain, so a transaction cannot be broadcast on it."""


@dataclass(frozen=True)
class Preparation:
    """A node's suggestion, or why there is none; the signer decides whether that matters."""

    prepared: Prepared | None = None
    problem: CustodyError | None = None


async def prepare(ports: Ports, tenant: str, order: Asked, sender: Callable[[str], Awaitable[str]]) -> Preparation:
    """Ask a node of the order's chain; `sender` finds the address of the wallet of a family."""
    if isinstance(order, TransferOrder):
        order = transfers.transaction(order)
    batch: tuple[EvmOrder, ...] = ()
    if isinstance(order, CallsOrder):
        batch = calls.transactions(order)
        order = batch[0]
    if isinstance(order, TypedDataOrder | PsbtOrder | MessageOrder | EvmPaymentOrder):
        # It goes to no node.
        return Preparation()
    with stages.time_stage("prepare"):
        chain = ports.chains.active if order.chain_id is None else ports.chains.find(order.chain_id)
        if chain is None or chain.family != families.of_kind(kind_of(order)).name or not chain.rpc_urls:
            return Preparation(problem=RpcUnavailable())
        try:
            nodes = nodes_of(chain)
            by = await sender(chain.family) if nodes.NEEDS_SENDER else ""
            rpc = ports.rpc.preparing(await ports.node_shares.of(ports.pool, tenant))
            if batch:
                return Preparation(await evm.prepare_batch(rpc, chain, by, batch))
            return Preparation(await nodes.prepare(rpc, chain, by, order))
        except NotExecutable as problem:
            # The node knows the nonce all the same, and an order that is not broadcast may use it.
            return Preparation(None if order.broadcast else problem.prepared, problem)
        except (UpstreamFailed, NodeCallsSpent) as problem:
            return Preparation(problem=problem)

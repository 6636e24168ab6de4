"""A stuck EVM transaction again, at higher fees; the signer takes the payment from what it signed."""

from api.areas.agents import store as agents
from api.areas.signing.answers import EvmSigned
from api.areas.signing.prepare import Preparation, prepare
from api.areas.signing.request import Asker, ask_signer, shape_decision
from api.areas.signing.types import Decided
from custody.chains.evm.action_orders import ReplacementFees
from custody.chains.evm.orders import EvmOrder
from custody.kit import ids
from custody.kit.answers import Answered
from custody.kit.refs import AgentRef
from custody.kit.tasks import run_to_completion
from custody.ports import Ports
from custody.protocol.signer.orders import ReplaceEvm
from custody.transactions import store as transactions
from custody.transactions.types import Transaction


async def replace(
    ports: Ports, caller: Asker, ref: AgentRef, tx_id: str, fees: ReplacementFees
) -> Answered[Decided[EvmSigned]]:
    """Sign and broadcast the same payment with the same nonce; queue or refuse it where the policies say so."""
    stuck = await transactions.get(ports.pool, ref, tx_id)
    preparation = await _prepare(ports, ref, stuck, fees)
    message = ReplaceEvm(
        ref.agent, ids.new_uuid(), tx_id, fees.max_fee_per_gas, fees.max_priority_fee_per_gas, preparation.prepared
    )
    return shape_decision(
        await run_to_completion(ask_signer(ports, caller, ref, message, preparation), "replace"), EvmSigned
    )


async def _prepare(ports: Ports, ref: AgentRef, stuck: Transaction, fees: ReplacementFees) -> Preparation:
    """Ask a node now; the signer says what cannot be replaced at all."""
    if stuck.kind != "evm" or stuck.status not in ("signed", "broadcast"):
        return Preparation()

    async def sender(family: str) -> str:
        return (await agents.get(ports.pool, ref)).wallet_addresses.of(family)

    return await prepare(ports, ref.tenant, _order(stuck, fees), sender)


def _order(stuck: Transaction, fees: ReplacementFees) -> EvmOrder:
    return EvmOrder(
        to=stuck.to_address or "",
        value=stuck.value or "0",
        data=stuck.data,
        chain_id=stuck.chain_id,
        broadcast=stuck.broadcast,
        max_fee_per_gas=fees.max_fee_per_gas,
        max_priority_fee_per_gas=fees.max_priority_fee_per_gas,
    )

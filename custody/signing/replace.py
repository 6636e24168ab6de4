"""A stuck EVM transaction again, at higher fees. Decisions 10; the signer takes the payment from what it signed."""

from custody.agents import store as agents
from custody.chains.orders import EvmOrder, ReplacementFees
from custody.kit import ids
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.messages import ReplaceEvm
from custody.signing.prepare import Preparation, prepare_evm
from custody.signing.request import Asker, ask_signer, unhurried
from custody.signing.types import SigningResult
from custody.transactions import store as transactions
from custody.transactions.types import Transaction


async def replace(ports: Ports, caller: Asker, ref: AgentRef, tx_id: str, fees: ReplacementFees) -> SigningResult:
    """Sign and broadcast the same payment with the same nonce; queue or refuse it where the policies say so."""
    stuck = await transactions.get(ports.pool, ref, tx_id)
    preparation = await _prepare(ports, ref, stuck, fees)
    message = ReplaceEvm(
        ref.agent, ids.new_uuid(), tx_id, fees.max_fee_per_gas, fees.max_priority_fee_per_gas, preparation.evm
    )
    return await unhurried(ask_signer(ports, caller, ref, message, preparation))


async def _prepare(ports: Ports, ref: AgentRef, stuck: Transaction, fees: ReplacementFees) -> Preparation:
    """What a node suggests now; what cannot be replaced at all is the signer's to say."""
    if stuck.kind != "evm" or stuck.status not in ("signed", "broadcast"):
        return Preparation()
    sender = (await agents.get(ports.pool, ref)).wallet_addresses.evm
    return await prepare_evm(ports, ports.chains.find(stuck.chain_id or 0), sender, _order(stuck, fees))


def _order(stuck: Transaction, fees: ReplacementFees) -> EvmOrder:
    return EvmOrder(
        to=stuck.to_address or "", value=stuck.value or "0", data=stuck.data, chain_id=stuck.chain_id,
        broadcast=stuck.broadcast, max_fee_per_gas=fees.max_fee_per_gas,
        max_priority_fee_per_gas=fees.max_priority_fee_per_gas,
    )  # fmt: skip

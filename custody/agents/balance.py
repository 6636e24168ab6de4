"""The native balance of an agent's wallet. Spec 1/4.1."""

import msgspec

from custody.agents import store
from custody.chains.evm import rpc as evm_rpc
from custody.chains.solana import rpc as solana_rpc
from custody.chains.table import Chain
from custody.kit.errors import Invalid
from custody.kit.refs import AgentRef
from custody.kit.shapes import ChainId
from custody.ports import Ports


class UnknownChain(Invalid):
    """This chain is not configured here."""


class ChainQuery(msgspec.Struct, frozen=True, rename="camel"):
    """Which chain; the server's active one if none is named."""

    chain_id: ChainId | None = None


class Balances(msgspec.Struct, frozen=True, rename="camel"):
    """A native balance in the smallest unit, and readable."""

    native: str
    native_formatted: str
    chain_id: int
    symbol: str


class AgentBalance(msgspec.Struct, frozen=True, rename="camel"):
    """One wallet's balance on one chain."""

    agent_id: str
    wallet_address: str
    balances: Balances


async def balance(ports: Ports, ref: AgentRef, query: ChainQuery) -> AgentBalance:
    """Ask a node; raises RpcUnavailable (502) when none answers."""
    chain = ports.chains.active if query.chain_id is None else ports.chains.find(query.chain_id)
    if chain is None:
        raise UnknownChain(f"Chain {query.chain_id} is not known here.")
    agent = await store.get(ports.pool, ref)
    address = agent.wallet_addresses.evm if chain.family == "evm" else agent.wallet_addresses.solana
    return AgentBalance(ref.agent, address, await native(ports, chain, address))


async def native(ports: Ports, chain: Chain, address: str) -> Balances:
    """The native balance of any address."""
    ask = evm_rpc.balance if chain.family == "evm" else solana_rpc.balance
    amount = await ask(ports.rpc, chain, address)
    return Balances(str(amount), formatted(amount, chain.decimals), chain.id, chain.symbol)


def formatted(amount: int, decimals: int, places: int = 6) -> str:
    """An amount of the smallest unit in whole units, cut (never rounded up) to six places."""
    whole, rest = divmod(amount, 10**decimals)
    return f"{whole}.{rest * 10**places // 10**decimals:0{places}d}"

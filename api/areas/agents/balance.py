"""The native balance of an agent's wallet."""

from typing import Annotated

import msgspec

from api.areas.agents import shown
from custody.chains.family import Chain
from custody.chains.nodes import nodes_of
from custody.kit.described import described
from custody.kit.refs import AgentRef
from custody.kit.shapes import ChainId
from custody.ports import Ports
from custody.protocol.signer.order_refusals import UnknownChain


class ChainQuery(msgspec.Struct, frozen=True, rename="camel"):
    """The chain; the server's active one if none is named."""

    chain_id: Annotated[ChainId | None, described("The chain; without it the active one of the deployment.")] = None


class Balances(msgspec.Struct, frozen=True, rename="camel"):
    """A native balance in the smallest unit, and formatted for reading."""

    native: Annotated[str, described("The balance in the smallest unit, such as wei.")]
    native_formatted: Annotated[str, described("The same in whole coins, cut to six places.")]
    chain_id: Annotated[int, described("The chain that was asked.")]
    symbol: Annotated[str, described("The symbol of the coin, such as `ETH`.")]


class AgentBalance(msgspec.Struct, frozen=True, rename="camel"):
    """One wallet's balance on one chain."""

    agent_id: Annotated[str, described("The agent.")]
    wallet_address: Annotated[str, described("The agent's address on this chain.")]
    balances: Annotated[Balances, described("Balances of the wallet.")]


async def balance(ports: Ports, ref: AgentRef, query: ChainQuery) -> AgentBalance:
    """Ask a node; raises RpcUnavailable (502) when none answers."""
    chain = ports.chains.active if query.chain_id is None else ports.chains.find(query.chain_id)
    if chain is None:
        raise UnknownChain(f"Chain {query.chain_id} is not configured here.")
    agent = await shown.get(ports, ref)
    address = agent.wallet_addresses.of(chain.family)
    return AgentBalance(ref.agent, address, await native(ports, ref.tenant, chain, address))


async def native(ports: Ports, tenant: str, chain: Chain, address: str) -> Balances:
    """The native balance of any address."""
    rpc = ports.rpc.looking(await ports.node_shares.of(ports.pool, tenant)).brief
    amount = await nodes_of(chain).balance(rpc, chain, address)
    return Balances(str(amount), in_whole_units(amount, chain.decimals), chain.id, chain.symbol)


def in_whole_units(amount: int, decimals: int, places: int = 6) -> str:
    """An amount of the smallest unit in whole units, cut (never rounded up) to six places."""
    whole, rest = divmod(amount, 10**decimals)
    return f"{whole}.{rest * 10**places // 10**decimals:0{places}d}"

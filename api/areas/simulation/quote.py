"""The effects and cost of a transfer now, for a person to look at. Nothing is written and nothing is reserved."""

from datetime import timedelta
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from api.areas.agents import shown
from api.areas.simulation.simulate import simulate
from api.areas.simulation.types import Need
from custody.chains import prices
from custody.chains.built_in import WALLETS
from custody.chains.evm.action_orders import TransferOrder
from custody.chains.evm.transfers import NATIVE, transaction
from custody.chains.families import caip2
from custody.chains.family import Chain
from custody.chains.orders import TransferQuestion
from custody.kit import clock, ids
from custody.kit.callers import SessionCaller
from custody.kit.described import Id, Instant, described
from custody.kit.refs import AgentRef
from custody.policies.types import Decision, Result
from custody.ports import Ports
from custody.protocol.signer.order_refusals import UnknownChain
from custody.protocol.signer.simulation import Fee, Remaining

# How long a quote is worth looking at: fees and spend move, and nothing holds them still.
VALID: Final = timedelta(minutes=5)


class QuotedFee(Fee, frozen=True, rename="camel", omit_defaults=True):
    """The highest possible network fee, and what it is worth if the operator's price list says."""

    usd: Annotated[str | UnsetType, described("The same in US dollars and cents, where a price is known.")] = UNSET


class TransferQuote(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The effects and cost of the transfer, if it were sent now. Nothing is reserved."""

    quote_id: Annotated[Id, described("Names this quote; the reference of `request` where you gave none.")]
    type: Annotated[Literal["transfer"], described("Kind of action.")] = "transfer"
    chain_id: Annotated[int, described("The chain.")]
    caip2: Annotated[str, described("The chain by its CAIP-2 name, such as `eip155:8453`.")]
    from_: Annotated[str, described("The agent's wallet.")] = msgspec.field(name="from")
    to: Annotated[str, described("Recipient of the amount.")]
    value: Annotated[str, described("The amount in wei, or in the smallest unit of the token.")]
    token: Annotated[str, described("`native`, or the address of the ERC-20 token.")]
    request: Annotated[TransferOrder, described("The transfer in full, to be sent as it is.")]
    fee: Annotated[QuotedFee | None, described("The highest possible network fee.")]
    decision: Annotated[Decision, described("Decision on the transfer.")]
    results: Annotated[list[Result], described("Result of each rule for the transfer.")]
    effects: Annotated[list[dict[str, Any]], described("Effects of the transfer, decoded from the bytes to be signed.")]
    budgets: Annotated[list[Remaining], described("The rolling limits that it counts against.")]
    needed: Annotated[list[Need], described("Missing requirements for it to go on chain.")]
    expires_at: Annotated[Instant, described("Time to ask for another quote. Nothing else ends then.")]


async def quote(ports: Ports, caller: SessionCaller, ref: AgentRef, body: TransferOrder) -> TransferQuote:
    """The simulation of a transfer, told in its own terms; fails where the transfer would fail without a decision."""
    quote_id = ids.new_uuid()
    if body.reference_id is None and body.broadcast:
        # Nothing is sent, so nothing could be paid twice; what is sent then is paid once under this.
        body = msgspec.structs.replace(body, reference_id=quote_id)
    said = await simulate(ports, caller, ref, TransferQuestion(body))
    action = transaction(body).action
    chain = ports.chains.active if body.chain_id is None else ports.chains.find(body.chain_id)
    if chain is None:
        raise UnknownChain
    agent = await shown.get(ports, ref)
    return TransferQuote(
        quote_id=quote_id,
        chain_id=chain.id,
        caip2=caip2(chain),
        from_=agent.wallet_addresses.of(chain.family),
        to=action.recipient,
        value=action.amount,
        token=action.token or NATIVE,
        request=TransferOrder(
            to=action.recipient,
            value=action.amount,
            token=action.token or NATIVE,
            chain_id=chain.id,
            broadcast=body.broadcast,
            reference_id=body.reference_id,
        ),
        fee=_price(said.fee, chain, ports.prices) if said.fee else None,
        decision=said.decision,
        results=said.results,
        effects=said.effects,
        budgets=said.budgets,
        needed=said.needed,
        expires_at=clock.iso(clock.now() + VALID),
    )


def _price(fee: Fee, chain: Chain, listed: prices.Prices) -> QuotedFee:
    price = listed.find(WALLETS[chain.family].native_asset, chain.symbol)
    usd = prices.worth(price, int(fee.max), chain.decimals)
    return QuotedFee(fee.asset, fee.max, UNSET if usd is None else prices.text(usd))

"""Bitcoin: addresses of an agent, and PSBTs that spend from them."""

from api.areas.signing import bitcoin_address, psbt
from api.areas.signing.bitcoin_address import AddressQuery, BitcoinAddress
from api.areas.signing.psbt import PsbtSigned
from api.areas.signing.types import Decided
from api.http.bodies import MAX_PSBT_BODY
from api.http.endpoint import Routes
from api.http.who import asking
from api.routes.vault.refusals import PSBT
from custody.chains.bitcoin.orders import PsbtOrder
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller, SessionCaller, TenantCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.bitcoin import FindBitcoinAddress
from custody.protocol.signer.orders import SignOrder
from custody.protocol.signer.refusals import SignerRequired

routes = Routes("/vault", tag="Signing")


@routes.post(
    "/<agent>/sign-bitcoin-psbt",
    max_body=MAX_PSBT_BODY,
    who=asking(SignOrder),
    fails=(*PSBT, SignerRequired),
    private=True,
    queues=True,
)
async def sign_bitcoin_psbt(
    ports: Ports, caller: AgentCaller | SessionCaller, agent: AgentRef, body: PsbtOrder
) -> Answered[Decided[PsbtSigned]]:
    """Sign the inputs of a PSBT that are of one address, queue it, or refuse it. It is never broadcast.

    A signer of the agent with `sign_transaction` must authorise it. Every input is proven, change is re-derived, all
    payments and the fee count as spend, and an enabled allowed-chains rule must list the network.
    """
    return await psbt.sign(ports, caller, agent, body)


@routes.get("/<agent>/bitcoin/address", who=asking(FindBitcoinAddress), private=True)
async def get_bitcoin_address(
    ports: Ports, caller: TenantCaller | AgentCaller, agent: AgentRef, query: AddressQuery
) -> BitcoinAddress:
    """Get an address of the agent, the key that spends from it, and descriptors for a wallet that only watches.

    The agent's root is made with the first address that is asked for, and stays.
    """
    return await bitcoin_address.get(ports, caller, agent, query)

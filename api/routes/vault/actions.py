"""Wallet actions: what an agent wants done, in its own terms."""

from api.areas.signing import calls, transfers
from api.areas.signing.calls import SentCalls
from api.areas.signing.transfers import Transferred
from api.areas.simulation import quote
from api.areas.simulation.quote import TransferQuote
from api.areas.transactions import action_store
from api.areas.transactions.actions import ActionAbsent, TransferAction
from api.http.bodies import MAX_INTENT_BODY
from api.http.endpoint import Routes
from api.http.who import admin_mfa, asking, narrower
from api.routes.vault.refusals import EVM, NODE, TRANSFER
from custody.chains.evm.action_orders import CallsOrder, TransferOrder
from custody.chains.evm.calls import CallsTooLong, EmptyCall
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller, SessionCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.intents import SendCalls
from custody.protocol.signer.order_refusals import ReferenceTaken
from custody.protocol.signer.orders import SignOrder
from custody.protocol.signer.refusals import SignerRequired
from custody.protocol.signer.simulation import Simulate

routes = Routes("/vault", tag="Wallet actions")


@routes.post(
    "/<agent>/actions/transfer/quote",
    who=narrower(admin_mfa("vaultSigning"), than=Simulate),
    fails=(*NODE, *EVM, *TRANSFER),
    private=True,
)
async def quote_transfer(ports: Ports, caller: SessionCaller, agent: AgentRef, body: TransferOrder) -> TransferQuote:
    """Quote a transfer: what it would do and cost now. Nothing is signed, written or reserved.

    Uses the same code as the transfer, which may still be decided otherwise: fees, rules and spend move. An
    `Idempotency-Key` stores no response, because nothing is written.
    """
    return await quote.quote(ports, caller, agent, body)


@routes.post(
    "/<agent>/actions/transfer",
    who=asking(SignOrder),
    fails=(*NODE, *EVM, *TRANSFER, ReferenceTaken, SignerRequired),
    private=True,
    queues=True,
    headers_too=("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"),
)
async def transfer_funds(
    ports: Ports, caller: AgentCaller | SessionCaller, agent: AgentRef, body: TransferOrder
) -> Answered[Transferred]:
    """Transfer a chain's coin or an ERC-20 token, queue the transfer for approval, or refuse it.

    Needs a signer of the agent with the permission `transfer`, or the session of an owner or admin with a recent second
    factor, which is the way where the tenant takes no signers. A token needs a contract-allowlist that bounds amount
    and recipients. A transfer is made once under its `referenceId`: sent again, it is answered as it is then. If a
    rate-limit rule was evaluated, the `RateLimit-*` headers of a success are that rule's.
    """
    return await transfers.transfer(ports, caller, agent, body)


@routes.post(
    "/<agent>/actions/send-calls",
    who=asking(SendCalls),
    max_body=MAX_INTENT_BODY,
    fails=(*EVM, *TRANSFER, CallsTooLong, EmptyCall),
    private=True,
)
async def send_calls(ports: Ports, caller: AgentCaller, agent: AgentRef, body: CallsOrder) -> Answered[SentCalls]:
    """Send up to 16 calls as one batch: judged as one, and kept as an intent that a person authorises and executes.

    Needs a signer of the agent with the permission `send_calls`. A call with calldata needs an enabled
    contract-allowlist that lists it. The batch becomes one transaction for each call: all of them are in the ledger or
    none is, but on the chain each stands alone. A batch is made once under its `referenceId`.
    """
    return await calls.send(ports, caller, agent, body)


@routes.get(
    "/<agent>/actions/<action_id>",
    who=admin_mfa("vaultSigning").with_agent(),
    fails=(ActionAbsent,),
    private=True,
)
async def get_action(ports: Ports, agent: AgentRef, action_id: str) -> TransferAction:
    """Get a transfer and what became of it.

    Takes two credentials: a person's session, and the agent's own token in `X-Service-Agent-Token`.
    """
    return await action_store.get(ports.pool, agent, action_id)

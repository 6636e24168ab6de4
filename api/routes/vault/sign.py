"""Signing with an agent's wallets."""

from api.areas.signing import request
from api.areas.signing.answers import EvmSigned, MessageSigned, SolanaSigned, TypedDataSigned
from api.areas.signing.questions import MessageBody, message_question
from api.areas.signing.types import Decided
from api.http.bodies import MAX_EVM_BODY, MAX_MESSAGE_BODY, MAX_TYPED_DATA_BODY
from api.http.endpoint import Routes
from api.http.who import asking
from api.routes.vault.refusals import EVM, MESSAGE, NODE, SOLANA, TYPED_DATA
from custody.chains.evm.orders import EvmOrder
from custody.chains.orders import EvmQuestion, SolanaQuestion, TypedDataQuestion
from custody.chains.solana.orders import SolanaOrder
from custody.chains.typed_body import TypedDataBody
from custody.kit.answers import Answered
from custody.kit.callers import AgentCaller, SessionCaller
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.orders import SignOrder

routes = Routes("/vault", tag="Signing")


@routes.post(
    "/<agent>/sign",
    max_body=MAX_EVM_BODY,
    who=asking(SignOrder),
    fails=(*NODE, *EVM),
    private=True,
    queues=True,
)
async def sign_evm_transaction(
    ports: Ports, caller: AgentCaller | SessionCaller, agent: AgentRef, body: EvmOrder
) -> Answered[Decided[EvmSigned]]:
    """Sign an EVM transaction, queue it for approval, or refuse it.

    The agent's policies decide. Hard policies come first; the auto-approve threshold only queues.
    """
    return await request.sign(ports, caller, agent, EvmQuestion(body), EvmSigned)


@routes.post(
    "/<agent>/sign-typed-data",
    max_body=MAX_TYPED_DATA_BODY,
    who=asking(SignOrder),
    fails=TYPED_DATA,
    private=True,
    queues=True,
)
async def sign_typed_data(
    ports: Ports, caller: AgentCaller | SessionCaller, agent: AgentRef, body: TypedDataBody
) -> Answered[Decided[TypedDataSigned]]:
    """Sign an EIP-712 document (eth_signTypedData_v4), queue it, or refuse it.

    Permits, orders and authorizations are judged by the assets they move or the spending they allow.
    """
    return await request.sign(ports, caller, agent, TypedDataQuestion(body.order()), TypedDataSigned)


@routes.post("/<agent>/sign-solana", who=asking(SignOrder), fails=(*NODE, *SOLANA), private=True, queues=True)
async def sign_solana_transaction(
    ports: Ports, caller: AgentCaller | SessionCaller, agent: AgentRef, body: SolanaOrder
) -> Answered[Decided[SolanaSigned]]:
    """Sign a Solana transaction, queue it, or refuse it.

    An unrecognised instruction refuses the request; `to` and `value` must equal what the bytes do.
    """
    return await request.sign(ports, caller, agent, SolanaQuestion(body), SolanaSigned)


@routes.post(
    "/<agent>/sign-message",
    max_body=MAX_MESSAGE_BODY,
    who=asking(SignOrder),
    fails=MESSAGE,
    private=True,
    queues=True,
)
async def sign_message(
    ports: Ports, caller: AgentCaller | SessionCaller, agent: AgentRef, body: MessageBody
) -> Answered[Decided[MessageSigned]]:
    """Sign a message as wallets do (personal_sign of EIP-191; on Solana the bytes), queue it, or refuse it.

    A sign-in message must name this wallet. If any rule but time windows and rate limits is enabled, a person
    approves every message that no message-allowlist lists. Hashes, and bytes that read as a transaction, are refused.
    """
    return await request.sign(ports, caller, agent, message_question(body), MessageSigned)

"""Wallets of the person who is signed in, in the tenant of the session; imports and signers in their own alone."""

from api.areas.signing.answers import EvmSigned, MessageSigned, TypedDataSigned
from api.areas.signing.questions import MessageBody, message_question
from api.areas.signing.types import Decided
from api.areas.user_wallets import wallets
from api.areas.user_wallets.types import (
    UserImportBody,
    UserSignerBody,
    UserSignerQuery,
    UserSigners,
    UserWalletBody,
    UserWalletQuery,
)
from api.http.bodies import MAX_EVM_BODY, MAX_MESSAGE_BODY, MAX_TYPED_DATA_BODY
from api.http.endpoint import Routes
from api.http.who import admin_mfa, asking, session
from api.routes.vault.imports import MAX_IMPORT_BODY
from api.routes.vault.refusals import EVM, MESSAGE, NODE, TYPED_DATA
from custody.chains.evm.orders import EvmOrder
from custody.chains.orders import EvmQuestion, TypedDataQuestion
from custody.chains.typed_body import TypedDataBody
from custody.identity.roles import ANYBODY
from custody.kit.answer_kinds import Created
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.ports import Ports
from custody.protocol.signer.authority import AgentSigner, CreateSigner, RevokeSigner, SignerCreated
from custody.protocol.signer.refusals import UserSignerRefused
from custody.protocol.signer.user_wallets import (
    BeginUserImport,
    CreateUserWallet,
    FinishUserImport,
    PersonalSessionRequired,
    SealedUserKey,
    SignUserOrder,
    UserImported,
    UserImportSession,
    UserWallet,
    UserWalletAbsent,
)

routes = Routes("/user/me", tag="Your wallets")


@routes.post("/wallet", who=asking(CreateUserWallet), private=True)
async def create_user_wallet(
    ports: Ports, caller: SessionCaller, body: UserWalletBody
) -> Answered[Created[UserWallet] | UserWallet]:
    """Create your wallet of an index in the session's tenant, or get it where it is there (200).

    It begins with the deployment's rules for people's wallets. In an organisation you have one, of index 0, with which
    you alone sign; its people set its rules and decide on what waits.
    """
    return await wallets.create(ports, caller, body)


@routes.get("/wallets", who=session(ANYBODY, "userWallets"), private=True)
async def list_user_wallets(ports: Ports, caller: SessionCaller) -> list[UserWallet]:
    """List your wallets in the session's tenant by index."""
    return await wallets.list_all(ports, caller)


@routes.post(
    "/wallet/sign", max_body=MAX_EVM_BODY, who=asking(SignUserOrder), fails=(*NODE, *EVM), private=True, queues=True
)
async def sign_user_transaction(
    ports: Ports, caller: SessionCaller, query: UserWalletQuery, body: EvmOrder
) -> Answered[Decided[EvmSigned]]:
    """Sign an EVM transaction with your wallet in the session's tenant, queue it for approval, or refuse it.

    The wallet's policies and the tenant's own set decide, as for an agent. `broadcast` sends it.
    """
    return await wallets.sign(ports, caller, query.wallet_index, EvmQuestion(body), EvmSigned)


@routes.post(
    "/wallet/sign-typed-data",
    max_body=MAX_TYPED_DATA_BODY,
    who=asking(SignUserOrder),
    fails=TYPED_DATA,
    private=True,
    queues=True,
)
async def sign_user_typed_data(
    ports: Ports, caller: SessionCaller, query: UserWalletQuery, body: TypedDataBody
) -> Answered[Decided[TypedDataSigned]]:
    """Sign an EIP-712 document with your wallet in the session's tenant, queue it, or refuse it."""
    return await wallets.sign(ports, caller, query.wallet_index, TypedDataQuestion(body.order()), TypedDataSigned)


@routes.post(
    "/wallet/sign-message",
    max_body=MAX_MESSAGE_BODY,
    who=asking(SignUserOrder),
    fails=MESSAGE,
    private=True,
    queues=True,
)
async def sign_user_message(
    ports: Ports, caller: SessionCaller, query: UserWalletQuery, body: MessageBody
) -> Answered[Decided[MessageSigned]]:
    """Sign a message with your wallet in the session's tenant, queue it, or refuse it."""
    return await wallets.sign(ports, caller, query.wallet_index, message_question(body), MessageSigned)


@routes.post("/wallet/import/init", who=asking(BeginUserImport), private=True)
async def begin_user_wallet_import(
    ports: Ports, caller: SessionCaller, body: UserImportBody
) -> Answered[UserImportSession]:
    """Begin the import of a private key into your wallet: a one-time public key to seal it to."""
    return await wallets.begin_import(ports, caller, body)


@routes.post("/wallet/import/submit", max_body=MAX_IMPORT_BODY, who=asking(FinishUserImport), private=True)
async def finish_user_wallet_import(ports: Ports, caller: SessionCaller, body: SealedUserKey) -> Answered[UserImported]:
    """Submit a sealed private key, which becomes your wallet's on that chain.

    The deployment's rules for people's wallets are put back: rules of your own are gone, so set them again.
    """
    return await wallets.finish_import(ports, caller, body)


@routes.get(
    "/wallet/signers", who=admin_mfa("signers"), fails=(PersonalSessionRequired, UserWalletAbsent), private=True
)
async def list_user_wallet_signers(ports: Ports, caller: SessionCaller, query: UserSignerQuery) -> UserSigners:
    """List the delegated signers of your wallet, newest first."""
    return await wallets.signers(ports, caller, query)


@routes.post(
    "/wallet/signers",
    who=asking(CreateSigner),
    status=201,
    fails=(PersonalSessionRequired, UserSignerRefused, UserWalletAbsent),
    private=True,
    shows_secret=True,
)
async def create_user_wallet_signer(
    ports: Ports, caller: SessionCaller, body: UserSignerBody
) -> Answered[SignerCreated]:
    """Create a delegated signer of your wallet; its credential is returned only in this response."""
    return await wallets.create_signer(ports, caller, body)


@routes.delete(
    "/wallet/signers/<signer_id>",
    who=asking(RevokeSigner),
    fails=(PersonalSessionRequired, UserWalletAbsent),
    private=True,
)
async def revoke_user_wallet_signer(
    ports: Ports, caller: SessionCaller, signer_id: str, query: UserWalletQuery
) -> Answered[AgentSigner]:
    """Revoke a delegated signer of your wallet; revoking it again answers the same."""
    return await wallets.revoke_signer(ports, caller, signer_id, query)

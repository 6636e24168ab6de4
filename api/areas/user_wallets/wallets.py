"""Acts of people on their own wallets; the signer looks once more at whose they are."""

from collections.abc import Awaitable

from api.areas.authority import store as authority
from api.areas.authority.types import AuthorityQuery
from api.areas.signing import request
from api.areas.signing.types import Decided
from api.areas.user_wallets import store
from api.areas.user_wallets.types import (
    UserImportBody,
    UserSignerBody,
    UserSignerQuery,
    UserSigners,
    UserWalletBody,
    UserWalletQuery,
)
from custody.chains.orders import Question
from custody.kit import ids
from custody.kit.answer_kinds import Created
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.errors import NotFound
from custody.kit.refs import AgentRef
from custody.kit.tasks import run_to_completion
from custody.ports import Ports
from custody.protocol.signer.authority import AgentSigner, CreateSigner, NewSigner, RevokeSigner, SignerCreated
from custody.protocol.signer.order_refusals import AgentAbsent
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
    agent_of,
)

DEFAULT_PERMISSIONS = ("sign_transaction", "sign_message")
# A signer that exported the key would be its owner.
REFUSED_PERMISSIONS = ("export_private_key",)
_MOST = 320


async def create(
    ports: Ports, caller: SessionCaller, body: UserWalletBody
) -> Answered[Created[UserWallet] | UserWallet]:
    """Make a wallet, or find it."""
    answered = await ports.workers.ask(CreateUserWallet(body.wallet_index), caller)
    made = answered.answer
    return Answered(Created(made.wallet) if made.made else made.wallet, answered.replayed)


async def list_all(ports: Ports, caller: SessionCaller) -> list[UserWallet]:
    """All wallets of the caller in the session's tenant, by index."""
    return await store.wallets(ports.pool, caller.tenant, caller.user)


async def sign[T](
    ports: Ports, caller: SessionCaller, index: int, question: Question, shape: type[T]
) -> Answered[Decided[T]]:
    """Sign an order with the caller's wallet, and broadcast it if asked."""
    ref = AgentRef(caller.tenant, agent_of(caller.user, index))
    preparation = await request.prepare_order(ports, ref, question.request)
    message = SignUserOrder(index, ids.new_uuid(), question, preparation.prepared)
    asked = request.ask_signer(ports, caller, ref, message, preparation)
    return request.shape_decision(await run_to_completion(asked, "sign"), shape)


async def begin_import(ports: Ports, caller: SessionCaller, body: UserImportBody) -> Answered[UserImportSession]:
    """A session to seal a key to."""
    _personal(caller)
    return await ports.workers.ask(BeginUserImport(body.chain, body.wallet_index), caller)


async def finish_import(ports: Ports, caller: SessionCaller, body: SealedUserKey) -> Answered[UserImported]:
    """Submit a sealed key."""
    _personal(caller)
    return await ports.workers.ask(FinishUserImport(body), caller)


async def signers(ports: Ports, caller: SessionCaller, query: UserSignerQuery) -> UserSigners:
    """The signers of a wallet; none is left out, for a wallet has few."""
    ref = _personal(caller, query.wallet_index)
    try:
        found = await authority.signers(ports.pool, ref, AuthorityQuery(limit=_MOST, status=query.status))
    except AgentAbsent:
        raise UserWalletAbsent from None
    return UserSigners(list(found.rows))


async def create_signer(ports: Ports, caller: SessionCaller, body: UserSignerBody) -> Answered[SignerCreated]:
    """A delegated signer with a credential of its own."""
    ref = _personal(caller, body.wallet_index)
    permissions = list(DEFAULT_PERMISSIONS) if body.permissions is None else body.permissions
    if refused := sorted(set(permissions) & set(REFUSED_PERMISSIONS)):
        raise UserSignerRefused(f"permissions: {refused[0]} is not for signers of a person's wallet; leave it out.")
    signer = NewSigner(
        signer_type="delegated",
        subject_type=body.subject_type,
        subject_id=body.subject_id,
        address=body.address,
        chain_family=body.chain_family,
        label=body.label,
        permissions=permissions,
        metadata=body.metadata,
        issue_credential=True,
    )
    return await _of_wallet(ports.workers.ask(CreateSigner(ref.agent, signer), caller))


async def revoke_signer(
    ports: Ports, caller: SessionCaller, signer: str, query: UserWalletQuery
) -> Answered[AgentSigner]:
    """Revoke a signer of the wallet of this index."""
    ref = _personal(caller, query.wallet_index)
    return await _of_wallet(ports.workers.ask(RevokeSigner(ref.agent, signer), caller))


async def _of_wallet[T](asked: Awaitable[T]) -> T:
    """The answer; where the agent is absent, in the words of the person's wallets."""
    try:
        return await asked
    except NotFound as problem:
        if problem.code != AgentAbsent().code:
            raise
        raise UserWalletAbsent from None


def _personal(caller: SessionCaller, index: int = 0) -> AgentRef:
    """The caller's wallet of an index; PersonalSessionRequired outside their own tenant."""
    if caller.tenant != f"personal-{caller.user}":
        raise PersonalSessionRequired
    return AgentRef(caller.tenant, agent_of(caller.user, index))

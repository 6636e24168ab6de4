"""Signers of an agent."""

from api.areas.authority import store
from api.areas.authority.types import AuthorityQuery
from api.http.endpoint import Routes
from api.http.who import admin, asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed
from custody.kit.refs import AgentRef
from custody.ports import Ports
from custody.protocol.signer.authority import (
    AgentSigner,
    ChangeSigner,
    CreateSigner,
    NewSigner,
    RevokeSigner,
    SignerChange,
    SignerCreated,
)
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.protocol.signer.refusals import BadPublicKey, UnknownPolicy

routes = Routes("/agents", tag="Signers and key quorums")


@routes.get("/<agent>/signers", who=admin, fails=(AgentAbsent,))
async def list_signers(
    ports: Ports, caller: SessionCaller, agent: AgentRef, query: AuthorityQuery
) -> Listed[AgentSigner]:
    """List the signers of an agent, newest first; the newest 256 of the revoked ones are among them."""
    return await store.signers(ports.pool, agent, query)


@routes.post(
    "/<agent>/signers",
    who=asking(CreateSigner),
    status=201,
    fails=(AgentAbsent, UnknownPolicy, BadPublicKey),
    private=True,
    shows_secret=True,
)
async def create_signer(
    ports: Ports, caller: SessionCaller, agent: AgentRef, body: NewSigner
) -> Answered[SignerCreated]:
    """Create a signer; its credential, if `issueCredential` asks for one, is returned only in this response."""
    return await ports.workers.ask(CreateSigner(agent.agent, body), caller)


@routes.patch("/<agent>/signers/<signer_id>", who=asking(ChangeSigner))
async def change_signer(
    ports: Ports, caller: SessionCaller, agent: AgentRef, signer_id: str, body: SignerChange
) -> Answered[AgentSigner]:
    """Change a signer. All but label, metadata, address and chain family need a recent second factor."""
    return await ports.workers.ask(ChangeSigner(agent.agent, signer_id, body), caller)


@routes.delete("/<agent>/signers/<signer_id>", who=asking(RevokeSigner), fails=(AgentAbsent,))
async def revoke_signer(ports: Ports, caller: SessionCaller, agent: AgentRef, signer_id: str) -> Answered[AgentSigner]:
    """Revoke a signer for good and at once: no order that it authorised is signed after this answer."""
    return await ports.workers.ask(RevokeSigner(agent.agent, signer_id), caller)

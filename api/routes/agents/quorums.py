"""Key quorums of an agent."""

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
    ChangeQuorum,
    CreateQuorum,
    KeyQuorum,
    NewQuorum,
    QuorumChange,
    RevokeQuorum,
)
from custody.protocol.signer.order_refusals import AgentAbsent

routes = Routes("/agents", tag="Signers and key quorums")


@routes.get("/<agent>/key-quorums", who=admin, fails=(AgentAbsent,))
async def list_key_quorums(
    ports: Ports, caller: SessionCaller, agent: AgentRef, query: AuthorityQuery
) -> Listed[KeyQuorum]:
    """List the key quorums of an agent, newest first; the newest 256 of the revoked ones are among them."""
    return await store.quorums(ports.pool, agent, query)


@routes.post("/<agent>/key-quorums", who=asking(CreateQuorum), status=201)
async def create_key_quorum(
    ports: Ports, caller: SessionCaller, agent: AgentRef, body: NewQuorum
) -> Answered[KeyQuorum]:
    """Create a key quorum of signers, and of quorums that count as one member each; at most three levels deep."""
    return await ports.workers.ask(CreateQuorum(agent.agent, body), caller)


@routes.patch("/<agent>/key-quorums/<quorum_id>", who=asking(ChangeQuorum))
async def change_key_quorum(
    ports: Ports, caller: SessionCaller, agent: AgentRef, quorum_id: str, body: QuorumChange
) -> Answered[KeyQuorum]:
    """Change a key quorum. All but name and metadata need a recent second factor."""
    return await ports.workers.ask(ChangeQuorum(agent.agent, quorum_id, body), caller)


@routes.delete("/<agent>/key-quorums/<quorum_id>", who=asking(RevokeQuorum))
async def revoke_key_quorum(
    ports: Ports, caller: SessionCaller, agent: AgentRef, quorum_id: str
) -> Answered[KeyQuorum]:
    """Revoke a key quorum for good and at once."""
    return await ports.workers.ask(RevokeQuorum(agent.agent, quorum_id), caller)

"""Keys by which people vote on orders."""

from api.areas.approvals import key_store
from api.http.endpoint import Routes
from api.http.who import asking, session
from custody.approvals.types import NewApproverKeyBody
from custody.identity.roles import READERS
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.paging import Listed, Page
from custody.ports import Ports
from custody.protocol.signer.approver_keys import ApproverKey, RegisterApproverKey, RevokeApproverKey

routes = Routes("/approver-keys", tag="Approvals")


@routes.get("", who=session(READERS))
async def list_approver_keys(ports: Ports, caller: SessionCaller, query: Page) -> Listed[ApproverKey]:
    """List approver keys, newest first: as an owner or admin those of the whole tenant, else your own.

    Revoked ones stay listed.
    """
    return await key_store.all_of(ports.pool, caller, query)


@routes.post("", who=asking(RegisterApproverKey), status=201)
async def register_approver_key(ports: Ports, caller: SessionCaller, body: NewApproverKeyBody) -> Answered[ApproverKey]:
    """Register a key by which you vote. It counts once an approval-quorum rule pins its fingerprint."""
    message = RegisterApproverKey(body.name, body.rp_id, body.credential_id, body.public_key)
    return await ports.workers.ask(message, caller)


@routes.delete("/<key_id>", who=asking(RevokeApproverKey))
async def revoke_approver_key(ports: Ports, caller: SessionCaller, key_id: str) -> Answered[ApproverKey]:
    """Revoke an approver key: your own, or as an owner or admin any of the tenant. Votes by it count no more."""
    return await ports.workers.ask(RevokeApproverKey(key_id), caller)

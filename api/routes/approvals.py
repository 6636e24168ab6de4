"""The tenant's approval queue."""

from api.areas.order_words import read as order_words
from api.areas.order_words.types import ApprovalInBrief, ApprovalInWords, WordsQuery
from api.areas.policies.store import PolicyUnreadable
from api.areas.signing import approvals
from api.areas.signing.approvals import NotApproved
from api.http.bodies import MAX_VOTE_BODY
from api.http.endpoint import Routes
from api.http.who import asking, tenant_read
from api.routes.vault.refusals import QUEUED
from custody.approvals import store
from custody.approvals.types import (
    AmountWithoutAsset,
    Approval,
    ApprovalInFull,
    ApprovalQuery,
    ApprovalStats,
    ApproveBody,
    Approved,
    Denied,
    DenyBody,
    UnknownAsset,
)
from custody.chains.evm.address import BadAddress
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.paging import Listed
from custody.kit.reading import SearchesBusy, SearchingAlready, SearchTooSlow
from custody.ports import Ports
from custody.protocol.signer.order_refusals import KeyTampered
from custody.protocol.signer.orders import Approve, Deny
from custody.protocol.signer.refusals import ApprovalAbsent

routes = Routes("/approvals", tag="Approvals")


@routes.get(
    "",
    who=tenant_read,
    fails=(AmountWithoutAsset, BadAddress, SearchesBusy, SearchingAlready, SearchTooSlow, UnknownAsset),
)
async def list_approvals(ports: Ports, caller: TenantCaller, query: ApprovalQuery) -> Listed[Approval]:
    """List the queue, newest first; every filter that is given must match."""
    return await store.all_of(ports.pool, ports.search_share, caller.tenant, query)


@routes.get("/stats", who=tenant_read)
async def get_approval_stats(ports: Ports, caller: TenantCaller) -> ApprovalStats:
    """Get figures of the approval queue of all agents."""
    return await store.stats(ports.pool, caller.tenant)


@routes.get("/words", who=tenant_read)
async def list_approvals_in_words(ports: Ports, caller: TenantCaller, query: WordsQuery) -> Listed[ApprovalInBrief]:
    """List what waits, each item in one line, what expires first before the rest.

    For a list alone: amounts and addresses are shortened, and nothing around an order was looked up.
    """
    return await order_words.waiting(ports, caller.tenant, query)


@routes.get("/<approval_id>/words", who=tenant_read, fails=(ApprovalAbsent, KeyTampered, PolicyUnreadable))
async def get_approval_in_words(ports: Ports, caller: TenantCaller, approval_id: str) -> ApprovalInWords:
    """Get one item in the words by which a person decides, whatever its status.

    They are the service's words. A console that is to withstand a service which lies has words of its own.
    """
    return await order_words.in_words(ports, caller.tenant, approval_id)


@routes.get("/<approval_id>", who=tenant_read, fails=(ApprovalAbsent,))
async def get_approval(ports: Ports, caller: TenantCaller, approval_id: str) -> ApprovalInFull:
    """Get one item of the queue, whatever its status, with the order itself."""
    return await store.get(ports.pool, caller.tenant, approval_id)


@routes.post("/<approval_id>/approve", max_body=MAX_VOTE_BODY, who=asking(Approve), fails=QUEUED)
async def approve_item(
    ports: Ports, caller: TenantCaller, approval_id: str, body: ApproveBody
) -> Answered[Approved | NotApproved]:
    """Approve an item: it is judged again by today's policy, signed, and broadcast if the agent asked.

    Under an approval-quorum rule, send your `vote`; the item is signed with the last vote that it needs.
    """
    return await approvals.approve(ports, caller, approval_id, body)


@routes.post("/<approval_id>/deny", who=asking(Deny))
async def deny_item(ports: Ports, caller: TenantCaller, approval_id: str, body: DenyBody) -> Answered[Denied]:
    """Deny an item; its transaction can never be signed afterwards."""
    return await approvals.deny(ports, caller, approval_id, body)

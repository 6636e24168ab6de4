"""Waiting orders, told by the same words as the console's own."""

from collections.abc import Iterable

from api.areas.order_words.context import read_as, surroundings
from api.areas.order_words.types import (
    MAX_LINE,
    MAX_LINES,
    ApprovalInBrief,
    ApprovalInWords,
    WordsLine,
    WordsQuery,
)
from custody.approvals import store
from custody.approvals.types import Approval
from custody.kit.paging import Listed
from custody.kit.refs import AgentRef
from custody.ports import Ports
from words import shapes
from words.orders.before import before
from words.orders.dangers import dangers
from words.orders.details import details
from words.orders.limits import limits
from words.orders.order import Known, of_approval
from words.orders.sections import rules
from words.orders.words import essentials, summary
from words.texts.lines import Line
from words.texts.plain import clip, plain


async def waiting(ports: Ports, tenant: str, query: WordsQuery) -> Listed[ApprovalInBrief]:
    """All that waits, what expires first before the rest; nothing is looked up around it."""
    found = await store.soonest(ports.pool, tenant, query.limit, query.offset)
    return Listed([_brief(item) for item in found.rows], found.total, total_is_estimate=found.total_is_estimate)


async def in_words(ports: Ports, tenant: str, approval_id: str) -> ApprovalInWords:
    """One item with all that is known around it."""
    item = await store.get(ports.pool, tenant, approval_id)
    order = of_approval(read_as(item, shapes.Approval))
    known = await surroundings(ports, AgentRef(tenant, item.agent_id), order)
    told = {
        "lines": essentials(order, known),
        "danger": dangers(order, known),
        "rules": rules(order, known),
        "limits": limits(order, known),
        "before": before(order, known),
        "details": details(order, known),
    }
    return ApprovalInWords(
        id=item.id,
        tx_id=item.tx_id,
        agent_id=item.agent_id,
        agent_name=plain(item.agent_name),
        status=item.status,
        kind=item.kind,
        digest=item.digest,
        order=item.order,
        short=summary(order, known),
        complete=all(_fits(lines) for lines in told.values()),
        requested_at=item.requested_at,
        expires_at=item.expires_at,
        resolved_at=item.resolved_at,
        resolved_by=item.resolved_by,
        resolved_by_name=item.resolved_by_name and plain(item.resolved_by_name),
        votes=item.votes,
        **{name: _lines(lines) for name, lines in told.items()},
    )


def _brief(item: Approval) -> ApprovalInBrief:
    order = of_approval(read_as(item, shapes.Approval))
    grave = next((one.text for one in dangers(order, Known()) if one.tone == "bad"), None)
    return ApprovalInBrief(
        id=item.id,
        agent_id=item.agent_id,
        agent_name=plain(item.agent_name),
        kind=item.kind,
        short=summary(order, Known()),
        danger=grave,
        requested_at=item.requested_at,
        expires_at=item.expires_at,
        by_votes=item.votes is not None,
    )


def _fits(lines: list[Line]) -> bool:
    return len(lines) <= MAX_LINES and all(len(line.text) <= MAX_LINE for line in lines)


def _lines(lines: Iterable[Line]) -> list[WordsLine]:
    return [WordsLine(clip(one.text, MAX_LINE), one.tone, one.address) for one in [*lines][:MAX_LINES]]

"""`custody approvals`: the queue of orders that wait for a person."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import click

from console.orders.order_context import fetch_context
from console.queue.decisions import Way, after_refusal
from console.queue.queue import Item, Outcome, Word, outcome_of
from console.queue.queue_view import STATUSES
from console.wire.answers import convert
from console.wire.failures import Answered, Failure, MfaRequired
from tenant_command.approval_rows import Row, facts_of_tokens
from tenant_command.call import Call, path
from tenant_command.command import command
from tenant_command.options import KEY, LIMIT, YES
from tenant_command.printing import Column
from words.orders.dangers import dangers
from words.orders.order import of_approval
from words.orders.sections import rules, sections
from words.orders.votes import brief as votes_in_brief
from words.orders.words import essentials
from words.shapes import Approval
from words.texts.lines import Heading, Line
from words.texts.moments import ago, moment, span

# The beginning of an id names an item, if it is no shorter than this.
_BEGINNING: Final = re.compile(r"[0-9a-f][0-9a-f-]{5,34}\Z")
_SHORT: Final = 8
# On narrower terminals the beginnings of ids have to do.
_WIDE: Final = 120
# Of those that do not wait any more the newest are looked through for a beginning of an id.
_LOOKED_THROUGH: Final = 1_000
_DONE: Final[dict[Way, Word]] = {"approve": "approved", "deny": "denied"}


@click.group(no_args_is_help=True)
def approvals() -> None:
    """List the queue, and approve or deny what waits."""


@command("list", group=approvals, example="custody approvals list --agent buyer")
@click.option("--status", type=click.Choice(STATUSES), default="pending", help="Those that wait (pending), or others.")
@click.option("--agent", metavar="AGENT", help="Only those of one agent.")
@click.option("--reference", metavar="ID", help="Only those that came with this reference.")
@LIMIT
async def list_approvals(
    call: Call, *, status: str, agent: str | None, reference: str | None, limit: int | None
) -> None:
    """List the queue, newest first.

    Each line says who asks, for how much of what, and to whom it goes. The first characters of an id are enough for the
    other commands.
    """
    found = await call.every("/approvals", most=limit, status=status, agentId=agent, referenceId=reference)
    items = [convert(one, Approval) for one in found]
    width, now = call.out.width, call.client.now()
    tokens = {} if call.out.as_json else await facts_of_tokens(call, items)
    rows = {item.id: Row(item, tokens, in_full=width is None) for item in items}
    whole = width is None or width >= _WIDE
    columns: dict[str, Column] = {
        "ID": lambda one: one["id"] if whole else one["id"][:_SHORT],
        "AGENT": "agentId",
        "AMOUNT": lambda one: rows[one["id"]].amount,
        "ASSET": lambda one: rows[one["id"]].asset,
        "RECIPIENT": lambda one: rows[one["id"]].recipient,
        "ASKED": lambda one: one["requestedAt"] if width is None else ago(moment(one["requestedAt"]), now),
        "STATE": lambda one: _state(Item(convert(one, Approval)), now),
    }
    nothing = "Nothing waits." if status == "pending" else "There are none."
    call.out.rows(found, columns, nothing=nothing)


@command("show", group=approvals, example="custody approvals show 3f2a91bc")
@click.argument("which", metavar="ID")
async def show(call: Call, *, which: str) -> None:
    """Show one item in full.

    What the order does, what the rules said of it, and what is known around it.
    """
    found = await _find(call, which)
    if call.out.as_json:
        call.out.data(found)
        return
    item = convert(found, Approval)
    me = (await call.person()).user
    order, outcome = of_approval(item), outcome_of(item, me)
    known = await fetch_context(call.client, order)
    lines = [] if outcome else [*dangers(order, known)]
    ended = [Line(outcome.sentence)] if outcome else []
    call.out.lines([*lines, *([Line("")] if lines else []), *sections(order, known, outcome=ended, me=me)])


@command("approve", group=approvals, example="custody approvals approve 3f2a91bc --comment 'As agreed with Ada'")
@click.argument("which", metavar="ID")
@click.option("--comment", metavar="TEXT", help="A note to those who read the queue; the agent does not read it.")
@YES
@KEY
async def approve(call: Call, *, which: str, comment: str | None, yes: bool, key: str | None) -> None:
    """Show what an item does, ask, and approve it.

    It is judged again by today's rules, and signed.
    """
    item = Item(convert(await _find(call, which), Approval))
    if item.approval.votes is not None:
        raise Failure(f"It waits for votes ({votes_in_brief(item.approval.votes)}): vote in `custody console`.")
    _see_that_it_waits(item, key)
    if not yes and item.approval.status == "pending":
        call.out.lines(await _essentials(call, item), beside=True)
        call.confirm("Approve this?", assumed=False)
    await _decide(call, item, "approve", {"comment": comment} if comment else {}, key)


@command("deny", group=approvals, example="custody approvals deny 3f2a91bc --reason 'No such invoice'")
@click.argument("which", metavar="ID")
@click.option("--reason", metavar="TEXT", help="Why; its agent reads it too.")
@KEY
async def deny(call: Call, *, which: str, reason: str | None, key: str | None) -> None:
    """Deny an item; it can never be signed then."""
    item = Item(convert(await _find(call, which), Approval))
    _see_that_it_waits(item, key)
    await _decide(call, item, "deny", {"reason": reason} if reason else {}, key)


async def _find(call: Call, which: str) -> Any:
    """The item of an id, or the one whose id begins so: of those that wait, else of the newest others."""
    if not _BEGINNING.match(which):
        return await call.get(path("approvals", which))
    for query in ({"status": "pending"}, {"status": "all", "most": _LOOKED_THROUGH}):
        found = [one["id"] for one in await call.every("/approvals", **query) if one["id"].startswith(which)]
        if len(found) > 1:
            raise Failure(f"Several ids begin with {which}: write more of the one that you mean.")
        if found:
            return await call.get(path("approvals", found[0]))
    raise Failure(f"No item of the queue has an id that begins with {which}: see `custody approvals list`.")


def _see_that_it_waits(item: Item, key: str | None) -> None:
    """Refuse what is decided, unless it may be that very decision which is sent again."""
    outcome = outcome_of(item.approval)
    if outcome is not None and key is None:
        raise Failure(f"{outcome.sentence} Nothing is left to decide.")


async def _essentials(call: Call, item: Item) -> Sequence[Line]:
    """Say what must be read before deciding: dangers first, then what the order does, and why somebody is asked."""
    order = of_approval(item.approval)
    known = await fetch_context(call.client, order)
    found = dangers(order, known)
    said = [*found, *([Line("")] if found else []), *essentials(replace(order, expires_at=None), known)]
    until = Line(f"It {item.until(call.client.now())}.")
    return [*said, until, Line(""), Heading("Rules"), *rules(order, known)]


async def _decide(call: Call, item: Item, way: Way, said: dict[str, str], key: str | None) -> None:
    """Decide over exactly the order that was read: another one with the same id is refused by its digest."""
    try:
        answer = await call.send_once(
            "POST", path("approvals", item.id, way), {"digest": item.approval.digest, **said}, key=key
        )
    except MfaRequired:
        raise
    except Answered as failure:
        if call.out.as_json and failure.data.get("status") != "signed":
            # Its code is for programs.
            raise
        outcome = await after_refusal(call.client, item, failure)
        call.out.show(
            {"approvalId": item.id, "status": outcome.word, "txHash": outcome.tx_hash}, _sentence(item, outcome)
        )
        return
    outcome = Outcome(_DONE[way], moment(answer["resolvedAt"]), tx_hash=answer.get("txHash") or "")
    call.out.show(answer, _sentence(item, outcome))


def _sentence(item: Item, outcome: Outcome) -> str:
    return f"{outcome.sentence} It was: {item.summary}."


def _state(item: Item, now: Any) -> str:
    outcome = outcome_of(item.approval)
    if outcome is not None:
        return outcome.word
    left = "for good" if item.expires is None else f"{span(item.expires - now)} left"
    return f"{item.voted}{left}"

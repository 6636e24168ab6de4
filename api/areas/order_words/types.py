"""Waiting orders in words: short for a list, and whole for a decision."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.approvals.types import ApprovalStatus, Votes
from custody.chains.kinds import Kind
from custody.kit.described import Id, Instant, described
from custody.kit.shapes import Offset

MAX_LINES = 1_000
MAX_LINE = 2_000
_HARMLESS = "Text of others stands in it with what would not be seen as itself written out, such as `<U+202E>`."


class WordsQuery(msgspec.Struct, frozen=True):
    """A page of what waits."""

    limit: Annotated[int, Meta(ge=1, le=100), described("Maximum number of items.")] = 50
    offset: Annotated[Offset, described("Number of items to skip.")] = 0


class WordsLine(msgspec.Struct, frozen=True):
    """One line in words."""

    text: Annotated[str, described(f"The line; two spaces at its beginning indent it. {_HARMLESS}")]
    tone: Annotated[
        Literal["bad", "warn", "good", "quiet"] | None,
        described("Repeats in colour what the words say; `bad` is a danger."),
    ]
    address: Annotated[bool, described("True if an address ends the line: show all of it.")]


class ApprovalInBrief(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One item that waits, in one line."""

    id: Annotated[Id, described("The approval.")]
    agent_id: Annotated[str, described("The agent that asked.")]
    agent_name: Annotated[str, described(f"The agent's name. {_HARMLESS}")]
    kind: Annotated[Kind, described("Kind of order.")]
    short: Annotated[str, described("Its gravest effect, with addresses and amounts shortened: never decide by it.")]
    danger: Annotated[str | None, described("The gravest danger that its effects show; null if they show none.")]
    requested_at: Annotated[Instant, described("Time of the agent's request.")]
    expires_at: Annotated[Instant | None, described("Time of expiry if undecided; null if never.")]
    by_votes: Annotated[bool, described("True if named people vote on it, each with a key of their own.")]


class ApprovalInWords(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One item, whatever its status, in all the words by which a person decides."""

    id: Annotated[Id, described("The approval.")]
    tx_id: Annotated[Id, described("The transaction that waits.")]
    agent_id: Annotated[str, described("The agent that asked.")]
    agent_name: Annotated[str, described(f"The agent's name. {_HARMLESS}")]
    status: Annotated[ApprovalStatus, described("The decision.")]
    kind: Annotated[Kind, described("Kind of order.")]
    digest: Annotated[str, described("Identifies exactly this order; send it with a decision.")]
    order: Annotated[str, described("The order as it is stored: JSON, from which the digest is made.")]
    short: Annotated[str, described("Its gravest effect, with addresses and amounts shortened: never decide by it.")]
    lines: Annotated[
        list[WordsLine], described("Effects of the order in words: dangers first, amounts and addresses whole.")
    ]
    danger: Annotated[list[WordsLine], described("Dangers to know before approving it, the gravest first.")]
    rules: Annotated[list[WordsLine], described("Result of each rule.")]
    limits: Annotated[list[WordsLine], described("The agent's rolling limits, with what the order would add.")]
    before: Annotated[list[WordsLine], described("Earlier orders to the same place.")]
    details: Annotated[list[WordsLine], described("Exact values, and what is signed as far as it can be shown.")]
    complete: Annotated[bool, described("False if lines were left out or cut: then this is not all of it.")]
    requested_at: Annotated[Instant, described("Time of the agent's request.")]
    expires_at: Annotated[Instant | None, described("Time of expiry if undecided; null if never.")]
    resolved_at: Annotated[Instant | None, described("Time of the decision.")]
    resolved_by_name: Annotated[str | None, described("The person who decided, as the approval shows it.")]
    resolved_by: Annotated[
        Literal["manual", "agent", "system"] | None, described("The decider, as the approval shows it.")
    ]
    votes: Annotated[Votes | None, described("The votes on it; null where no approval-quorum rule asks for some.")]

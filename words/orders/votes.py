"""Votes on an order, votes still needed, and whether somebody may vote, in words. Pure."""

from words.shapes import Votes
from words.texts.lines import Heading, Line
from words.texts.moments import moment
from words.texts.plain import short


def brief(votes: Votes) -> str:
    """For a line of the list."""
    return f"votes {votes.have:,} of {votes.need:,}"


def count(votes: Votes, me: str | None) -> str:
    """Count the votes, with voters and times."""
    by = ", ".join(f"{voter(one.user_id, me)} {_at(one.voted_at)}" for one in votes.by)
    return f"{brief(votes)}: {by}" if by else f"{brief(votes)}: nobody voted yet"


def votes_in_words(votes: Votes | None, me: str | None) -> list[Line]:
    """Describe the votes and who is still needed; nothing where no votes are asked for."""
    if votes is None:
        return []
    said = [Line(count(votes, me))]
    left = votes.need - votes.have
    if left > 0 and votes.waiting_for:
        people = ", ".join(voter(user, me) for user in votes.waiting_for)
        some = "" if left == len(votes.waiting_for) else f" {left:,} of"
        said.append(Line(f"still needed:{some} {people}", "warn"))
    return said


def votes_section(votes: Votes | None, me: str | None) -> list[Line]:
    """The same as a section of its own."""
    lines = votes_in_words(votes, me)
    return [Line(""), Heading("Votes"), *lines] if lines else []


def why_no_vote(votes: Votes, me: str | None) -> str:
    """Why somebody cannot vote, in a sentence; empty if they can."""
    if me is None:
        return "Only named people vote on this, each with their own key; you use the tenant key. Press i to sign in."
    if any(one.user_id == me for one in votes.by):
        return f"You have voted on this: {count(votes, me)}."
    if me not in votes.waiting_for:
        return "The rule of this agent does not name you: only the people it names can vote on this."
    return ""


def voter(user: str, me: str | None) -> str:
    """A person; the service tells no names of others, so a part of their id."""
    return "you" if user == me else f"user {short(user)}"


def _at(text: str) -> str:
    then = moment(text)
    return f"{then:%H:%M}" if then else "-"

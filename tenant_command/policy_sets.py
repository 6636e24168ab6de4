"""`custody policy-sets`: rules that many agents share."""

from typing import Any, Final

import click

from console.rules.rule_terms import Names
from console.rules.rules_in_words import rule_in_words
from tenant_command.call import Call, path
from tenant_command.command import command
from tenant_command.documents import read_document, rules_of, shapes_of
from tenant_command.finding import find, look
from tenant_command.options import FILE, LIMIT, YES
from tenant_command.printing import Column
from tenant_command.rule_sets import change
from words.texts.amounts import quote
from words.texts.fields import pluralize
from words.texts.lines import Heading, Line

# The set of every agent, which is there once it is first replaced.
_OF_ALL: Final = "tenant"
_PATH: Final = "/policy-sets"


@click.group(no_args_is_help=True)
def policy_sets() -> None:
    """Read and replace rules that many agents share. The set `tenant` binds every agent."""


@command("list", group=policy_sets, example="custody policy-sets list")
@LIMIT
async def list_sets(call: Call, *, limit: int | None) -> None:
    """List the policy sets, newest first."""
    found = await call.every(_PATH, most=limit)
    columns: dict[str, Column] = {
        "SET": "id",
        "NAME": "name",
        "RULES": lambda one: str(len(one["policies"])),
        "BINDS": _agents_of,
        "CHANGED": lambda one: call.out.day(one["updatedAt"]),
    }
    call.out.rows(found, columns, nothing="There are no policy sets.")


@command("get", group=policy_sets, example="custody policy-sets get treasury --json > set.json")
@click.argument("which", metavar="SET")
async def get(call: Call, *, which: str) -> None:
    """Print a set in words.

    SET is its id or name. With --json it is a file that `apply` takes.
    """
    found = await find(call, _PATH, which, by="name", what="policy set", word="policy-sets")
    if call.out.as_json:
        call.out.data(found)
        return
    call.out.lines([Heading(found["name"]), Line(f"set {found['id']}, binds {_agents_of(found)}", "quiet")])
    for place, rule in enumerate(shapes_of(found["policies"]), 1):
        call.out.lines([Line(""), *rule_in_words(rule, Names(), place)])


@command("apply", group=policy_sets, example="custody policy-sets apply tenant -f set.json --name 'All agents'")
@click.argument("which", metavar="SET")
@FILE
@click.option("--name", metavar="TEXT", help="Its name for people; without it the one that it has, or the file says.")
@YES
async def apply(call: Call, *, which: str, file: str, name: str | None, yes: bool) -> None:
    """Replace the rules of a set by those of a file.

    It binds all of its agents at once; what changes is shown before. SET is an id or a name. A name that no set has
    makes a new one; so does `tenant`, the set of every agent.
    """
    document = read_document(file)
    rules = rules_of(document, file)
    old = await look(call, _PATH, which, by="name", what="policy set")
    said = document.get("name") if isinstance(document, dict) else None
    called = name or (said if isinstance(said, str) else None) or (old["name"] if old else which)
    found = change(shapes_of(old["policies"]) if old else [], rules)
    if old is not None and found.is_none and called == old["name"]:
        call.out.show(old, f"Nothing changes: the set {quote(called)} has these rules already.")
        return
    if not call.out.as_json or not yes:
        call.out.lines(found.lines(Names(), shared=True), beside=True)
    bound = _agents_of(old) if old else "every agent" if which == _OF_ALL else "no agent yet"
    question = f"Replace the set {quote(old['name'])}" if old else f"There is no set {quote(which)}. Make it"
    call.confirm(f"{question}, which binds {bound}?", assumed=yes)
    body = {"name": called, "policies": found.rules}
    if old is None and which != _OF_ALL:
        put = await call.send("POST", _PATH, body)
    else:
        put = await call.send("PUT", path("policy-sets", old["id"] if old else which), body)
    rules_now = pluralize(len(put["policies"]), "rule", "rules")
    call.out.show(put, f"The set {quote(put['name'])} ({put['id']}) has {rules_now} now.")


@command("delete", group=policy_sets, example="custody policy-sets delete treasury")
@click.argument("which", metavar="SET")
@YES
async def delete(call: Call, *, which: str, yes: bool) -> None:
    """Delete a set that no agent names.

    SET is its id or name. What its agents spent together is forgotten.
    """
    found = await find(call, _PATH, which, by="name", what="policy set", word="policy-sets")
    call.confirm(f"Delete the set {quote(found['name'])} ({found['id']}) for good?", assumed=yes)
    gone = await call.send("DELETE", path("policy-sets", found["id"]))
    call.out.show(gone, f"Deleted the set {gone['deleted']}.")


def _agents_of(found: Any) -> str:
    if found["id"] == _OF_ALL:
        return "every agent"
    return pluralize(found["agents"], "agent", "agents")

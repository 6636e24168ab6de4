"""`custody policies`: the rules of one agent, as they are and as a file would have them."""

import asyncio
from typing import Any, Final

import click

from console.agents.agent_summary import token_facts
from console.orders.address_book import book_of
from console.rules.rule_terms import Names
from console.rules.rules_in_words import rules_in_words
from console.wire.answers import convert
from console.wire.failures import Away, Failure, SignedOut
from tenant_command.call import Call, path
from tenant_command.command import command
from tenant_command.documents import read_document, rules_of, shapes_of
from tenant_command.options import FILE, YES
from tenant_command.printing import Column
from tenant_command.request import body_of
from tenant_command.rule_sets import WAS, WOULD, Change, backtest_in_words, change
from words.orders.order import Known, of_transaction
from words.orders.results import results
from words.orders.words import summary
from words.shapes import PolicyResult, PolicyRule, Transaction
from words.texts.fields import pluralize
from words.texts.lines import Line
from words.texts.moments import clock, moment

# So many requests that would be decided otherwise are shown one by one, where no other number is asked for.
_SHOWN: Final = 20
_DAYS: Final = 7


@click.group(no_args_is_help=True)
def policies() -> None:
    """Read, compare, try and replace an agent's rules."""


@command("get", group=policies, example="custody policies get buyer --json > rules.json")
@click.argument("agent")
async def get(call: Call, *, agent: str) -> None:
    """Print an agent's rules in words.

    With --json they are a file that `apply` takes.
    """
    found = await call.get(path("agents", agent, "policies"))
    if call.out.as_json:
        call.out.data(found)
        return
    rules = shapes_of(found)
    call.out.lines(rules_in_words(rules, await _names(call, agent, rules)))


@command("diff", group=policies, example="custody policies diff buyer -f rules.json")
@click.argument("agent")
@FILE
async def diff(call: Call, *, agent: str, file: str) -> None:
    """Print what a file of rules would change.

    It names what becomes looser. Nothing is changed.
    """
    found = await _change(call, agent, file)
    if call.out.as_json:
        call.out.data(found.data())
        return
    call.out.lines(found.lines(await _names(call, agent, [*found.now, *found.then])))


@command("apply", group=policies, example="custody policies apply buyer -f rules.json")
@click.argument("agent")
@FILE
@YES
async def apply(call: Call, *, agent: str, file: str, yes: bool) -> None:
    """Replace an agent's rules by those of a file.

    It shows what changes, what becomes looser and what past requests would have met, and asks. A file that is applied
    twice changes nothing.
    """
    await _replace(call, agent, await _change(call, agent, file), yes=yes)


@command("templates", group=policies, example="custody policies templates")
async def templates(call: Call) -> None:
    """List the templates of rules.

    Those of your tenant come first, then those of the service.
    """
    found = await call.get("/policy-templates")
    columns: dict[str, Column] = {
        "TEMPLATE": "id",
        "NAME": "name",
        "RULES": lambda one: str(len(one["policies"])),
        "FIELDS": lambda one: ", ".join(field["path"] for field in one["customizableFields"]) or "-",
    }
    call.out.rows(found, columns, nothing="There are no templates.")


@command("apply-template", group=policies, example="custody policies apply-template buyer small-purchases")
@click.argument("agent")
@click.argument("template")
@click.option("-f", "--field", "fields", multiple=True, metavar="PATH=TEXT", help="A field's value. May be repeated.")
@click.option("-F", "--json-field", "values", multiple=True, metavar="PATH=JSON", help="The same, as JSON.")
@YES
async def apply_template(
    call: Call, *, agent: str, template: str, fields: tuple[str, ...], values: tuple[str, ...], yes: bool
) -> None:
    """Replace an agent's rules by those of a template.

    It shows what `apply` shows, and asks. `custody policies templates` names the templates and their fields.
    """
    body = {"templateId": template, "values": body_of(fields, values)}
    filled = await call.send("POST", "/policy-templates/preview", body)
    now = shapes_of(await call.get(path("agents", agent, "policies")))
    await _replace(call, agent, change(now, filled["policies"]), yes=yes)


async def _replace(call: Call, agent: str, found: Change, *, yes: bool) -> None:
    """Show a change, ask, and make it."""
    if found.is_none:
        call.out.show(found.now, f"Nothing changes: agent {agent} has these rules already.")
        return
    if not call.out.as_json or not yes:
        call.out.lines(found.lines(await _names(call, agent, [*found.now, *found.then])), beside=True)
        call.out.lines(await _experience(call, agent, found), beside=True)
    call.confirm(f"Replace the rules of agent {agent}?", assumed=yes)
    put = await call.send("PUT", path("agents", agent, "policies"), found.rules)
    call.out.show(put, f"Agent {agent} has {pluralize(len(put), 'rule', 'rules')} now.")


@command("test", group=policies, example="custody policies test buyer -f rules.json --days 30")
@click.argument("agent")
@FILE
@click.option("--days", type=click.IntRange(1, 90), default=_DAYS, help="How far back (7).")
@click.option("--limit", type=click.IntRange(min=1), default=_SHOWN, metavar="N", help="Show at most so many (20).")
async def test(call: Call, *, agent: str, file: str, days: int, limit: int) -> None:
    """Try a file of rules on past requests.

    It lists those of the agent that the rules would have decided otherwise.
    """
    found = await _backtest(call, agent, rules_of(read_document(file), file), days)
    if call.out.as_json:
        call.out.data(found)
        return
    call.out.lines(backtest_in_words(found, days))
    shown = found["changed"][:limit]
    asked = (call.get(path("vault", agent, "transactions", one["txId"])) for one in shown)
    for one, transaction in zip(shown, await asyncio.gather(*asked), strict=True):
        call.out.lines(_difference(one, convert(transaction, Transaction)))
    if (more := len(found["changed"]) - len(shown)) > 0:
        call.out.lines([Line(""), Line(f"and {more:,} more: --limit shows more of them", "quiet")])


def _difference(one: Any, transaction: Transaction) -> list[Line]:
    """One request, and why it would be decided otherwise: by the rules that fail, or else by those that pass."""
    found = convert(one["results"], list[PolicyResult])
    telling = [result for result in found if not result.passed] or found
    said = results(telling, refused=one["now"] == "refuse", chain_id=transaction.chain_id)
    return [
        Line(""),
        Line(f"{clock(moment(transaction.created_at))}  {summary(of_transaction(transaction), Known())}"),
        Line(f"  {WAS[one['was']]}; {WOULD[one['now']]}", "warn"),
        *(Line(f"  {line.text}", line.tone) for line in said),
        Line(f"  transaction {transaction.id}", "quiet"),
    ]


async def _change(call: Call, agent: str, file: str) -> Change:
    rules = rules_of(read_document(file), file)
    return change(shapes_of(await call.get(path("agents", agent, "policies"))), rules)


async def _backtest(call: Call, agent: str, rules: list[dict[str, Any]], days: int) -> Any:
    return await call.send("POST", path("agents", agent, "policies", "backtest"), {"policies": rules, "days": days})


async def _experience(call: Call, agent: str, found: Change) -> list[Line]:
    """Try a change on the past; that this could not be done holds up nobody. Rules that make no sense do."""
    try:
        return backtest_in_words(await _backtest(call, agent, found.rules, _DAYS), _DAYS)
    except Failure as failure:
        if getattr(failure, "code", "") == "invalid_policy":
            raise
        return [Line(f"It could not be tried on past requests: {failure.sentence}", "quiet")]


async def _names(call: Call, agent: str, rules: list[PolicyRule]) -> Names:
    """Find names for the addresses and tokens in rules; without them they are shown bare."""
    book = book_of(call.client)
    try:
        await book.read(call.client)
    except (SignedOut, Away):
        raise
    except Failure:
        return Names()
    return Names(await token_facts(call.client, agent, rules), book.names())

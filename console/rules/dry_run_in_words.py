"""The result of a dry run, in words: the decision in one sentence, then what it rests on. Pure."""

from dataclasses import replace
from typing import Any, Final

from console.wire.shapes_agents import Simulated
from words.orders.limits import limits
from words.orders.message_in_words import chain_said
from words.orders.order import Known, Order
from words.orders.results import results
from words.orders.words import essentials
from words.shapes import Agent
from words.texts.amounts import coins, parse_number, whole
from words.texts.chains import bitcoin_network, native_coin
from words.texts.lines import Heading, Line
from words.texts.plain import clip, harmless

_DECISIONS: Final = {
    "sign": Line("It would be SIGNED now, without approval.", "good"),
    "queue": Line("It would be QUEUED. It would be signed only after a person approves.", "warn"),
    "refuse": Line("It would be REFUSED. No approval is possible.", "bad"),
}
_NEEDED: Final = {
    "approval": "a person's approval",
    "funds": "funds: the wallet balance is too low",
    "rpc": "a node: none responds for its chain, so it could not be broadcast",
}
_TEXT: Final = 1_000
# The one the service takes where none is named.
_SOLANA: Final = 101


def order_of(agent: Agent, question: dict[str, Any], answer: Simulated) -> Order:
    """The order that was asked about, with what its bytes do."""
    request, kind = question["request"], question["kind"]
    if kind == "message":
        return _message(agent, question, answer)
    declares = kind not in ("typed_data", "bitcoin")
    scope = bitcoin_network(request["walletScope"]) if kind == "bitcoin" else None
    return Order(
        agent.id,
        kind,
        _chain(kind, request, answer),
        request["to"] if declares else None,
        request["value"] if declares else None,
        answer.effects,
        answer.results,
        agent_name=agent.name,
        caip2=scope.caip2 if scope else None,
    )


def data_of(question: dict[str, Any]) -> object:
    """Return the data that would be signed, where it says more than its effects."""
    request = question["request"]
    if question["kind"] == "message":
        # It was typed here, and has not come through the door.
        return harmless({form: request[form] for form in ("message", "raw") if form in request})
    return request["psbtBase64"] if question["kind"] == "bitcoin" else None


def _message(agent: Agent, question: dict[str, Any], answer: Simulated) -> Order:
    """A message is for the chain that it says itself, else for the one that was typed."""
    request = question["request"]
    kind, number = f"{request['chainFamily']}_message", parse_number(request.get("chainId"))
    order = Order(agent.id, kind, number, None, None, answer.effects, answer.results, agent_name=agent.name)
    said = chain_said(order, data_of(question)) if number is None else None
    return order if said is None else replace(order, chain_id=whole(said), caip2=said)


def _chain(kind: str, request: dict[str, Any], answer: Simulated) -> int | None:
    """The chain that it is for; None where nobody says it."""
    if kind == "typed_data":
        domain = request.get("domain")
        return parse_number(domain.get("chainId")) if isinstance(domain, dict) else None
    if kind == "bitcoin":
        return None
    if kind == "solana":
        return parse_number(request.get("chainId", _SOLANA))
    # Where none is typed it is the service's own, and the tokens that are moved there have its number in their names.
    named = [(effect.asset or "").split(":") for effect in answer.effects]
    tokens = [whole(parts[1]) for parts in named if parts[0] == "evm" and len(parts) == 3]
    return parse_number(request.get("chainId", next(iter(tokens), None)))


def dry_run_in_words(order: Order, answer: Simulated, known: Known) -> list[Line]:
    """All of it, the decision first."""
    decision = _DECISIONS.get(answer.decision)
    lines = [decision or Line(f"This console does not know the decision {clip(answer.decision, 40)}.", "bad")]
    lines += [Line(f"Needed: {_NEEDED.get(one, clip(one, 40))}", "warn") for one in answer.needed]
    lines += _section("What it does", essentials(order, known))
    lines += _section(
        "Rule results",
        results(answer.results, refused=answer.decision == "refuse", chain_id=order.chain_id)
        or [Line("  no rule was evaluated")],
    )
    if answer.fee is not None and not any(effect.kind == "fee" for effect in answer.effects):
        coin = native_coin(answer.fee.asset, order.chain_id)
        most = coins(answer.fee.max, coin) if coin else clip(answer.fee.max, _TEXT)
        lines += _section("Fee", [Line(f"  at most {most}")])
    return [*lines, *_section("Limits", limits(order, replace(known, budgets=answer.budgets)))]


def _section(title: str, lines: list[Line]) -> list[Line]:
    return [Line(""), Heading(title), *lines] if lines else []

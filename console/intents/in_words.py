"""An intent in words: what it would do, who proposed and authorised it, and what came of it. Pure.

Payloads are written by others: whatever stands in one is shown, and what is not understood is shown as it is.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from console.intents.rule_changes import rule_changes
from console.rules.rule_terms import Names
from console.wire.shapes_intents import Intent
from words.orders.details import data_lines
from words.orders.outcome_lines import state
from words.orders.results import results
from words.shapes import PolicyRule
from words.texts.amounts import UNLIMITED, coins, whole
from words.texts.chains import chain_name, native_coin
from words.texts.fields import indent
from words.texts.lines import Heading, Line, Tone
from words.texts.moments import clock, moment, span
from words.texts.plain import clip

TYPES: Final = {
    "transfer": "Payment",
    "wallet_action": "Wallet action",
    "rpc": "Question to a node",
    "policy_update": "Replace all rules",
    "policy_rule_create": "New rule",
    "policy_rule_update": "Change a rule",
    "policy_rule_delete": "Delete a rule",
    "quorum_update": "Key quorum",
    "wallet_update": "Names of the agent",
}
POLICY: Final = frozenset({"policy_update", "policy_rule_create", "policy_rule_update", "policy_rule_delete"})
STATES: Final[Mapping[str, tuple[str, Tone | None]]] = {
    "pending": ("waits", "warn"),
    "authorized": ("authorised", "good"),
    "executing": ("asks a node", "warn"),
    "executed": ("executed", "good"),
    "failed": ("failed", "bad"),
    "rejected": ("rejected", "quiet"),
    "canceled": ("canceled", "quiet"),
    "expired": ("expired", "quiet"),
}
OPEN: Final = frozenset({"pending", "authorized"})
_WHY: Final = {
    "stale_state": "what it was authorised against has changed since",
    "policy_refused": "a rule refused it",
    "interrupted": "nobody heard what the node answered",
    "node_failed": "the node did not answer it",
}
# approve, increaseAllowance.
_SPENDING: Final = frozenset({"095ea7b3", "39509351"})
_IN: Final = "  "


def type_of(intent: Intent) -> str:
    """Name the type of an intent in two words; a batch of calls is called one."""
    if intent.intent_type == "wallet_action":
        return {"transfer": "Transfer", "send_calls": "Batch of calls"}.get(
            str(intent.payload.get("action")), TYPES["wallet_action"]
        )
    return TYPES.get(intent.intent_type, clip(intent.intent_type, 40))


def state_of(intent: Intent) -> tuple[str, Tone | None]:
    """Tell in a word how far an intent has come."""
    return STATES.get(intent.status, (clip(intent.status, 20), "warn"))


def proposer_of(intent: Intent) -> str:
    """Name the proposer as the service knows them; their name for themselves stands in the details."""
    kind, _, rest = intent.created_by.partition(":")
    return {"user": "a person", "agent": f"agent {rest}"}.get(kind, kind.replace("_", " "))


def in_full(
    intent: Intent, agent: str, rules: Sequence[PolicyRule] | None, names: Names, me: str | None, now: datetime
) -> list[Line]:
    """Everything that one must know to decide; `me` is the id of the person who looks."""
    word = state_of(intent)[0]
    lines = [
        Heading(f"{type_of(intent)}: {word}"),
        Line(f"agent     {agent}"),
        Line(f"proposed  {clock(moment(intent.created_at))} by {proposer_of(intent)}"),
    ]
    if intent.created_by_display_name:
        lines.append(Line(f"          who calls themselves {clip(intent.created_by_display_name, 200)}", "quiet"))
    if intent.authorized_at:
        lines.append(Line(f"yes       {clock(moment(intent.authorized_at))} by person {intent.authorized_by}"))
    if (end := moment(intent.expires_at)) is not None and intent.status in OPEN:
        lines.append(Line(f"ends      in {span(end - now)}"))
    if intent.created_by == f"user:{me}" and intent.status == "pending":
        lines.append(Line("You proposed this: somebody else must authorise it.", "warn"))
    lines += [Line(""), Heading("What it does"), *_does(intent, rules, names)]
    if intent.status in OPEN and intent.intent_type in {"transfer", "wallet_action"}:
        lines.append(Line("Judged again by the rules and limits of the moment when it is executed.", "quiet"))
    if intent.policy_results:
        lines += [Line(""), Heading("When it was proposed the rules said")]
        lines += results(intent.policy_results, refused=False)
    if intent.reason:
        lines += [Line(""), Line(f"Said: {clip(intent.reason, 1_000)}")]
    if intent.execution_result is not None:
        lines += [Line(""), Heading("What came of it"), *_result(intent.execution_result)]
    return [*lines, Line(""), Line(f"intent    {intent.id}", "quiet"), Line(f"digest    {intent.digest}", "quiet")]


def _does(intent: Intent, rules: Sequence[PolicyRule] | None, names: Names) -> list[Line]:
    payload = intent.payload
    if intent.intent_type in POLICY:
        change = rule_changes(intent.intent_type, payload, rules, names)
        # Where there is nothing to compare with, the change stands there as it was sent.
        return change if rules is not None else [*change, *(Line(one) for one in indent(payload))]
    if isinstance(calls := payload.get("calls"), list):
        chain = payload.get("chainId")
        lines = [Line(f"{len(calls)} transactions on {_chain(chain)}, one for each call, in this order.")]
        lines.append(Line("They are not atomic on the chain: one may fail and the others go through.", "warn"))
        for number, one in enumerate(calls, 1):
            lines.append(Heading(f"Call {number}"))
            lines += _payment(one if isinstance(one, dict) else {"": one}, chain, names)
        return lines + _rest(payload, {"calls", "chainId", "action"})
    if intent.intent_type == "transfer" or payload.get("action") == "transfer":
        lines = _payment(payload, payload.get("chainId"), names)
        return [Line(f"on {_chain(payload.get('chainId'))}"), *lines]
    return [Line(one) for one in indent(payload)]


def _payment(payload: Mapping[str, Any], chain: object, names: Names) -> list[Line]:
    """Amount and address in full; calldata by its function and size; every other field as it is."""
    number = chain if isinstance(chain, int) else None
    token, data = payload.get("token"), payload.get("data")
    coin = native_coin("evm:native", number)
    # A transfer may call its amount by either name, and both where they are equal.
    amount = payload.get("value", payload.get("amountWei"))
    is_call = isinstance(data, str) and len(data) > len("0x")
    lines = []
    if whole(amount) is None and not (amount is None and is_call):
        lines.append(Line(f"{_IN}The amount cannot be read: {clip(str(amount), 90)}", "bad"))
    elif token not in (None, "native"):
        lines.append(Line(f"{_IN}{whole(amount) or 0:,} smallest units of the token"))
        lines.append(Line(f"{_IN}token  {names.address(str(token))}"))
    else:
        lines.append(Line(f"{_IN}{coins(amount or '0', coin)}" if coin else f"{_IN}{amount} of the chain's own coin"))
    lines.append(Line(f"{_IN}to     {names.address(str(payload.get('to')))}"))
    if is_call:
        lines += [Line(f"{_IN}{one.text}", one.tone or "warn") for one in data_lines("evm", data)]
        lines += _permission(str(data))
    return lines + _rest(payload, {"to", "value", "amountWei", "token", "data", "chainId", "action"})


def _permission(data: str) -> list[Line]:
    """Tell what a well-known call lets somebody spend."""
    body = data.lower().removeprefix("0x")
    if body[:8] not in _SPENDING or len(body) < 8 + 128:
        return []
    spender, amount = f"0x{body[32:72]}", int(body[72:136], 16)
    if amount >= UNLIMITED:
        return [Line(f"{_IN}Lets {spender} spend UNLIMITED amounts of this token, now and later.", "bad")]
    return [Line(f"{_IN}Lets {spender} spend {amount:,} smallest units of this token.", "warn")]


def _rest(payload: Mapping[str, Any], known: set[str]) -> list[Line]:
    rest = {name: value for name, value in payload.items() if name not in known and value is not None}
    return [Line(_IN + one) for one in indent(rest)] if rest else []


def _chain(chain: object) -> str:
    return chain_name(chain) if isinstance(chain, int) else clip(str(chain), 40)


def _result(result: Mapping[str, Any]) -> list[Line]:
    lines = []
    if isinstance(code := result.get("code"), str):
        why = _WHY.get(code, str(result.get("message") or code))
        lines.append(Line(f"It failed: {clip(why, 500)} ({clip(code, 60)}).", "bad"))
    transactions = result.get("transactions")
    for one in transactions if isinstance(transactions, list) else [result]:
        if isinstance(one, dict) and isinstance(one.get("txId"), str):
            word, tone = state(str(one.get("status")))
            lines.append(Line(f"{word}  transaction {clip(one['txId'], 60)}", tone))
            if one.get("txHash"):
                lines.append(Line(f"{_IN}{clip(str(one['txHash']), 128)}", "quiet"))
    rest = {n: v for n, v in result.items() if n not in {"code", "message", "transactions", "txId", "txHash", "status"}}
    return lines + [Line(one) for one in (indent(rest) if rest else [])]

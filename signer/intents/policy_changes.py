"""A change of an agent's rules that somebody authorised: today's set and the payload make the new one."""

from functools import partial

import msgspec
from msgspec import UNSET

from custody.intents.payloads import LastRule, Payload, PolicyUpdate, RuleCreate, RuleDelete, RulePatch, RuleUpdate
from custody.kit import ids
from custody.policies.kinds import PolicyRule
from custody.policies.rules import ParsedRule, parse, wire
from custody.policies.types import InvalidPolicy
from custody.protocol.signer.refusals import UnknownPolicy
from custody.worker.call import Call
from custody.worker.proven import ProvenSession
from signer import replace_policies
from signer.context import Signer
from signer.intents.claims import Claimed
from signer.intents.sealed import Sealed


async def carry_out(
    signer: Signer, call: Call[ProvenSession], intent: Sealed, payload: Payload, claimed: Claimed
) -> None:
    """Replace the set by the function that replaces every set."""
    version = int((intent.baseline or "").rpartition(":")[2])
    await replace_policies.by_intent(signer, call, intent.agent or "", partial(_make, payload), version, claimed)


def _make(payload: Payload, old: tuple[ParsedRule, ...]) -> tuple[ParsedRule, ...]:
    """The new set. Rules that stay keep who set them."""
    if isinstance(payload, PolicyUpdate):
        return parse(payload.policies, ids.new_uuid)
    rules = {rule.id: rule for rule in old}
    if isinstance(payload, RuleCreate):
        if payload.rule.id in rules:
            raise InvalidPolicy(f"The agent has a rule {payload.rule.id!r} already.")
        return _whole([*old, *_read(payload.rule)])
    if not isinstance(payload, RuleUpdate | RuleDelete):
        raise TypeError("no change of rules")
    if payload.rule_id not in rules:
        raise UnknownPolicy(f"ruleId: the agent has no rule {payload.rule_id!r}.")
    if isinstance(payload, RuleDelete):
        if len(old) == 1 and not payload.allow_delete_last_policy:
            raise LastRule
        return tuple(rule for rule in old if rule.id != payload.rule_id)
    changed = payload.rule if payload.rule is not None else _patch(wire(rules[payload.rule_id]), payload.patch)
    changed = msgspec.structs.replace(changed, id=payload.rule_id)
    return _whole([one for rule in old for one in (_read(changed) if rule.id == payload.rule_id else (rule,))])


def _patch(rule: PolicyRule, patch: RulePatch | None) -> PolicyRule:
    fields = msgspec.to_builtins(rule)
    if patch is not None and patch.enabled is not UNSET:
        fields["enabled"] = patch.enabled
    if patch is not None and patch.config is not UNSET:
        fields["config"] = {**fields["config"], **patch.config}
    fields.pop("source", None)
    try:
        changed: PolicyRule = msgspec.convert(fields, PolicyRule)
    except msgspec.ValidationError as problem:
        raise InvalidPolicy(f"The rule would not be valid: {problem}.") from None
    return changed


def _read(rule: PolicyRule) -> tuple[ParsedRule, ...]:
    return parse([rule], ids.new_uuid)


def _whole(rules: list[ParsedRule]) -> tuple[ParsedRule, ...]:
    """The same, within the bounds of every set."""
    parse([wire(rule) for rule in rules], ids.new_uuid)
    return tuple(rules)

"""The set of rules that a policy intent would leave behind. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from words.shapes import PolicyRule


def changed_set(kind: str, payload: dict[str, Any], now: Sequence[PolicyRule]) -> list[PolicyRule] | None:
    """The rules after it; None where it fits none of those that there are."""
    try:
        match kind:
            case "policy_update":
                return [_rule(one) for one in payload["policies"]]
            case "policy_rule_create":
                return [*now, _rule(payload["rule"])]
            case "policy_rule_delete":
                left = [rule for rule in now if rule.id != payload["ruleId"]]
                return left if len(left) < len(now) else None
            case "policy_rule_update":
                return _update(payload, now)
    except (KeyError, TypeError, AttributeError, ValueError, msgspec.ValidationError):
        return None
    return None


def _update(payload: dict[str, Any], now: Sequence[PolicyRule]) -> list[PolicyRule] | None:
    name, found, after = payload["ruleId"], False, list[PolicyRule]()
    for rule in now:
        if rule.id != name:
            after.append(rule)
            continue
        found = True
        if payload.get("rule") is not None:
            after.append(msgspec.structs.replace(_rule(payload["rule"]), id=name))
        else:
            after.append(_patch(rule, payload["patch"]))
    return after if found else None


def _patch(rule: PolicyRule, patch: dict[str, Any]) -> PolicyRule:
    """The rule with what the patch says of it; of a config it says some fields and leaves the others."""
    enabled = patch.get("enabled")
    document = {**msgspec.to_builtins(rule), "config": {**rule.config, **(patch.get("config") or {})}}
    return _rule(document if enabled is None else {**document, "enabled": enabled})


def _rule(document: Any) -> PolicyRule:
    return msgspec.convert(document, PolicyRule)

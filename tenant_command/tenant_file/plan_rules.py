"""Planning agents and what rules them. Pure."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from tenant_command.tenant_file.compared_rules import looser_rules, needs_votes, title_of
from tenant_command.tenant_file.comparing import (
    Change,
    Rule,
    canon_rule,
    changes,
    is_same_set,
    rule_pairs,
    rules_to_send,
)
from tenant_command.tenant_file.planning import WORDS, Planning
from tenant_command.tenant_file.rule_shape import is_enabled
from tenant_command.tenant_file.shape import AGENT
from tenant_command.tenant_file.state import EVERY_AGENT
from tenant_command.tenant_file.steps import IdOf, Request
from words.texts.fields import pluralize

_QUORUM: Final = "approval-quorum"


def policy_sets(planning: Planning) -> None:
    """Plan the policy sets, which agents name."""
    for one, item in planning.by_name("policySets", "name"):
        rules, before = one["policies"], item.said["policies"] if item else []
        body = {"name": one["name"], "policies": _body(rules, before)}
        if item is None:
            request = Request("POST", "/policy-sets", body, number=0)
            planning.add(planning.step("make", "policySets", one["name"], (request,), rules=rules))
        elif is_same_set(rules, before):
            planning.same("policySets")
        else:
            request = Request("PUT", f"/policy-sets/{item.id}", body)
            affects, watches = f"{pluralize(item.agents, 'agent', 'agents')} that name it", f"policySets/{item.id}"
            _change_rules(planning, ("policySets", one["name"], watches), request, rules, before, affects)
    planning.keep_or_delete_absent("policySets", "name", "what its agents spent together is forgotten")


def tenant_policy_set(planning: Planning) -> None:
    """Plan the one set that binds every agent."""
    one, item = planning.wanted["tenantPolicySet"], next(iter(planning.present.items("tenantPolicySet")), None)
    rules, before = one["policies"], item.said["policies"] if item else []
    request = Request("PUT", f"/policy-sets/{EVERY_AGENT}", {"name": one["name"], "policies": _body(rules, before)})
    affects = planning.whom(None)
    if item is None:
        planning.add(planning.step("make", "tenantPolicySet", "", (request,), rules=rules, affects=affects))
    elif one["name"] == item.said["name"] and is_same_set(rules, before):
        planning.same("tenantPolicySet")
    else:
        _change_rules(planning, ("tenantPolicySet", "", "tenantPolicySet"), request, rules, before, affects)


def agents(planning: Planning) -> None:
    """Plan the agents, each with its own rules where the file has them."""
    for one, item in planning.by_name("agents", "id"):
        path = f"/agents/{quote(one['id'], safe='')}"
        rules = one.get("policies")
        if item is None:
            _make_agent(planning, one, path)
            continue
        differing = changes(AGENT, one, item.said, "policies")
        if differing:
            request = Request("PATCH", path, {change.field: change.after for change in differing})
            watches = f"agents/{one['id']}"
            planning.change("agents", one["id"], request, differing, "nobody: names only", watches=watches)
        before = planning.present.policies.get(one["id"], [])
        if rules is not None and not is_same_set(rules, before):
            request = Request("PUT", f"{path}/policies", _body(rules, before))
            about = ("agents", one["id"], f"policies/{one['id']}")
            _change_rules(planning, about, request, rules, before, f"agent {one['id']}")
        elif not differing:
            planning.same("agents")
    why = "; a file never deletes an agent, for its keys would go with it" if planning.prune else ""
    planning.plan.kept += [f"agent {item.id}{why}" for item in planning.absent("agents", "id")]


def _make_agent(planning: Planning, one: dict[str, Any], path: str) -> None:
    rules = one.get("policies") or []
    body = {name: one[name] for name in ("id", "name", "platformId") if one.get(name) is not None}
    # With its rules at once: without any it might sign what it likes until they come.
    made = (
        Request("POST", "/agents/batch", {"agents": [body], "applyPolicies": _body(rules, [])})
        if rules
        else Request("POST", "/agents", body)
    )
    shown = one.get("displayName")
    further = () if shown is None else (Request("PATCH", path, {"displayName": shown}),)
    # One that is disabled judges nothing.
    looser = () if any(map(is_enabled, rules)) else ("an agent without rules of its own that are enabled",)
    step = planning.step(
        "make", "agents", one["id"], (made, *further), rules=rules, looser=looser, watches=f"agents/{one['id']}"
    )
    planning.add(step)


def _change_rules(
    planning: Planning,
    about: tuple[str, str, str],
    request: Request,
    wanted: list[Rule],
    present: list[Rule],
    affects: str,
) -> None:
    section, name, watches = about
    quorums = [[canon_rule(rule) for rule in rules if rule["type"] == _QUORUM] for rules in (wanted, present)]
    if quorums[0] != quorums[1] and not planning.who.is_person:
        planning.problem(f"the votes of {WORDS[section]} {name} change, which is for people: `custody login`")
    step = planning.step(
        "change",
        section,
        name,
        (request,),
        changes=_rule_changes(wanted, present),
        affects=affects,
        looser=looser_rules(wanted, present),
        votes=needs_votes(wanted, present),
        watches=watches,
    )
    planning.add(step)


def _body(wanted: Sequence[Rule], present: Sequence[Rule]) -> list[Any]:
    sent = rules_to_send(wanted, present)
    for rule in sent:
        if rule["type"] == "policy-set":
            rule["config"] = {**rule["config"], "policySet": IdOf("policySets", rule["config"]["policySet"])}
    return sent


def _rule_changes(wanted: Sequence[Rule], present: Sequence[Rule]) -> list[Change]:
    """Every rule that is new, gone or different, field by field."""
    found: list[Change] = []
    for new, old in rule_pairs(wanted, present):
        if new is None or old is None:
            rule = new or old or {}
            found.append(Change(title_of(rule), None if new else _terms(rule), _terms(rule) if new else None))
            continue
        before, after = canon_rule(old), canon_rule(new)
        if is_enabled(old) != is_enabled(new):
            found.append(Change(f"{title_of(old)}, enabled", is_enabled(old), is_enabled(new)))
        for name in sorted(before["config"].keys() | after["config"].keys()):
            if before["config"].get(name) != after["config"].get(name):
                found.append(Change(f"{title_of(old)}, {name}", old["config"].get(name), new["config"].get(name)))
    return found or [Change("the order or the ids of the rules", None, None)]


def _terms(rule: Rule) -> dict[str, Any]:
    return {**rule["config"], **({} if is_enabled(rule) else {"enabled": False})}

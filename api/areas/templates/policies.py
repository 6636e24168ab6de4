"""Apply policy templates: rules to start with, filled in and then checked like any rules that a caller sends.

A template is a text that the tenant keeps and nobody seals. So it decides nothing: applied, its rules are those of the
caller, who is proven, checked and recorded as with `PUT /agents/:agentId/policies`.
"""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec

from api.areas.policies import set_store, store
from api.areas.templates.shipped import SHIPPED
from api.areas.templates.types import AgentTemplateBody, FillBody, FilledTemplate, SetTemplateBody, TemplateValue
from api.areas.tenants import store as tenants
from custody.identity.theme import CustomizableField, PolicyTemplate
from custody.kit import ids
from custody.kit.answers import Answered
from custody.kit.callers import TenantCaller
from custody.kit.errors import Invalid, NotFound
from custody.kit.refs import AgentRef
from custody.policies.kinds import PolicyRule
from custody.policies.rules import ParsedRule, check_size, invalid_rule, parse, parse_set
from custody.policies.tighten import widenings
from custody.policies.types import InvalidPolicy
from custody.ports import Ports
from custody.protocol.signer.policies import ReplacePolicies
from custody.protocol.signer.policy_sets import PolicySet, ReplacePolicySet
from custody.protocol.signer.refusals import PolicySetAbsent

_PLACE: Final = re.compile(r"policies\[(\d{1,2})\]\.config((?:\.[A-Za-z0-9_]+|\[\d{1,3}\])+)")
_STEP: Final = re.compile(r"\.([A-Za-z0-9_]+)|\[(\d{1,3})\]")


class TemplateAbsent(NotFound):
    """No such policy template. `GET /policy-templates` lists the tenant's own and those of this service."""


class TemplateMisfit(Invalid):
    """The template cannot be filled in with these values."""


class OneOfTwo(Invalid):
    """Name either `agentId` or `policySetId`, not both."""


async def every(ports: Ports, tenant: str) -> list[PolicyTemplate]:
    """The tenant's own templates, then those of this service whose ids the tenant does not use."""
    own = (await tenants.get_config(ports.pool, tenant, ports.presets)).policy_templates
    taken = {one.id for one in own}
    return [*own, *(one for one in SHIPPED if one.id not in taken)]


async def compare(ports: Ports, tenant: str, body: FillBody) -> FilledTemplate:
    """Fill a template in, and name what it loosens; nothing is changed."""
    if body.agent_id is not None and body.policy_set_id is not None:
        raise OneOfTwo(fields=["agentId", "policySetId"])
    rules = await _rules_of(ports, tenant, body)
    if body.policy_set_id is not None:
        old = parse_set(await _of_set(ports, tenant, body.policy_set_id), ids.new_uuid)
        return _comparison(ports, old, rules, parse_set(rules, ids.new_uuid))
    old = ()
    if body.agent_id is not None:
        old = parse(await store.all_of(ports.pool, AgentRef(tenant, body.agent_id)), ids.new_uuid)
    return _comparison(ports, old, rules, parse(rules, ids.new_uuid))


async def apply(
    ports: Ports, caller: TenantCaller, ref: AgentRef, body: AgentTemplateBody
) -> Answered[list[PolicyRule]]:
    """Replace an agent's whole set of rules by a template's."""
    rules = await _rules_of(ports, ref.tenant, body)
    return await ports.workers.ask(ReplacePolicies(ref.agent, rules), caller)


async def apply_to_set(
    ports: Ports, caller: TenantCaller, policy_set: str, body: SetTemplateBody
) -> Answered[PolicySet]:
    """Replace a policy set's rules by a template's."""
    template = await _find(ports, caller.tenant, body.template_id)
    rules = _fill(template, body.values)
    name = body.name or await _name_of(ports, caller.tenant, policy_set) or template.name
    return await ports.workers.ask(ReplacePolicySet(policy_set, name, rules), caller)


def _comparison(
    ports: Ports, old: tuple[ParsedRule, ...], rules: list[PolicyRule], new: tuple[ParsedRule, ...]
) -> FilledTemplate:
    return FilledTemplate(rules, list(widenings(old, new, empty_policy=ports.deployment.empty_policy)))


async def _of_set(ports: Ports, tenant: str, policy_set: str) -> list[PolicyRule]:
    try:
        return (await set_store.one_of(ports.pool, tenant, policy_set)).policies
    except PolicySetAbsent:
        # The set of every agent is there once it is first replaced.
        if policy_set != "tenant":
            raise
        return []


async def _name_of(ports: Ports, tenant: str, policy_set: str) -> str | None:
    """Find the set's name; that there is no such set is the signer's to say."""
    try:
        return (await set_store.one_of(ports.pool, tenant, policy_set)).name
    except PolicySetAbsent:
        return None


async def _rules_of(ports: Ports, tenant: str, body: AgentTemplateBody) -> list[PolicyRule]:
    return _fill(await _find(ports, tenant, body.template_id), body.values)


async def _find(ports: Ports, tenant: str, template: str) -> PolicyTemplate:
    found = next((one for one in await every(ports, tenant) if one.id == template), None)
    if found is None:
        raise TemplateAbsent
    return found


def _fill(template: PolicyTemplate, values: Mapping[str, TemplateValue]) -> list[PolicyRule]:
    """The template's rules with values in their places, or TemplateMisfit or InvalidPolicy that says what is wrong."""
    fields = {field.path: field for field in template.customizable_fields}
    if unknown := sorted(set(values) - set(fields)):
        known = ", ".join(fields) or "none"
        raise TemplateMisfit(f"{unknown[0]} is not a customizable field of this template; those are: {known}.")
    rules = msgspec.to_builtins(template.policies)
    for path, field in fields.items():
        value = values.get(path, field.default)
        if value is not None:
            _demand_within(field, value)
            _put(rules, path, value)
    try:
        found = msgspec.convert(rules, list[PolicyRule])
    except msgspec.ValidationError as problem:
        raise invalid_rule(problem) or InvalidPolicy(
            f"The template has a rule that cannot be read: {problem}."
        ) from None
    check_size(found)
    return found


def _demand_within(field: CustomizableField, value: TemplateValue | tuple[Any, ...]) -> None:
    """Raise TemplateMisfit for a value outside of the bounds that the template gives."""
    if field.min is None and field.max is None:
        return
    number = _number(value)
    if number is None:
        raise TemplateMisfit(f"{field.path} ({field.label}) takes a number.")
    if field.min is not None and number < Decimal(str(field.min)):
        raise TemplateMisfit(f"{field.path} ({field.label}) is {field.min} at least.")
    if field.max is not None and number > Decimal(str(field.max)):
        raise TemplateMisfit(f"{field.path} ({field.label}) is {field.max} at most.")


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def _put(rules: list[dict[str, Any]], path: str, value: Any) -> None:
    """Put a value into its place; TemplateMisfit where the template names a place that its rules do not have."""
    place = _PLACE.fullmatch(path)
    try:
        if place is None:
            raise KeyError
        steps = [int(index) if index else name for name, index in _STEP.findall(place[2])]
        inside: Any = rules[int(place[1])]["config"]
        for step in steps[:-1]:
            inside = inside[step]
        if isinstance(inside, list) and not (isinstance(steps[-1], int) and steps[-1] < len(inside)):
            raise IndexError
        inside[steps[-1]] = list(value) if isinstance(value, tuple) else value
    except (KeyError, IndexError, TypeError):
        raise TemplateMisfit(
            f"The template's field {path} names no place in its rules; write it as policies[0].config.maxPerDay."
        ) from None

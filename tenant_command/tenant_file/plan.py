"""The plan: what must be done so that the service has what a file says. Pure.

Only what the file names is touched. With `prune` what it does not name goes, in those sections that it has, but never
an agent: its keys would go with it, and all that they hold.
"""

from typing import Any, Final

from tenant_command.tenant_file import plan_people, plan_routes, plan_rules
from tenant_command.tenant_file.planning import WORDS, Planning
from tenant_command.tenant_file.shape import FOR_PEOPLE
from tenant_command.tenant_file.state import GONE, State
from tenant_command.tenant_file.steps import IdOf, Plan, Request, Who

_ADMINS: Final = frozenset({"owner", "admin"})
_BUILDERS: Final = _ADMINS | {"developer"}
# In the order in which things need each other.
_SECTIONS: Final = {
    "secrets": plan_routes.secrets,
    "policySets": plan_rules.policy_sets,
    "tenantPolicySet": plan_rules.tenant_policy_set,
    "agents": plan_rules.agents,
    "credentialRoutes": plan_routes.credential_routes,
    "paymentRoutes": plan_routes.payment_routes,
    "webhooks": plan_routes.webhooks,
    "appClients": plan_people.app_clients,
    "saml": plan_people.saml,
    "oidcProviders": plan_people.oidc_providers,
    "ssoDomains": plan_people.sso_domains,
    "config": plan_people.config,
}
# Deleted in this order: what names a thing goes before it.
_DELETED: Final = (
    "webhooks", "credentialRoutes", "paymentRoutes", "appClients", "ssoDomains", "saml", "secrets", "policySets",
)  # fmt: skip


def plan_of(wanted: dict[str, Any], present: State, who: Who, *, prune: bool) -> Plan:
    """Plan what makes the service as the file says."""
    planning = Planning(wanted, present, who, prune=prune)
    _check_person(planning)
    for section, add_steps in _SECTIONS.items():
        readable = who.is_person or section not in FOR_PEOPLE
        if readable and (wanted.get(section) is not None or (section == "saml" and section in wanted)):
            add_steps(planning)
    planning.deleted.sort(key=lambda step: _DELETED.index(step.section))
    planning.plan.steps += [*planning.last, *planning.deleted]
    _check_names(planning)
    _check_roles(planning)
    return planning.plan


def _check_person(planning: Planning) -> None:
    for section in planning.wanted:
        if section in FOR_PEOPLE and not planning.who.is_person:
            planning.problem(f"`{section}` is for an owner or admin: sign in with `custody login`, or leave it out")


def _check_names(planning: Planning) -> None:
    """Look for names of secrets and policy sets that nothing has."""
    deleted = {(step.section, step.name) for step in planning.deleted}
    have = {(section, name) for section in ("secrets", "policySets") for name in planning.present.ids(section)}
    have |= {
        (section, one["name"]) for section in ("secrets", "policySets") for one in planning.wanted.get(section) or ()
    }
    for step in planning.plan.steps:
        for found in _references(step.requests):
            if (found.section, found.name) not in have - deleted:
                name = "that is deleted" if found.name.startswith(GONE) else f"{found.name}, which is nowhere"
                planning.problem(f"{WORDS[step.section]} {step.name} names the {WORDS[found.section]} {name}")


def _check_roles(planning: Planning) -> None:
    """Look whether this person's role may do it all, as far as roles decide."""
    if not planning.who.is_person:
        return
    for step in planning.plan.steps:
        is_ruling = step.rules or step.watches.startswith("policies/")
        for_admins = is_ruling or step.section in FOR_PEOPLE | {"policySets", "tenantPolicySet", "config"}
        if planning.who.role not in (_ADMINS if for_admins else _BUILDERS):
            whose = "owners and admins" if for_admins else "owners, admins and developers"
            planning.problem(f"{WORDS[step.section]} {step.name} is for {whose}, and you are {planning.who.role}")


def _references(value: Any) -> list[IdOf]:
    match value:
        case IdOf():
            return [value]
        case Request():
            return _references(value.body)
        case dict():
            return [found for one in value.values() for found in _references(one)]
        case list() | tuple():
            return [found for one in value for found in _references(one)]
        case _:
            return []

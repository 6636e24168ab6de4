"""Bodies and answers about templates and presets."""

from typing import Annotated

import msgspec
from msgspec import Meta

from custody.credentials.types import RouteAgents
from custody.identity.theme import FieldPath, ItemId
from custody.kit.described import described
from custody.kit.shapes import AgentId, DisplayName, PolicySetId, Uuid
from custody.policies.kinds import PolicyRule

# Without a pattern: the rules that a value becomes part of have their own. That of a list in a mapping is freed once
# too often by msgspec when the interpreter ends, which then ends by a segmentation fault.
_Single = bool | int | float | Annotated[str, Meta(max_length=200)]
TemplateValue = _Single | Annotated[list[_Single], Meta(max_length=100)]
TemplateValues = Annotated[
    Annotated[dict[FieldPath, TemplateValue], Meta(max_length=50)],
    described("Values by the `path` of a customizable field; a field left out has its default."),
]
_TEMPLATE = described("The template's id, of those that `GET /policy-templates` lists.")


class AgentTemplateBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A template, and values for its fields."""

    template_id: Annotated[ItemId, _TEMPLATE]
    values: TemplateValues = {}


class FillBody(AgentTemplateBody, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A template with values, and the agent or policy set to compare it with."""

    agent_id: Annotated[AgentId | None, described("The agent whose rules it would replace.")] = None
    policy_set_id: Annotated[PolicySetId | None, described("The policy set whose rules it would replace.")] = None


class FilledTemplate(msgspec.Struct, frozen=True):
    """A template's rules with its values in them, and what they would loosen."""

    policies: Annotated[list[PolicyRule], described("The rules, as they would be put.")]
    loosens: Annotated[
        list[str],
        described("A sentence for each way in which they may let more pass than the rules in force; empty: none."),
    ]


class SetTemplateBody(AgentTemplateBody, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The template that replaces a policy set's rules."""

    name: Annotated[
        DisplayName | None, described("The set's name; left out: the one that it has, or else the template's.")
    ] = None


class RoutePresetBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """A preset of the tenant, and what a route that is made from it needs beside."""

    preset_id: Annotated[ItemId, described("The preset's id, of `secretRoutePresets` in the tenant's configuration.")]
    secret_id: Annotated[
        Uuid | None, described("The secret to inject; left out where the preset names one (`provisioning: platform`).")
    ] = None
    agents: Annotated[RouteAgents, described("The agents that the route is for; none named: all of the tenant.")] = ()

"""An agent as callers see it."""

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from custody.kit.described import described
from custody.kit.errors import Conflict
from custody.kit.paging import Page
from custody.kit.shapes import AgentId, DisplayName, Duration


class AgentTaken(Conflict):
    """An agent with this id already exists."""


class NewAgentBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The fields of a new agent."""

    id: Annotated[AgentId, described("The agent's id, chosen by you and unique in the tenant.")]
    name: Annotated[DisplayName, described("A name for people.")]
    platform_id: Annotated[DisplayName | None, described("The agent's id on your own platform.")] = None


class AgentChangeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Changes of an agent; omitted fields stay as they are."""

    name: Annotated[DisplayName | UnsetType, described("A name for people.")] = UNSET
    display_name: Annotated[DisplayName | UnsetType | None, described("Name that people see; null removes it.")] = UNSET
    platform_id: Annotated[
        DisplayName | UnsetType | None, described("The agent's id on your own platform; null takes it away.")
    ] = UNSET


class AgentQuery(Page, frozen=True, kw_only=True, rename="camel"):
    """The tenant's agents to list."""

    platform_id: Annotated[
        DisplayName | None,
        described("Only agents with this id on your own platform."),
    ] = None


class TokenBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The lifetime of a token: `<n>s|m|h|d`, at most 30 days."""

    expires_in: Annotated[Duration, described("Lifetime of the token: `<n>s|m|h|d`, at most 30 days.")] = "24h"

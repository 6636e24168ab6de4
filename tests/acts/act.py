"""One act, said once more by hand: who may, what a worker is told, and a request that succeeds.

Nothing here may be read from the declarations of routes and commands: one that is declared wrongly must fail.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import httpx
import msgspec

if TYPE_CHECKING:
    from tests.table.world import World

ROLES = ("owner", "admin", "developer", "billing", "viewer", "member")
NOBODY: frozenset[str] = frozenset()
ANYBODY, TEAM, BUILDERS, ADMINS = (frozenset(ROLES[:most]) for most in (6, 5, 3, 2))

# Kinds of credentials.
PUBLIC, SESSION, AGENT, OPERATOR = (frozenset({kind}) for kind in ("public", "session", "agent", "platform_key"))
KEYS = frozenset({"tenant_key", "app_client"})
SIDE = KEYS | SESSION
SIDE_OR_AGENT = SIDE | AGENT
DECIDERS = frozenset({"tenant_key", "session"})
AGENT_OR_SESSION = AGENT | SESSION
OPERATOR_OR_SESSION = OPERATOR | SESSION
EVERY_BUT_AGENT = SIDE | OPERATOR
EVERY = EVERY_BUT_AGENT | AGENT

# What no tenant has.
ABSENT = "00000000-0000-0000-0000-000000000000"
OF_AGENT: dict[str, Any] = {"agent": "absent"}
OF_ORDER = {**OF_AGENT, "tx_id": ABSENT}


class Journey(msgspec.Struct):
    """A request's caller, what stands in its path, its body and its query."""

    client: httpx.Client
    path: dict[str, str] = {}
    body: Any = None
    query: str = ""


class Act(msgspec.Struct, frozen=True):
    """One route, at every place where it stands, and the command that it asks; or a command that no route asks."""

    routes: str | tuple[str, ...]
    # The kinds of credentials that are admitted.
    who: Collection[str]
    # What a person needs: one of these roles, and for the action a second factor that is recent.
    roles: Collection[str] = NOBODY
    factor: str | None = None
    command: str | None = None
    # The command's fields, such that it finds nothing: said where the command is first.
    nothing: dict[str, Any] | None = None
    # The processes that may send the command.
    senders: str = "api"
    # A body that succeeds on what `World` puts into the path; or the whole request, if somebody must be ready for it.
    body: Callable[["World"], Any] | None = None
    journey: Callable[["World"], Journey] | None = None
    # Why a request that is no GET leaves no audit row.
    unaudited: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """The routes, as a tuple."""
        return (self.routes,) if isinstance(self.routes, str) else self.routes

"""The callers of a route, as a value beside its path: read by the credentials step, OpenAPI and the table's tests."""

from typing import Any, Literal

import msgspec

from custody.identity.mfa import Action
from custody.identity.roles import ADMINS, ANYBODY, READERS
from custody.kit.shapes import Role
from custody.protocol.command import Command, ProofKind, declaration_of

Kind = Literal["public", "tenant_key", "agent_token", "platform_key", "session", "app_client"]


_KINDS: dict[ProofKind, Kind] = {
    "tenant_key": "tenant_key",
    "agent": "agent_token",
    "platform_key": "platform_key",
    "session": "session",
    "app_client": "app_client",
}


class Who(msgspec.Struct, frozen=True):
    """The kinds of credential a route takes.

    `scope` is what a platform key must have; `roles` and `action` what a session must: one of the roles, and a second
    factor as recent as the tenant wants it for that action.
    """

    kinds: frozenset[Kind]
    scope: str | None = None
    roles: frozenset[Role] = frozenset()
    action: Action | None = None
    # Also a session that began at an app client's page; of what takes any role only where it is said.
    pages: bool = True
    # Also a session that single sign-on began; of what takes any role only where it is said.
    bound: bool = True
    # Beside the session, the token of the agent in the path, in a header of its own.
    agent_beside: bool = False
    # The command that this was derived from.
    asks: type[Command[Any]] | None = None

    def __or__(self, other: "Who") -> "Who":
        if self.roles and other.roles:
            raise TypeError("a route says once what a session needs")
        return Who(
            self.kinds | other.kinds,
            self.scope or other.scope,
            self.roles | other.roles,
            self.action or other.action,
            self.pages and other.pages,
            self.bound and other.bound,
            self.agent_beside or other.agent_beside,
        )

    def with_agent(self) -> "Who":
        """The same, with the token of the agent in the path beside it."""
        return msgspec.structs.replace(self, agent_beside=True)


public = Who(frozenset({"public"}))
tenant_key = Who(frozenset({"tenant_key"}))
app_client = Who(frozenset({"app_client"}))
agent_token = Who(frozenset({"agent_token"}))


def session(roles: frozenset[Role], action: Action | None = None, *, pages: bool = True, bound: bool = True) -> Who:
    """A person with one of these roles; for an action, with a second factor that is recent."""
    return Who(frozenset({"session"}), roles=roles, action=action, pages=pages, bound=bound)


def platform(scope: str) -> Who:
    """A platform key with this scope."""
    return Who(frozenset({"platform_key"}), scope)


def asking(command: type[Command[Any]]) -> Who:
    """Exactly the callers that a worker takes this command from, for a route that asks it."""
    declared = declaration_of(command)
    kinds: frozenset[Kind] = frozenset(_KINDS[proof] for proof in declared.proofs) or frozenset({"public"})
    if "session" not in declared.proofs:
        return Who(kinds, declared.scope, asks=command)
    return Who(kinds, declared.scope, declared.roles, declared.mfa, declared.pages, declared.bound, asks=command)


def narrower(who: Who, than: type[Command[Any]]) -> Who:
    """Fewer callers than a worker takes this command from, for a route that asks it."""
    whole = asking(than)
    if not (who.kinds <= whole.kinds and who.roles <= whole.roles):
        raise TypeError(f"{than.__name__} does not take everybody who may call this route")
    return msgspec.structs.replace(who, asks=than)


# What routes declare as their callers.
person = session(ANYBODY, pages=False, bound=False)
person_on_a_page = session(ANYBODY)
admin = session(ADMINS)
# A retired route tells everybody so who has any credential at all.
anybody = Who(frozenset({"tenant_key", "agent_token", "platform_key", "session", "app_client"}), roles=ANYBODY)
tenant_read = tenant_key | app_client | session(READERS)


def admin_mfa(action: Action = "tenantAdmin") -> Who:
    """An owner or admin with a recent second factor."""
    return session(ADMINS, action)


def tenant_write(action: Action = "tenantAdmin", roles: frozenset[Role] = ADMINS) -> Who:
    """Callers that may change a tenant: its key, an app client, or a person with a recent second factor."""
    return tenant_key | app_client | session(roles, action)

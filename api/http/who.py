"""Who may call a route, as a value beside its path: read by the credentials step, OpenAPI and the table's tests."""

from typing import Literal

import msgspec

from custody.identity.mfa import Action
from custody.identity.roles import ADMINS, ANYBODY, READERS
from custody.kit.shapes import Role

Kind = Literal["public", "tenant_key", "agent_token", "platform_key", "session", "app_client"]


class Who(msgspec.Struct, frozen=True):
    """The kinds of credential a route takes.

    `scope` is what a platform key must have; `roles` and `action` what a session must: one of the roles, and a second
    factor as recent as the tenant wants it for that action.
    """

    kinds: frozenset[Kind]
    scope: str | None = None
    roles: frozenset[Role] = frozenset()
    action: Action | None = None

    def __or__(self, other: "Who") -> "Who":
        if self.roles and other.roles:
            raise TypeError("a route says once what a session needs")
        return Who(
            self.kinds | other.kinds, self.scope or other.scope, self.roles | other.roles, self.action or other.action
        )


public = Who(frozenset({"public"}))
tenant_key = Who(frozenset({"tenant_key"}))
app_client = Who(frozenset({"app_client"}))
agent_token = Who(frozenset({"agent_token"}))


def session(roles: frozenset[Role], action: Action | None = None) -> Who:
    """A person with one of these roles; for an action, with a second factor that is recent."""
    return Who(frozenset({"session"}), roles=roles, action=action)


def platform(scope: str) -> Who:
    """A platform key with this scope."""
    return Who(frozenset({"platform_key"}), scope)


# What routes are made of, in the words of decisions 5.
person = session(ANYBODY)
admin = session(ADMINS)
# A retired route tells everybody so who has any credential at all.
anybody = Who(frozenset({"tenant_key", "agent_token", "platform_key", "session", "app_client"}), roles=ANYBODY)
tenant_read = tenant_key | app_client | session(READERS)


def admin_mfa(action: Action = "tenantAdmin") -> Who:
    """An owner or admin with a recent second factor."""
    return session(ADMINS, action)


def tenant_write(action: Action = "tenantAdmin", roles: frozenset[Role] = ADMINS) -> Who:
    """Whoever changes something of a tenant: its key, an app client, or a person with a recent second factor."""
    return tenant_key | app_client | session(roles, action)


def tenant_decide(action: Action = "approvals") -> Who:
    """The same without integrations: what a person or the tenant itself decides."""
    return tenant_key | session(ADMINS, action)


TENANT_READ = "platform:tenant:read"
TENANT_WRITE = "platform:tenant:write"
USER_WRITE = "platform:user:write"

"""Who may call a route, as a value beside its path: read by the credentials step, OpenAPI and the table's tests."""

from typing import Literal

import msgspec

Kind = Literal["public", "tenant_key", "agent_token", "platform_key"]


class Who(msgspec.Struct, frozen=True):
    """The kinds of credential a route takes; `scope` is what a platform key must have."""

    kinds: frozenset[Kind]
    scope: str | None = None

    def __or__(self, other: "Who") -> "Who":
        return Who(self.kinds | other.kinds, self.scope or other.scope)


public = Who(frozenset({"public"}))
tenant_key = Who(frozenset({"tenant_key"}))
agent_token = Who(frozenset({"agent_token"}))


def platform(scope: str) -> Who:
    """A platform key with this scope."""
    return Who(frozenset({"platform_key"}), scope)


TENANT_READ = "platform:tenant:read"
TENANT_WRITE = "platform:tenant:write"

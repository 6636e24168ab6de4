"""The roles of a tenant's members."""

from custody.kit.shapes import Role

ANYBODY: frozenset[Role] = frozenset({"owner", "admin", "developer", "billing", "viewer", "member"})
READERS: frozenset[Role] = ANYBODY - {"member"}  # a member is an end user, no part of the team
BUILDERS: frozenset[Role] = frozenset({"owner", "admin", "developer"})
ADMINS: frozenset[Role] = frozenset({"owner", "admin"})

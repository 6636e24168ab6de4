"""The role that a person's groups give them, by the mappings of their tenant. Groups are compared to the letter."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final

import msgspec

from custody.kit.described import described
from custody.kit.errors import Invalid
from custody.kit.shapes import Role

MAX_MAPPINGS: Final = 100
MAX_GROUP: Final = 256
# From the most powerful; nobody becomes an owner by a group.
ORDER: Final[tuple[Role, ...]] = ("admin", "developer", "billing", "viewer", "member")
DEFAULT: Final[Role] = "viewer"


class GroupMappingRefused(Invalid):
    """A mapping of a group to a role is not possible."""


class GroupMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A group of the identity provider, and the role of its members."""

    group: Annotated[
        Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_GROUP)],
        described("The group as the identity provider writes it, to the letter."),
    ]
    role: Annotated[Role, described("The role of its members; never `owner`.")]


def check_mappings(mappings: Sequence[GroupMapping]) -> None:
    """Raise GroupMappingRefused, with the cure, unless each mapping can be kept."""
    if len(mappings) > MAX_MAPPINGS:
        raise GroupMappingRefused(f"groupRoleMappings has more than {MAX_MAPPINGS} entries; name fewer groups.")
    for place, one in enumerate(mappings):
        where = f"groupRoleMappings[{place}]"
        if one.role == "owner":
            raise GroupMappingRefused(
                f"{where}.role must not be owner: those who keep the groups would own the tenant. Map the group to "
                "admin, or let an owner make an owner."
            )
        if not one.group.strip() or len(one.group) > MAX_GROUP:
            raise GroupMappingRefused(f"{where}.group must be the group's name or id, of 1 to {MAX_GROUP} characters.")


def role_for(groups: Iterable[str], mappings: Iterable[GroupMapping]) -> Role:
    """The most powerful role that a group is mapped to, or viewer where none is; never owner."""
    held = set(groups)
    given = {one.role for one in mappings if one.group in held}
    return next((role for role in ORDER if role in given), DEFAULT)

"""Signers, key quorums, approvers' keys and votes: who else must agree before a wallet signs."""

from typing import ClassVar

from tortoise.migrations.migration import Migration as _Migration

from custody.migrations import sql


class Migration(_Migration):
    """Run the SQL file beside this one."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("custody", "0107_secrets")]  # type: ignore[misc]
    operations = sql(__name__)

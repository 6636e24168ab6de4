"""Sign-on: people who come from identity providers."""

from typing import ClassVar

from tortoise.migrations.migration import Migration as _Migration

from custody.migrations import sql


class Migration(_Migration):
    """Run the SQL file beside this one."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("custody", "0111_accounts")]  # type: ignore[misc]
    operations = sql(__name__)

"""The payments for which charges of calls were given back."""

from typing import ClassVar

from tortoise.migrations.migration import Migration as _Migration

from custody.migrations import sql


class Migration(_Migration):
    """Run the SQL file beside this one."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("custody", "0122_settlements")]  # type: ignore[misc]
    operations = sql(__name__)

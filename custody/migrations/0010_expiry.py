"""What ends by itself: approvals that nobody decided, and rows that nobody needs any more."""

from typing import ClassVar

from tortoise.migrations.migration import Migration as _Migration

from custody.migrations import sql


class Migration(_Migration):
    """Run the SQL file beside this one."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("custody", "0009_audit_log")]  # type: ignore[misc]
    operations = sql(__name__)

"""Refresh tokens that change with each use."""

from typing import ClassVar

from tortoise.migrations.migration import Migration as _Migration

from custody.migrations import sql


class Migration(_Migration):
    """Run the SQL file beside this one."""

    dependencies: ClassVar[list[tuple[str, str]]] = [("custody", "0116_saml_keys")]  # type: ignore[misc]
    operations = sql(__name__)

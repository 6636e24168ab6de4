"""Tenants, their keys and configuration, idempotency keys, and the operator's keys."""

from tortoise.migrations.migration import Migration as _Migration

from custody.migrations import sql


class Migration(_Migration):
    """Run the SQL file beside this one."""

    operations = sql(__name__)

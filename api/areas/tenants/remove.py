"""The end of routes that are no more."""

from typing import NoReturn

from custody.tenants.types import DefaultPoliciesRetired, TenantWebhookRetired


def refuse_retired() -> NoReturn:
    """410 for any valid credential; nothing is written."""
    raise DefaultPoliciesRetired


def refuse_webhook() -> NoReturn:
    """The same for a tenant's one webhook."""
    raise TenantWebhookRetired

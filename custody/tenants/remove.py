"""The end of a tenant, and of routes that are no more. Spec 2/4.3, 4.4."""

from typing import Any, NoReturn

import msgspec

from custody.kit.callers import PlatformCaller
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import DeleteTenant
from custody.tenants.types import DefaultPoliciesRetired, DeletedTenant, TenantWebhookRetired


async def remove(ports: Ports, caller: PlatformCaller, tenant: str) -> Any:
    """Delete a tenant with everything it has."""
    data = await asked(ports.signer, DeleteTenant(tenant), caller)
    return data.replayed_or(msgspec.convert(data, DeletedTenant))


def refuse_retired() -> NoReturn:
    """410 for any valid credential; nothing is written."""
    raise DefaultPoliciesRetired


def refuse_webhook() -> NoReturn:
    """The same for a tenant's one webhook."""
    raise TenantWebhookRetired

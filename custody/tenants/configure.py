"""Replace a tenant's configuration. Spec 2/4.3, decisions 5."""

from typing import Any

import msgspec

from custody.kit.callers import TenantCaller
from custody.kit.errors import Invalid
from custody.policies.kinds import KINDS
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import PutJudgingConfig
from custody.tenants import store
from custody.tenants.types import FLAGS, TenantConfigBody


class UnknownFlag(Invalid):
    """This feature flag is not known."""


class UnknownPolicyType(Invalid):
    """This type of policy is not known."""


async def put_config(ports: Ports, caller: TenantCaller, body: TenantConfigBody) -> Any:
    """Replace the whole configuration; a body that GET gave is accepted back."""
    if body.tenant_id not in (None, caller.tenant):
        raise Invalid("tenantId must be the tenant's own id.", code="wrong_tenant_id", fields=["tenantId"])
    if unknown := sorted(set(body.feature_flags) - set(FLAGS)):
        raise UnknownFlag(
            f"featureFlags: {unknown[0]!r} is not known; the flags are {', '.join(FLAGS)}.", fields=["featureFlags"]
        )
    if unknown := sorted(set(body.policy_exposure) - set(KINDS)):
        raise UnknownPolicyType(
            f"policyExposure: {unknown[0]!r} is not a type of policy; the types are {', '.join(KINDS)}.",
            fields=["policyExposure"],
        )
    document = msgspec.json.encode(msgspec.structs.replace(body, tenant_id=caller.tenant)).decode()
    judging = {
        "autoExpireSeconds": body.approval_config.auto_expire_seconds,
        "uncoveredEffects": body.approval_config.uncovered_effects,
    }
    data = await asked(ports.signer, PutJudgingConfig(document, judging), caller)
    return data.replayed_or(await store.get_config(ports.pool, caller.tenant))

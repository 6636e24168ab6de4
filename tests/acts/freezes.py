"""Freezing and unfreezing, of an agent and of a tenant."""

from typing import TYPE_CHECKING

import msgspec

from tests.acts.act import ADMINS, DECIDERS, OF_AGENT, OPERATOR, SESSION, Act, Journey
from tests.fixtures.callers import Tenant, new_tenant
from tests.fixtures.people import member

if TYPE_CHECKING:
    from tests.table.world import World


def _unfreeze_agent(world: "World") -> Journey:
    agent = world.fresh_agent()
    world.tenant.ok("POST", f"/agents/{agent.id}/freeze", {})
    return Journey(world.owner, {"agent": agent.id})


def _freeze_tenant(world: "World") -> Journey:
    tenant: Tenant = new_tenant(world.service)
    return Journey(tenant, {"tenant_id": tenant.id}, {"reason": "tried"})


def _unfreeze_tenant(world: "World") -> Journey:
    with new_tenant(world.service) as tenant:
        owner = member(world.service, tenant, "owner", mfa=True)
        tenant.ok("POST", f"/tenants/{tenant.id}/freeze", {})
    return Journey(owner, {"tenant_id": tenant.id})


def _freeze_by_operator(world: "World") -> Journey:
    return msgspec.structs.replace(_freeze_tenant(world), client=world.platform)


def _unfreeze_by_operator(world: "World") -> Journey:
    tenant = world.fresh_tenant()
    world.platform.ok("POST", f"/platform/tenants/{tenant.id}/freeze", {})
    return Journey(world.platform, {"tenant_id": tenant.id})


ACTS = (
    Act(
        "POST /agents/{agentId}/freeze",
        DECIDERS,
        ADMINS,
        "approvals",
        command="FreezeAgent",
        nothing=OF_AGENT,
        body=lambda world: {"reason": "tried"},
    ),
    Act(
        "POST /agents/{agentId}/unfreeze",
        SESSION,
        ADMINS,
        "approvals",
        command="UnfreezeAgent",
        nothing=OF_AGENT,
        journey=_unfreeze_agent,
    ),
    Act(
        "POST /tenants/{id}/freeze",
        DECIDERS,
        ADMINS,
        "approvals",
        command="FreezeTenant",
        nothing={},
        journey=_freeze_tenant,
    ),
    Act(
        "POST /tenants/{id}/unfreeze",
        SESSION,
        ADMINS,
        "approvals",
        command="UnfreezeTenant",
        nothing={},
        journey=_unfreeze_tenant,
    ),
    Act(
        "POST /platform/tenants/{id}/freeze",
        OPERATOR,
        command="FreezeTenantIn",
        nothing={"tenant": "absent"},
        journey=_freeze_by_operator,
    ),
    Act(
        "POST /platform/tenants/{id}/unfreeze",
        OPERATOR,
        command="UnfreezeTenantIn",
        nothing={"tenant": "absent"},
        journey=_unfreeze_by_operator,
    ),
)

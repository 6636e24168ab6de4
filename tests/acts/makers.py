"""Steps that come before acts of several areas."""

from typing import TYPE_CHECKING, Any

from tests.acts.act import Journey
from tests.fixtures.people import Person, fresh_address, sign_in

if TYPE_CHECKING:
    from tests.table.world import World


def invitation(world: "World", address: str | None = None) -> dict[str, Any]:
    """One into the tenant."""
    body = {"email": address or fresh_address(), "role": "viewer"}
    made: dict[str, Any] = world.platform.ok("POST", f"/platform/tenants/{world.tenant.id}/invitations", body)
    return made


def by_newcomer(world: "World") -> Journey:
    return Journey(sign_in(world.service))


def person_with_totp(world: "World") -> Person:
    person = sign_in(world.service)
    person.enrol_totp()
    return person


def next_api_key(world: "World") -> Journey:
    """Of the tenant's keys its own goes on; a tenant may have few."""
    path = f"/tenants/{world.tenant.id}/api-keys"
    for key in world.owner.ok("GET", path):
        if key["status"] != "revoked" and not world.tenant.key.startswith(key["prefix"]):
            world.owner.ok("DELETE", f"{path}/{key['id']}", {"force": True})
    return Journey(world.owner, {"tenant_id": world.tenant.id}, {"name": "the next one"})


def older_api_key(world: "World") -> Journey:
    journey, path = next_api_key(world), f"/tenants/{world.tenant.id}/api-keys"
    replaced, _ = world.owner.ok("POST", path, {}), world.owner.ok("POST", path, {})
    return Journey(world.owner, {**journey.path, "api_key_id": replaced["id"]}, {"force": False})

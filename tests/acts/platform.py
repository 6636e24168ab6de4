"""The operator's acts on tenants."""

from typing import TYPE_CHECKING

from tests.acts.act import ABSENT, ANYBODY, EVERY, OPERATOR, Act, Journey
from tests.acts.makers import invitation, next_api_key, older_api_key
from tests.fixtures.callers import fresh
from tests.fixtures.people import fresh_address, sign_in

if TYPE_CHECKING:
    from tests.table.world import World


def _revoke_invitation(world: "World") -> Journey:
    made = invitation(world)["invitation"]
    return Journey(world.platform, {"tenant_id": made["tenantId"], "invitation_id": made["id"]})


def _by_operator(world: "World", journey: Journey) -> Journey:
    return Journey(world.platform, journey.path, journey.body)


def _new_member(world: "World") -> Journey:
    person = sign_in(world.service)
    person.close()
    body = {"userId": person.id, "role": "viewer"}
    return Journey(world.platform, {"tenant_id": world.tenant.id}, body)


def _member(world: "World") -> Journey:
    journey = _new_member(world)
    world.platform.ok("POST", f"/platform/tenants/{world.tenant.id}/members", journey.body)
    path = {"tenant_id": world.tenant.id, "user_id": journey.body["userId"]}
    return Journey(world.platform, path, {"force": False})


ACTS = (
    Act("GET /platform/tenants/{id}/usage", OPERATOR),
    Act("GET /platform/tenants", OPERATOR),
    Act("GET /platform/tenants/{id}", OPERATOR),
    Act(
        "POST /platform/tenants",
        OPERATOR,
        command="CreateTenant",
        body=lambda world: {"id": fresh(), "name": "A tenant"},
    ),
    Act("DELETE /platform/tenants/{id}", OPERATOR, command="DeleteTenant", nothing={"id": "absent"}),
    Act("PUT /platform/tenants/{id}/policies", EVERY, ANYBODY, unaudited="retired: always 410 and no write"),
    Act("GET /platform/stats", OPERATOR),
    Act("GET /platform/tenants/{id}/users", OPERATOR),
    Act(
        "GET /platform/apps/gas_spend",
        OPERATOR,
        journey=lambda world: Journey(world.platform, query=f"tenant_id={world.tenant.id}"),
    ),
    Act(
        "POST /platform/tenants/{id}/members",
        OPERATOR,
        command="PutMember",
        nothing={"tenant": "absent", "user": ABSENT, "role": "owner"},
        journey=_new_member,
    ),
    Act("GET /platform/tenants/{id}/members", OPERATOR),
    Act(
        "DELETE /platform/tenants/{id}/members/{userId}",
        OPERATOR,
        command="RemoveMember",
        nothing={"tenant": "absent", "user": ABSENT},
        journey=_member,
    ),
    Act("GET /platform/tenants/{id}/invitations", OPERATOR),
    Act(
        "POST /platform/tenants/{id}/invitations",
        OPERATOR,
        command="PutInvitation",
        nothing={"tenant": "absent", "email": "x@example.com", "role": "viewer", "seconds": 300},
        journey=lambda world: Journey(
            world.platform, {"tenant_id": world.tenant.id}, {"email": fresh_address(), "role": "viewer"}
        ),
    ),
    Act(
        "DELETE /platform/tenants/{id}/invitations/{invitationId}",
        OPERATOR,
        command="RevokeInvitation",
        nothing={"tenant": "absent", "invitation": ABSENT},
        journey=_revoke_invitation,
    ),
    Act("GET /platform/tenants/{id}/api-keys", OPERATOR),
    Act(
        "POST /platform/tenants/{id}/api-keys",
        OPERATOR,
        command="CreateApiKeyIn",
        nothing={"tenant": "absent"},
        journey=lambda world: _by_operator(world, next_api_key(world)),
    ),
    Act(
        "DELETE /platform/tenants/{id}/api-keys/{keyId}",
        OPERATOR,
        command="RevokeApiKeyIn",
        nothing={"tenant": "absent", "key": ABSENT},
        journey=lambda world: _by_operator(world, older_api_key(world)),
    ),
)

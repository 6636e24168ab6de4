"""Acts on the members of one's own tenant, and joining one."""

from contextlib import closing
from typing import TYPE_CHECKING

from tests.acts.act import ABSENT, ADMINS, ANYBODY, SESSION, Act, Journey
from tests.acts.makers import invitation
from tests.fixtures.linking import second_wallet
from tests.fixtures.people import by_mail, fresh_address, member

if TYPE_CHECKING:
    from tests.table.world import World


def _accept_invitation(world: "World") -> Journey:
    person = by_mail(world.service, world.mailbox)
    token = invitation(world, person.address)["token"]
    return Journey(person, {"joined_tenant_id": world.tenant.id}, {"token": token})


def _colleague(world: "World") -> Journey:
    with closing(member(world.service, world.tenant, "viewer")) as person:
        return Journey(world.owner, {"tenant_id": world.tenant.id, "user_id": person.id})


def _change(world: "World") -> Journey:
    journey = _colleague(world)
    return Journey(journey.client, journey.path, {"role": "developer"})


def _withdraw(world: "World") -> Journey:
    made = invitation(world)["invitation"]
    return Journey(world.owner, {"tenant_id": world.tenant.id, "invitation_id": made["id"]})


def _two_wallets(world: "World") -> tuple[str, str]:
    """A member with a wallet more than one, and that wallet."""
    with closing(member(world.service, world.tenant, "viewer")) as person:
        return person.id, second_wallet(world.service, person)


def _remediate(world: "World") -> Journey:
    user, account = _two_wallets(world)
    path = {"own_tenant_id": world.tenant.id, "user_id": user, "linked_account_id": account}
    return Journey(world.owner, path)


def _remediate_several(world: "World") -> Journey:
    user, account = _two_wallets(world)
    return Journey(
        world.owner, {"own_tenant_id": world.tenant.id}, {"wallets": [{"userId": user, "accountId": account}]}
    )


ACTS = (
    Act("GET /tenants/{id}/members", SESSION, ADMINS),
    Act(
        "PATCH /tenants/{id}/members/{userId}",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="ChangeMember",
        nothing={"user": ABSENT, "role": "viewer"},
        journey=_change,
    ),
    Act(
        "DELETE /tenants/{id}/members/{userId}",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="EndMembership",
        nothing={"user": ABSENT},
        journey=_colleague,
    ),
    Act("GET /tenants/{id}/invitations", SESSION, ADMINS),
    Act(
        "POST /tenants/{id}/invitations",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="InviteMember",
        nothing={"email": "x@example.com", "role": "viewer", "seconds": 300},
        journey=lambda world: Journey(
            world.owner, {"tenant_id": world.tenant.id}, {"email": fresh_address(), "role": "viewer"}
        ),
    ),
    Act(
        "DELETE /tenants/{id}/invitations/{invitationId}",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="WithdrawInvitation",
        nothing={"invitation": ABSENT},
        journey=_withdraw,
    ),
    Act("GET /user/me/tenants/{id}/users", SESSION, ADMINS, "tenantAdmin"),
    Act(
        "GET /user/me/tenants/{tenantId}/users/wallet-policy/violations",
        SESSION,
        ADMINS,
        "tenantAdmin",
        journey=lambda world: Journey(world.owner, {"own_tenant_id": world.tenant.id}),
    ),
    Act(
        "DELETE /user/me/tenants/{tenantId}/users/{userId}/wallet-policy/wallets/{accountId}",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="RemediateWallets",
        nothing={"wallets": [{"user": ABSENT, "account": ABSENT}]},
        journey=_remediate,
    ),
    Act(
        "POST /user/me/tenants/{tenantId}/users/wallet-policy/remediations",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="RemediateWallets",
        journey=_remediate_several,
    ),
    Act(
        "POST /user/me/tenants/{tenantId}/invitations/accept",
        SESSION,
        ANYBODY,
        command="AcceptInvitation",
        nothing={"tenant": "absent", "token": "x"},
        journey=_accept_invitation,
    ),
)

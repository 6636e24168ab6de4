"""The operator's acts on people."""

import secrets
from contextlib import closing
from typing import TYPE_CHECKING, Any

from tests.acts.act import ABSENT, OPERATOR, Act, Journey
from tests.acts.makers import person_with_totp
from tests.fixtures.callers import Tenant
from tests.fixtures.people import fresh_address

if TYPE_CHECKING:
    from tests.table.world import World


def _wallet_of(world: "World") -> str:
    return world.owner.wallet.address


def _external_id(tenant: Tenant) -> dict[str, Any]:
    return {"tenantId": tenant.id, "walletExternalId": f"x-{secrets.token_hex(6)}"}


def _by_email(world: "World") -> Journey:
    address = fresh_address()
    world.platform.ok("POST", "/platform/users", {"email": address})
    return Journey(world.platform, body={"email": address})


def _by_phone(world: "World") -> Journey:
    with closing(person_with_totp(world)) as person:
        phone = world.phone()
        person.ok("POST", "/auth/mfa/sms/enroll", {"phone": phone})
        person.ok("POST", "/auth/mfa/sms/verify", {"code": world.sms_gateway.code_for(phone)})
    return Journey(world.platform, body={"phone": phone})


def _by_contract(world: "World") -> Journey:
    return Journey(world.platform, body={"smartWalletId": world.contract_wallet})


def _by_external_id(world: "World") -> Journey:
    body = _external_id(world.fresh_tenant())
    world.platform.ok("POST", "/platform/users", {"email": fresh_address(), **body})
    return Journey(world.platform, body=body)


def _new_external_id(world: "World") -> Journey:
    body = _external_id(world.fresh_tenant())
    member = {"email": fresh_address(), "tenantId": body["tenantId"]}
    user = world.platform.ok("POST", "/platform/users", member)["userId"]
    return Journey(world.platform, {"user_id": user}, body)


def _user(world: "World", body: Any = None, *, over: bool = False) -> Journey:
    """Somebody whom the operator named, deactivated where that is asked."""
    user = world.platform.ok("POST", "/platform/users", {"email": fresh_address()})["userId"]
    if over:
        world.platform.ok("POST", f"/platform/users/{user}/deactivate")
    return Journey(world.platform, {"user_id": user}, body)


ACTS = (
    Act(
        "POST /platform/users",
        OPERATOR,
        command="CreateUser",
        nothing={"email": "nobody"},
        journey=lambda world: Journey(world.platform, body={"email": fresh_address()}),
    ),
    Act(
        "GET /platform/users/lookup",
        OPERATOR,
        journey=lambda world: Journey(world.platform, query=f"walletAddress={_wallet_of(world)}"),
    ),
    Act(
        "POST /platform/users/email/address",
        OPERATOR,
        journey=_by_email,
        unaudited="a question in a body, so that no address stands in a log of URLs",
    ),
    Act(
        "POST /platform/users/phone/number",
        OPERATOR,
        journey=_by_phone,
        unaudited="a question in a body, so that nothing of it stands in a log of URLs",
    ),
    Act(
        "POST /platform/users/wallet/address",
        OPERATOR,
        journey=lambda world: Journey(
            world.platform, body={"walletAddress": _wallet_of(world), "tenantId": world.tenant.id}
        ),
        unaudited="a question in a body, so that nothing of it stands in a log of URLs",
    ),
    Act(
        "POST /platform/users/smart-wallet/address",
        OPERATOR,
        journey=_by_contract,
        unaudited="a question in a body, so that nothing of it stands in a log of URLs",
    ),
    Act(
        "POST /platform/users/wallet/external-id",
        OPERATOR,
        journey=_by_external_id,
        unaudited="a question in a body, so that nothing of it stands in a log of URLs",
    ),
    Act(
        "POST /platform/users/{userId}/wallet/external-id",
        OPERATOR,
        command="AssignExternalId",
        nothing={"tenant": "absent", "user": ABSENT, "external_id": "x"},
        journey=_new_external_id,
    ),
    Act("GET /platform/users", OPERATOR, journey=lambda world: Journey(world.platform)),
    Act("GET /platform/users/{userId}", OPERATOR, journey=_user),
    Act(
        "PATCH /platform/users/{userId}",
        OPERATOR,
        command="ChangeUser",
        nothing={"user": ABSENT, "name": "x"},
        journey=lambda world: _user(world, {"name": "Ada"}),
    ),
    Act(
        "POST /platform/users/{userId}/deactivate",
        OPERATOR,
        command="DeactivateUser",
        nothing={"user": ABSENT},
        journey=lambda world: _user(world, {"force": False}),
    ),
    Act(
        "POST /platform/users/{userId}/reactivate",
        OPERATOR,
        command="ReactivateUser",
        nothing={"user": ABSENT},
        journey=lambda world: _user(world, {}, over=True),
    ),
    Act(
        "DELETE /platform/users/{userId}",
        OPERATOR,
        command="DeleteUser",
        nothing={"user": ABSENT},
        journey=lambda world: _user(world, {"force": False}, over=True),
    ),
    Act(
        "POST /platform/users/wallet/external-id/connect-or-create",
        OPERATOR,
        command="ConnectOrCreateUser",
        nothing={"tenant": "absent", "external_id": "x"},
        journey=lambda world: Journey(world.platform, body=_external_id(world.fresh_tenant())),
    ),
)

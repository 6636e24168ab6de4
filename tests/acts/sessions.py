"""Signing in, sessions, linked identities and devices."""

from contextlib import closing
from typing import TYPE_CHECKING

from tests.acts.act import ABSENT, ANYBODY, EVERY_BUT_AGENT, PUBLIC, SESSION, Act, Journey
from tests.acts.makers import by_newcomer
from tests.fixtures.forgery import claims_of
from tests.fixtures.linking import evm_proof, second_wallet
from tests.fixtures.people import Person, fresh_address, says, sign_in
from tests.outside.wallet import Wallet
from tests.routes.auth.devices import GRANT_TYPE, Device, decide, new_device

if TYPE_CHECKING:
    from tests.table.world import World


def _link(world: "World") -> Journey:
    person = sign_in(world.service)
    return Journey(person, body={"wallet": evm_proof(world.service, person)})


def _unlink(world: "World") -> Journey:
    person = sign_in(world.service)
    return Journey(person, {"identity_id": second_wallet(world.service, person)})


def _verify(world: "World") -> Journey:
    signed = Wallet().sign_in(says(world.service, world.nobody.ok("GET", "/auth/nonce")["nonce"]))
    return Journey(world.nobody, body={"message": signed.message, "signature": signed.signature})


def _email(world: "World") -> Journey:
    address = fresh_address()
    world.nobody.ok("POST", "/auth/email/send", {"email": address})
    return Journey(world.nobody, body={"email": address, "code": world.mailbox.code_for(address)})


def _refresh(world: "World") -> Journey:
    person = sign_in(world.service)
    return Journey(person, body={"refreshToken": person.session["refreshToken"]})


def _other_session(world: "World") -> Journey:
    person = sign_in(world.service)
    with closing(sign_in(world.service, person.wallet)) as elsewhere:
        return Journey(person, {"session_id": claims_of(elsewhere.session["token"])["sid"]})


def _switch(world: "World") -> Journey:
    person = sign_in(world.service)
    return Journey(person, body={"tenantId": person.tenant})


def _with_device(world: "World") -> tuple[Person, Device]:
    """Somebody new each time: a person may look at few codes."""
    person = sign_in(world.service)
    return person, new_device(world.nobody, person.tenant)


def _device_token(world: "World") -> Journey:
    person, device = _with_device(world)
    assert decide(person, device).is_success
    return Journey(person, body={"grant_type": GRANT_TYPE, "device_code": device.code["device_code"]})


def _look_at_device(world: "World") -> Journey:
    person, device = _with_device(world)
    return Journey(person, query=f"user_code={device.code['user_code']}")


def _decide(world: "World") -> Journey:
    person, device = _with_device(world)
    return Journey(person, body={"user_code": device.code["user_code"], "action": "approve"})


ACTS = (
    Act("GET /auth/nonce", PUBLIC, command="NewNonce", nothing={}),
    Act(
        "POST /auth/verify",
        PUBLIC,
        command="SignInWithWallet",
        nothing={"message": "m", "signature": "0x00"},
        journey=_verify,
    ),
    Act("GET /auth/providers", PUBLIC),
    Act(
        "POST /auth/device/code",
        PUBLIC,
        command="NewDeviceCode",
        nothing={"tenant": "nobody"},
        journey=lambda world: Journey(world.nobody, body={"tenantId": world.tenant.id}),
    ),
    Act(
        "POST /auth/device/verify",
        SESSION,
        ANYBODY,
        command="DecideDevice",
        nothing={"user_code": "x", "approve": False},
        journey=_decide,
    ),
    Act(
        "POST /auth/device/token",
        PUBLIC,
        command="PollDeviceCode",
        nothing={"device_code": "dc"},
        journey=_device_token,
    ),
    Act("POST /auth/refresh", PUBLIC, command="RefreshSession", nothing={"refresh_token": "rt_"}, journey=_refresh),
    Act("POST /auth/logout", SESSION, ANYBODY, command="EndSession", nothing={"session": ABSENT}, journey=by_newcomer),
    Act("GET /auth/session", SESSION, ANYBODY),
    Act("GET /auth/sessions", SESSION, ANYBODY),
    Act("DELETE /auth/sessions/{id}", SESSION, ANYBODY, command="EndSession", journey=_other_session),
    Act(
        "POST /auth/session/tenant",
        SESSION,
        ANYBODY,
        command="SwitchTenant",
        nothing={"tenant": "absent"},
        journey=_switch,
    ),
    Act(
        "POST /auth/email/send",
        PUBLIC,
        command="NewEmailCode",
        nothing={"email": "a@example.com"},
        journey=lambda world: Journey(world.nobody, body={"email": fresh_address()}),
    ),
    Act(
        "POST /auth/email/verify",
        PUBLIC,
        command="SignInWithEmail",
        nothing={"email": "a@example.com", "code": "000000"},
        journey=_email,
    ),
    Act(
        "GET /auth/device/request",
        SESSION,
        ANYBODY,
        command="LookAtDevice",
        nothing={"user_code": "x"},
        journey=_look_at_device,
    ),
    Act("GET /auth/identities", SESSION, ANYBODY),
    Act("POST /auth/identities", SESSION, ANYBODY, command="LinkIdentity", nothing={}, journey=_link),
    Act(
        "DELETE /auth/identities/{id}",
        SESSION,
        ANYBODY,
        command="UnlinkIdentity",
        nothing={"identity": ABSENT},
        journey=_unlink,
    ),
    Act((), EVERY_BUT_AGENT, ANYBODY, command="Vouch", nothing={}),
)

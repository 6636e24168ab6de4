"""A person's second factors and passkeys."""

from typing import TYPE_CHECKING

import pyotp

from tests.acts.act import ABSENT, ADMINS, ANYBODY, PUBLIC, SESSION, Act, Journey
from tests.acts.makers import by_newcomer, person_with_totp
from tests.fixtures.people import Person, sign_in
from tests.outside.authenticator import Authenticator
from tests.routes.auth.factors import code_at

if TYPE_CHECKING:
    from tests.table.world import World


def _confirm_totp(world: "World") -> Journey:
    person = sign_in(world.service)
    seed = person.ok("POST", "/auth/mfa/totp/enroll", {})["secret"]
    return Journey(person, body={"code": pyotp.TOTP(seed).now()})


def _step_up_totp(world: "World") -> Journey:
    person = person_with_totp(world)
    return Journey(person, body={"code": code_at(person.seed, 1)})


def _step_up_recovery(world: "World") -> Journey:
    person = person_with_totp(world)
    return Journey(person, body={"code": person.recovery_codes.pop()})


def _with_passkey(world: "World") -> tuple[Person, Authenticator, str]:
    person, device = sign_in(world.service), Authenticator(f"http://localhost:{world.service.port}")
    credential = device.create(person.ok("POST", "/auth/passkeys/register/options", {}))
    made = person.ok("POST", "/auth/passkeys/register/verify", {"credential": credential})
    return person, device, made["id"]


def _register(world: "World") -> Journey:
    person, device = sign_in(world.service), Authenticator(f"http://localhost:{world.service.port}")
    return Journey(person, body={"credential": device.create(person.ok("POST", "/auth/passkeys/register/options", {}))})


def _step_up_passkey(world: "World") -> Journey:
    person, device, _ = _with_passkey(world)
    return Journey(person, body={"credential": device.get(person.ok("POST", "/auth/mfa/passkey/options", {}))})


ITEM = {"approvalId": ABSENT, "digest": "0" * 64}


def _touch_item(world: "World") -> Journey:
    person, device, _ = _with_passkey(world)
    shown = device.get(person.ok("POST", "/auth/mfa/passkey/item/options", ITEM))
    return Journey(person, body={**ITEM, "credential": shown})


def _log_in(world: "World") -> Journey:
    person, device, _ = _with_passkey(world)
    return Journey(person, body={"credential": device.get(person.ok("POST", "/auth/passkeys/login/options", {}))})


def _remove_passkey(world: "World") -> Journey:
    person, device, passkey = _with_passkey(world)
    # What was added just now is itself the recent factor, once it was shown.
    shown = device.get(person.ok("POST", "/auth/mfa/passkey/options", {}))
    person.take(person.ok("POST", "/auth/mfa/passkey/step-up", {"credential": shown}))
    return Journey(person, {"passkey_id": passkey})


def _began_sms(world: "World") -> tuple[Person, str]:
    person, phone = sign_in(world.service), world.phone()
    person.ok("POST", "/auth/mfa/sms/enroll", {"phone": phone})
    return person, phone


def _confirm_sms(world: "World") -> Journey:
    person, phone = _began_sms(world)
    return Journey(person, body={"code": world.sms_gateway.code_for(phone)})


def _with_sms(world: "World") -> tuple[Person, str]:
    person, phone = _began_sms(world)
    person.take(person.ok("POST", "/auth/mfa/sms/verify", {"code": world.sms_gateway.code_for(phone)}))
    return person, phone


def _step_up_sms(world: "World") -> Journey:
    person, phone = _with_sms(world)
    person.ok("POST", "/auth/mfa/sms/send", {})
    return Journey(person, body={"code": world.sms_gateway.code_for(phone, after=1)})


ACTS = (
    Act("GET /auth/mfa", SESSION, ANYBODY),
    Act("POST /auth/mfa/totp/enroll", SESSION, ANYBODY, command="EnrolTotp", nothing={}, journey=by_newcomer),
    Act(
        "POST /auth/mfa/totp/verify",
        SESSION,
        ANYBODY,
        command="ConfirmTotp",
        nothing={"code": "x"},
        journey=_confirm_totp,
    ),
    Act(
        "POST /auth/mfa/totp/step-up",
        SESSION,
        ANYBODY,
        command="StepUp",
        nothing={"method": "totp", "code": "x"},
        journey=_step_up_totp,
    ),
    Act(
        "DELETE /auth/mfa/totp",
        SESSION,
        ANYBODY,
        command="RemoveTotp",
        nothing={},
        journey=lambda world: Journey(person_with_totp(world)),
    ),
    Act(
        "POST /auth/mfa/recovery-codes",
        SESSION,
        ANYBODY,
        command="NewRecoveryCodes",
        nothing={},
        journey=lambda world: Journey(person_with_totp(world)),
    ),
    Act("POST /auth/mfa/recovery-codes/step-up", SESSION, ANYBODY, command="StepUp", journey=_step_up_recovery),
    Act(
        "POST /auth/mfa/passkey/options",
        SESSION,
        ANYBODY,
        command="NewPasskeyChallenge",
        nothing={"purpose": "step_up"},
        journey=lambda world: Journey(_with_passkey(world)[0]),
    ),
    Act("POST /auth/mfa/passkey/step-up", SESSION, ANYBODY, command="StepUp", journey=_step_up_passkey),
    Act(
        "POST /auth/mfa/passkey/item/options",
        SESSION,
        ADMINS,
        command="NewItemChallenge",
        nothing={"approval": ABSENT, "digest": "0" * 64},
        journey=lambda world: Journey(_with_passkey(world)[0], body=ITEM),
    ),
    Act(
        "POST /auth/mfa/passkey/item",
        SESSION,
        ADMINS,
        command="TouchItem",
        nothing={"approval": ABSENT, "digest": "0" * 64, "credential": {}},
        journey=_touch_item,
    ),
    Act(
        "POST /auth/mfa/sms/enroll",
        SESSION,
        ANYBODY,
        command="EnrolSms",
        nothing={"phone": "x"},
        journey=lambda world: Journey(sign_in(world.service), body={"phone": world.phone()}),
    ),
    Act(
        "POST /auth/mfa/sms/verify", SESSION, ANYBODY, command="ConfirmSms", nothing={"code": "x"}, journey=_confirm_sms
    ),
    Act(
        "POST /auth/mfa/sms/send",
        SESSION,
        ANYBODY,
        command="NewSmsCode",
        nothing={},
        journey=lambda world: Journey(_with_sms(world)[0]),
    ),
    Act("POST /auth/mfa/sms/step-up", SESSION, ANYBODY, command="StepUp", journey=_step_up_sms),
    Act("POST /auth/passkeys/register/options", SESSION, ANYBODY, command="NewPasskeyChallenge", journey=by_newcomer),
    Act(
        "POST /auth/passkeys/register/verify",
        SESSION,
        ANYBODY,
        command="RegisterPasskey",
        nothing={"credential": {}},
        journey=_register,
    ),
    Act("POST /auth/passkeys/login/options", PUBLIC, command="NewSignInChallenge", nothing={}),
    Act(
        "POST /auth/passkeys/login/verify",
        PUBLIC,
        command="SignInWithPasskey",
        nothing={"credential": {}},
        journey=_log_in,
    ),
    Act("GET /auth/passkeys", SESSION, ANYBODY),
    Act(
        "DELETE /auth/passkeys/{id}",
        SESSION,
        ANYBODY,
        command="RemovePasskey",
        nothing={"passkey": ABSENT},
        journey=_remove_passkey,
    ),
)

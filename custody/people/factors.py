"""Second factors: the signer makes and checks everything; here its codes are sent on. Decisions 5."""

from typing import Any

import msgspec

from custody.kit.callers import SessionCaller
from custody.people.mfa_types import Confirmed, RecoveryCodes, RemovedFactor, TotpEnrolment
from custody.people.types import CodeSent, SignedIn, SmsNotConfigured
from custody.ports import Ports
from custody.protocol.client import asked
from custody.protocol.messages import (
    Body,
    ConfirmSms,
    ConfirmTotp,
    EnrolSms,
    EnrolTotp,
    NewPasskeyChallenge,
    NewRecoveryCodes,
    NewSmsCode,
    RemoveTotp,
    StepUp,
)
from custody.senders.sms import Sms


async def enrol_totp(ports: Ports, caller: SessionCaller) -> TotpEnrolment:
    """A seed for an authenticator app."""
    return msgspec.convert(await asked(ports.signer, EnrolTotp(), caller), TotpEnrolment)


async def confirm_totp(ports: Ports, caller: SessionCaller, code: str) -> Confirmed:
    """The authenticator counts from now on."""
    return msgspec.convert(await asked(ports.signer, ConfirmTotp(code), caller), Confirmed)


async def remove_totp(ports: Ports, caller: SessionCaller) -> RemovedFactor:
    """The authenticator no longer counts."""
    return msgspec.convert(await asked(ports.signer, RemoveTotp(), caller), RemovedFactor)


async def renew_recovery_codes(ports: Ports, caller: SessionCaller) -> RecoveryCodes:
    """Ten new codes in place of those before."""
    return msgspec.convert(await asked(ports.signer, NewRecoveryCodes(), caller), RecoveryCodes)


async def enrol_sms(ports: Ports, caller: SessionCaller, phone: str) -> CodeSent:
    """Send a code to a number that is to become a factor."""
    return await _send(ports, caller, EnrolSms(phone))


async def confirm_sms(ports: Ports, caller: SessionCaller, code: str) -> Confirmed:
    """The number counts from now on."""
    _sender(ports)
    return msgspec.convert(await asked(ports.signer, ConfirmSms(code), caller), Confirmed)


async def send_sms(ports: Ports, caller: SessionCaller) -> CodeSent:
    """Send a code to the number that is a factor."""
    return await _send(ports, caller, NewSmsCode())


async def passkey_options(ports: Ports, caller: SessionCaller) -> dict[str, Any]:
    """What a browser needs to show one of the person's passkeys."""
    return dict(await asked(ports.signer, NewPasskeyChallenge("step_up"), caller))


async def step_up(ports: Ports, caller: SessionCaller, shown: StepUp) -> SignedIn:
    """The session with fresh MFA, for a factor that holds."""
    if shown.method == "sms":
        _sender(ports)
    return msgspec.convert(await asked(ports.signer, shown, caller), SignedIn)


async def _send(ports: Ports, caller: SessionCaller, message: Body) -> CodeSent:
    sms = _sender(ports)
    data = await asked(ports.signer, message, caller)
    sms.send_code(data["phone"], data["code"])
    return CodeSent(data["expiresAt"])


def _sender(ports: Ports) -> Sms:
    if ports.sms is None:
        raise SmsNotConfigured
    return ports.sms

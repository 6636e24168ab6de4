"""Second factors.

Anyone who has a factor needs a recent one to change them; that depends on the person, so the signer judges it.
"""

from api.areas.people import factor_store, factors
from api.areas.people.mfa_types import (
    CodeBody,
    CredentialBody,
    Factors,
    ItemBody,
    Options,
    PhoneBody,
    TouchedItemBody,
)
from api.http.bodies import MAX_PASSKEY_BODY
from api.http.endpoint import Routes
from api.http.who import asking, person_on_a_page
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.notifications.hourly import TooManyMessages
from custody.people.types import CodeSent, SmsNotConfigured
from custody.ports import Ports
from custody.protocol.identity.factors import (
    Confirmed,
    ConfirmSms,
    ConfirmTotp,
    EnrolSms,
    EnrolTotp,
    ItemToken,
    NewItemChallenge,
    NewPasskeyChallenge,
    NewRecoveryCodes,
    NewSmsCode,
    RecoveryCodes,
    RemovedFactor,
    RemoveTotp,
    StepUp,
    TotpEnrolment,
    TouchItem,
)
from custody.protocol.identity.refusals import (
    ChallengeInvalid,
    CodeInvalid,
    FactorAbsent,
    PasskeyCloned,
    PasskeyInvalid,
    PasskeyMalformed,
    PasskeyUnknown,
    UserUnverified,
)
from custody.protocol.identity.sessions import SignedIn

routes = Routes("/auth/mfa", tag="Second factors", hardened=False)


@routes.get("", who=person_on_a_page, private=True)
async def list_factors(ports: Ports, caller: SessionCaller) -> Factors:
    """List your second factors."""
    return await factor_store.factors(ports.pool, caller.user, caller.mfa_at)


@routes.post("/totp/enroll", who=asking(EnrolTotp), private=True, shows_secret=True)
async def enroll_totp(ports: Ports, caller: SessionCaller) -> Answered[TotpEnrolment]:
    """Start the enrolment of an authenticator app; verify its first code within ten minutes."""
    return await ports.workers.ask(EnrolTotp(), caller)


@routes.post("/totp/verify", who=asking(ConfirmTotp), private=True, shows_secret=True)
async def confirm_totp(ports: Ports, caller: SessionCaller, body: CodeBody) -> Answered[Confirmed]:
    """Verify the first code of a new authenticator.

    The session then has fresh MFA. The first factor brings recovery codes, returned only in this response.
    """
    return await ports.workers.ask(ConfirmTotp(body.code), caller)


@routes.post("/totp/step-up", who=asking(StepUp), private=True, shows_secret=True, fails=(CodeInvalid,))
async def step_up_with_totp(ports: Ports, caller: SessionCaller, body: CodeBody) -> Answered[SignedIn]:
    """Verify a code of the authenticator; each code works once, and older codes stop working."""
    return await ports.workers.ask(StepUp("totp", body.code), caller)


@routes.delete("/totp", who=asking(RemoveTotp))
async def remove_totp(ports: Ports, caller: SessionCaller) -> Answered[RemovedFactor]:
    """Remove the authenticator; removing the last factor also removes the recovery codes."""
    return await ports.workers.ask(RemoveTotp(), caller)


@routes.post("/recovery-codes", who=asking(NewRecoveryCodes), private=True, shows_secret=True)
async def renew_recovery_codes(ports: Ports, caller: SessionCaller) -> Answered[RecoveryCodes]:
    """Create ten new recovery codes; the older ones stop working."""
    return await ports.workers.ask(NewRecoveryCodes(), caller)


@routes.post("/recovery-codes/step-up", who=asking(StepUp), private=True, shows_secret=True, fails=(CodeInvalid,))
async def step_up_with_recovery_code(ports: Ports, caller: SessionCaller, body: CodeBody) -> Answered[SignedIn]:
    """Verify a recovery code, which uses it up."""
    return await ports.workers.ask(StepUp("recovery", body.code), caller)


@routes.post("/passkey/options", who=asking(NewPasskeyChallenge), fails=(FactorAbsent,), private=True)
async def begin_passkey_step_up(ports: Ports, caller: SessionCaller) -> Answered[Options]:
    """Get the WebAuthn options to verify one of your passkeys."""
    return await ports.workers.ask(NewPasskeyChallenge("step_up"), caller)


@routes.post(
    "/passkey/step-up",
    who=asking(StepUp),
    max_body=MAX_PASSKEY_BODY,
    fails=(PasskeyMalformed, PasskeyInvalid, PasskeyUnknown, PasskeyCloned, UserUnverified, ChallengeInvalid),
    private=True,
    shows_secret=True,
)
async def step_up_with_passkey(ports: Ports, caller: SessionCaller, body: CredentialBody) -> Answered[SignedIn]:
    """Verify a passkey with user verification."""
    return await ports.workers.ask(StepUp("passkey", credential=body.credential), caller)


@routes.post("/passkey/item/options", who=asking(NewItemChallenge), private=True)
async def begin_item_touch(ports: Ports, caller: SessionCaller, body: ItemBody) -> Answered[Options]:
    """Get the WebAuthn options to verify one of your passkeys for approving one item."""
    return await ports.workers.ask(NewItemChallenge(body.approval_id, body.digest), caller)


@routes.post("/passkey/item", who=asking(TouchItem), max_body=MAX_PASSKEY_BODY, private=True, shows_secret=True)
async def touch_item(ports: Ports, caller: SessionCaller, body: TouchedItemBody) -> Answered[ItemToken]:
    """Verify a passkey for one item: the token approves that item as it was read, within a minute, and nothing else.

    Unlike a step-up it leaves the session as it is: who sees the touch can do this one thing by it.
    """
    return await ports.workers.ask(TouchItem(body.approval_id, body.digest, body.credential), caller)


@routes.post(
    "/sms/enroll",
    who=asking(EnrolSms),
    limit="codes",
    fails=(TooManyMessages, SmsNotConfigured),
    private=True,
)
async def enroll_sms(ports: Ports, caller: SessionCaller, body: PhoneBody) -> CodeSent:
    """Start the enrolment of a telephone number: send it a code. It replaces an earlier number once verified."""
    return await factors.enrol_sms(ports, caller, body.phone)


@routes.post("/sms/verify", who=asking(ConfirmSms), fails=(SmsNotConfigured,), private=True, shows_secret=True)
async def confirm_sms(ports: Ports, caller: SessionCaller, body: CodeBody) -> Answered[Confirmed]:
    """Verify the code that was sent to a new number.

    The session then has fresh MFA. The first factor brings recovery codes, returned only in this response.
    """
    return await factors.confirm_sms(ports, caller, body.code)


@routes.post(
    "/sms/send",
    who=asking(NewSmsCode),
    limit="codes",
    fails=(TooManyMessages, SmsNotConfigured),
    private=True,
)
async def send_sms_code(ports: Ports, caller: SessionCaller) -> CodeSent:
    """Send a code to your enrolled number."""
    return await factors.send_sms(ports, caller)


@routes.post("/sms/step-up", who=asking(StepUp), fails=(CodeInvalid, SmsNotConfigured), private=True, shows_secret=True)
async def step_up_with_sms(ports: Ports, caller: SessionCaller, body: CodeBody) -> Answered[SignedIn]:
    """Verify the code that was sent."""
    return await factors.step_up_by_sms(ports, caller, body.code)

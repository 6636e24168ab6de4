"""Second factors. Decisions 5.

Whoever has a factor needs a recent one to change them; that depends on the person, so the signer judges it.
"""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import person
from custody.kit.callers import SessionCaller
from custody.kit.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from custody.people import factor_store, factors
from custody.people.mfa_types import (
    CodeBody,
    Confirmed,
    CredentialBody,
    Factors,
    Options,
    PhoneBody,
    RecoveryCodes,
    RemovedFactor,
    TotpEnrolment,
)
from custody.people.types import CodeSent, SignedIn
from custody.ports import Ports
from custody.protocol.messages import StepUp

routes = Routes("/auth/mfa", tag="Second factors")


@routes.get("", who=person, returns={200: Factors}, private=True)
async def list_all(ports: Ports, caller: SessionCaller) -> Any:
    """List one's own second factors."""
    return await factor_store.factors(ports.pool, caller.user, caller.mfa_at)


@routes.post(
    "/totp/enroll", who=person, returns={200: TotpEnrolment}, fails=(Forbidden, Conflict), private=True,
    shows_secret=True,
)  # fmt: skip
async def enrol_totp(ports: Ports, caller: SessionCaller) -> Any:
    """Get a seed for an authenticator app; it counts once a code of it was shown, within ten minutes."""
    return await factors.enrol_totp(ports, caller)


@routes.post(
    "/totp/verify", who=person, returns={200: Confirmed}, fails=(Forbidden, Conflict), private=True, shows_secret=True
)
async def confirm_totp(ports: Ports, caller: SessionCaller, body: CodeBody) -> Any:
    """Show the first code of a new authenticator.

    The session goes on with fresh MFA. Recovery codes are in this one answer, if there were none.
    """
    return await factors.confirm_totp(ports, caller, body.code)


@routes.post("/totp/step-up", who=person, returns={200: SignedIn}, private=True, shows_secret=True)
async def step_up_totp(ports: Ports, caller: SessionCaller, body: CodeBody) -> Any:
    """Show a code of the authenticator; it works once, and no older one works after it."""
    return await factors.step_up(ports, caller, StepUp("totp", body.code))


@routes.delete("/totp", who=person, returns={200: RemovedFactor}, fails=(Forbidden, NotFound))
async def remove_totp(ports: Ports, caller: SessionCaller) -> Any:
    """Remove the authenticator; with the last factor the recovery codes go too."""
    return await factors.remove_totp(ports, caller)


@routes.post(
    "/recovery-codes", who=person, returns={200: RecoveryCodes}, fails=(Forbidden, Conflict), private=True,
    shows_secret=True,
)  # fmt: skip
async def renew_recovery_codes(ports: Ports, caller: SessionCaller) -> Any:
    """Get ten new recovery codes; the older ones no longer work."""
    return await factors.renew_recovery_codes(ports, caller)


@routes.post("/recovery-codes/step-up", who=person, returns={200: SignedIn}, private=True, shows_secret=True)
async def step_up_recovery(ports: Ports, caller: SessionCaller, body: CodeBody) -> Any:
    """Show a recovery code, which this uses up."""
    return await factors.step_up(ports, caller, StepUp("recovery", body.code))


@routes.post("/passkey/options", who=person, returns={200: Options}, fails=(NotFound,), private=True)
async def passkey_options(ports: Ports, caller: SessionCaller) -> Any:
    """Get what a browser needs to show one of one's own passkeys."""
    return await factors.passkey_options(ports, caller)


@routes.post("/passkey/step-up", who=person, returns={200: SignedIn}, fails=(Invalid,), private=True, shows_secret=True)
async def step_up_passkey(ports: Ports, caller: SessionCaller, body: CredentialBody) -> Any:
    """Show a passkey that asked who its person is."""
    return await factors.step_up(ports, caller, StepUp("passkey", credential=body.credential))


@routes.post(
    "/sms/enroll", who=person, limit="codes", returns={200: CodeSent}, fails=(Forbidden, Invalid, Unavailable),
    private=True,
)  # fmt: skip
async def enrol_sms(ports: Ports, caller: SessionCaller, body: PhoneBody) -> Any:
    """Send a code to a telephone number, which counts once the code was shown; it takes the place of another."""
    return await factors.enrol_sms(ports, caller, body.phone)


@routes.post(
    "/sms/verify", who=person, returns={200: Confirmed}, fails=(Forbidden, Conflict, Unavailable), private=True,
    shows_secret=True,
)  # fmt: skip
async def confirm_sms(ports: Ports, caller: SessionCaller, body: CodeBody) -> Any:
    """Show the code that was sent to a new number.

    The session goes on with fresh MFA. Recovery codes are in this one answer, if there were none.
    """
    return await factors.confirm_sms(ports, caller, body.code)


@routes.post(
    "/sms/send", who=person, limit="codes", returns={200: CodeSent}, fails=(NotFound, Unavailable), private=True
)
async def send_sms(ports: Ports, caller: SessionCaller) -> Any:
    """Send a code to one's own number."""
    return await factors.send_sms(ports, caller)


@routes.post("/sms/step-up", who=person, returns={200: SignedIn}, fails=(Unavailable,), private=True, shows_secret=True)
async def step_up_sms(ports: Ports, caller: SessionCaller, body: CodeBody) -> Any:
    """Show the code that was sent."""
    return await factors.step_up(ports, caller, StepUp("sms", body.code))

"""Second factors that are codes by text message: identity makes the codes, and they are sent from here."""

from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.notifications.sms import Sms
from custody.people.types import CodeSent, SmsNotConfigured
from custody.ports import Ports
from custody.protocol.identity.factors import Confirmed, ConfirmSms, EnrolSms, NewSmsCode, StepUp
from custody.protocol.identity.sessions import SignedIn


async def enrol_sms(ports: Ports, caller: SessionCaller, phone: str) -> CodeSent:
    """Send a code to a number that is to become a factor."""
    return await _send(ports, caller, EnrolSms(phone))


async def confirm_sms(ports: Ports, caller: SessionCaller, code: str) -> Answered[Confirmed]:
    """Make the number that the code was sent to a factor."""
    _sender(ports)
    return await ports.workers.ask(ConfirmSms(code), caller)


async def send_sms(ports: Ports, caller: SessionCaller) -> CodeSent:
    """Send a code to the number that is a factor."""
    return await _send(ports, caller, NewSmsCode())


async def step_up_by_sms(ports: Ports, caller: SessionCaller, code: str) -> Answered[SignedIn]:
    """The session with fresh MFA, for the code that was sent."""
    _sender(ports)
    return await ports.workers.ask(StepUp("sms", code), caller)


async def _send(ports: Ports, caller: SessionCaller, message: EnrolSms | NewSmsCode) -> CodeSent:
    sms = _sender(ports)
    made = (await ports.workers.ask(message, caller)).answer
    sms.send_code(made.phone, made.code, enrols=isinstance(message, EnrolSms))
    return CodeSent(made.expires_at)


def _sender(ports: Ports) -> Sms:
    if ports.sms is None:
        raise SmsNotConfigured
    return ports.sms

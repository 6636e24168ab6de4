"""The device flow. RFC 8628; the page where people approve is in `api/routes/device.py`."""

from api.areas.people import devices
from api.areas.people.device_types import (
    AccessDenied,
    AuthorizationPending,
    DeviceCodeAnswer,
    DeviceCodeBody,
    DeviceDecisionBody,
    DeviceQuery,
    DeviceSessionAnswer,
    DeviceTokenBody,
    ExpiredToken,
    InvalidClient,
    InvalidRequest,
    NativeHeaders,
    SlowDown,
    UnsupportedGrantType,
    UserCodeMissing,
)
from api.http.endpoint import Routes
from api.http.who import asking
from custody.kit.callers import Origin, SessionCaller
from custody.ports import Ports
from custody.protocol.identity.devices import (
    DecideDevice,
    DeviceDecision,
    DeviceRequest,
    LookAtDevice,
    NewDeviceCode,
    PollDeviceCode,
)

routes = Routes("/auth/device", tag="Devices", hardened=False)


@routes.post(
    "/code",
    who=asking(NewDeviceCode),
    limit="device_code",
    fails=(InvalidRequest, InvalidClient),
    private=True,
    raw_answer=True,
    oauth=True,
    form_too=True,
)
async def create_device_code(
    ports: Ports, origin: Origin, headers: NativeHeaders, body: DeviceCodeBody
) -> DeviceCodeAnswer:
    """Get a code to sign in on a device without keyboard or browser (RFC 8628).

    The device shows `user_code` and `verification_uri`; a person opens that page on another device, signs in and
    approves. Fields are also accepted in camel case. The response has every field at the top level and under `data`.
    """
    return await devices.new_code(ports, origin, headers, body)


@routes.post(
    "/token",
    who=asking(PollDeviceCode),
    limit="device_token",
    fails=(
        InvalidRequest,
        InvalidClient,
        UnsupportedGrantType,
        AuthorizationPending,
        SlowDown,
        AccessDenied,
        ExpiredToken,
    ),
    private=True,
    shows_secret=True,
    raw_answer=True,
    oauth=True,
    form_too=True,
)
async def poll_device_token(
    ports: Ports, origin: Origin, headers: NativeHeaders, body: DeviceTokenBody
) -> DeviceSessionAnswer:
    """Poll for the session of a device; it is returned once.

    Until then 400 with `error`: `authorization_pending`, `slow_down` (poll every `interval` seconds from now on),
    `access_denied`, `expired_token`, `invalid_client`, `invalid_request` or `unsupported_grant_type`.
    """
    return await devices.session(ports, origin, headers, body)


@routes.get("/request", who=asking(LookAtDevice), private=True)
async def get_device_request(ports: Ports, caller: SessionCaller, query: DeviceQuery) -> DeviceRequest:
    """Get the request behind a device code, before you decide."""
    return (await ports.workers.ask(LookAtDevice(query.user_code), caller)).answer


@routes.post("/verify", who=asking(DecideDevice), fails=(UserCodeMissing, InvalidRequest), private=True, form_too=True)
async def decide_device(ports: Ports, caller: SessionCaller, body: DeviceDecisionBody) -> DeviceDecision:
    """Approve or deny a device code; an approved device gets a session of yours in the tenant it requests."""
    return await devices.decide(ports, caller, body)

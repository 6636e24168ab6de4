"""The device flow. RFC 8628, Spec 2/4.2; the page where people approve is in `api/routes/device.py`."""

from typing import Any

from api.http.endpoint import Routes
from api.http.who import person, public
from custody.kit.callers import Origin, SessionCaller
from custody.kit.errors import Conflict, Invalid, NotFound
from custody.people import devices
from custody.people.device_types import (
    DeviceCodeAnswer,
    DeviceCodeBody,
    DeviceDecision,
    DeviceDecisionBody,
    DeviceQuery,
    DeviceRequest,
    DeviceSessionAnswer,
    DeviceTokenBody,
    NativeHeaders,
)
from custody.ports import Ports

routes = Routes("/auth/device", tag="Devices")


@routes.post(
    "/code", who=public, limit="device_code", returns={200: DeviceCodeAnswer}, fails=(Invalid,), private=True,
    raw_answer=True, oauth=True,
)  # fmt: skip
async def code(ports: Ports, origin: Origin, headers: NativeHeaders, body: DeviceCodeBody) -> Any:
    """Get a code for a device without a keyboard or a browser.

    The device shows `user_code` and `verification_uri`; a person opens that page on another device, signs in and
    approves. Fields are also taken in camel case. Every field of the answer stands at the top level and under `data`.
    """
    return await devices.new_code(ports, origin, headers, body)


@routes.post(
    "/token", who=public, limit="device_token", returns={200: DeviceSessionAnswer}, fails=(Invalid,), private=True,
    shows_secret=True, raw_answer=True, oauth=True,
)  # fmt: skip
async def token(ports: Ports, origin: Origin, headers: NativeHeaders, body: DeviceTokenBody) -> Any:
    """Ask whether the device was let in; a session, once.

    Until then 400 with `error`: `authorization_pending`, `slow_down` (poll every `interval` seconds from now on),
    `access_denied`, `expired_token`, `invalid_client`, `invalid_request` or `unsupported_grant_type`.
    """
    return await devices.session(ports, origin, headers, body)


@routes.get("/request", who=person, returns={200: DeviceRequest}, fails=(NotFound, Conflict), private=True)
async def look(ports: Ports, caller: SessionCaller, query: DeviceQuery) -> Any:
    """See what the device that shows a code asks for, before deciding."""
    return await devices.look(ports, caller, query.user_code)


@routes.post("/verify", who=person, returns={200: DeviceDecision}, fails=(NotFound, Conflict), private=True)
async def verify(ports: Ports, caller: SessionCaller, body: DeviceDecisionBody) -> Any:
    """Approve or deny the device that shows a code; it gets a session of one's own in the tenant that it asks for."""
    return await devices.decide(ports, caller, body)

"""The device flow: the signer keeps the codes and decides; here it gets the words of RFC 8628."""

from typing import NoReturn

import msgspec

from api.areas.people.device_types import (
    DeviceCode,
    DeviceCodeAnswer,
    DeviceCodeBody,
    DeviceDecisionBody,
    DeviceSession,
    DeviceSessionAnswer,
    DeviceTokenBody,
    InvalidRequest,
    NativeHeaders,
    OAuthRefused,
    UnsupportedGrantType,
    UserCodeMissing,
)
from custody.kit.callers import Origin, SessionCaller
from custody.ports import Ports
from custody.protocol.identity.devices import (
    DecideDevice,
    DeviceDecision,
    DeviceRefused,
    NativeKind,
    NewDeviceCode,
    PollDeviceCode,
)

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"


async def new_code(ports: Ports, origin: Origin, headers: NativeHeaders, body: DeviceCodeBody) -> DeviceCodeAnswer:
    """A code for a device. Raises OAuthRefused, as everything here that a device calls."""
    tenant = body.tenant_id or _missing("tenant_id")
    kind, native_id = _native(headers, body)
    made = await ports.workers.tell(NewDeviceCode(tenant, body.client_id, kind, native_id), origin)
    if isinstance(made, DeviceRefused):
        raise _failure(made)
    code = DeviceCode(
        device_code=made.device_code,
        user_code=made.user_code,
        verification_uri=made.verification_uri,
        verification_uri_complete=f"{made.verification_uri}?user_code={made.user_code}",
        expires_in=made.expires_in,
        interval=made.interval,
        client_id=body.client_id,
        native_bundle_id=native_id if kind == "bundle" else None,
        native_package_name=native_id if kind == "package" else None,
    )
    return DeviceCodeAnswer(ok=True, data=code, **msgspec.structs.asdict(code))


async def session(ports: Ports, origin: Origin, headers: NativeHeaders, body: DeviceTokenBody) -> DeviceSessionAnswer:
    """A session, once a person let the device in."""
    if (body.grant_type or _missing("grant_type")) != GRANT_TYPE:
        raise UnsupportedGrantType
    device_code = body.device_code or _missing("device_code")
    kind, native_id = _native(headers, body)
    polled = await ports.workers.tell(PollDeviceCode(device_code, body.client_id, kind, native_id), origin)
    if isinstance(polled, DeviceRefused):
        raise _failure(polled)
    begun = polled.session
    whole = DeviceSession(
        **msgspec.structs.asdict(begun),
        access_token=begun.token,
        token_type="Bearer",  # noqa: S106 - a kind, no token
        oauth_refresh_token=begun.refresh_token,
        oauth_expires_in=begun.expires_in,
    )
    return DeviceSessionAnswer(ok=True, data=whole, **msgspec.structs.asdict(whole))


async def decide(ports: Ports, caller: SessionCaller, body: DeviceDecisionBody) -> DeviceDecision:
    """Let a device in, or not."""
    user_code = _one(body.user_code, body.user_code_camel)
    if user_code is None:
        raise UserCodeMissing(fields=["user_code"])
    message = DecideDevice(user_code, body.action == "approve")
    return (await ports.workers.ask(message, caller)).answer


def _native(headers: NativeHeaders, body: DeviceCodeBody | DeviceTokenBody) -> tuple[NativeKind | None, str | None]:
    """The native application, named in the body or in a header."""
    bundle = _one(body.native_bundle_id, headers.native_bundle_id)
    package = _one(body.native_package_name, headers.native_package_name)
    if bundle is not None and package is not None:
        raise InvalidRequest("Name a bundle id or a package name, not both.")
    if bundle is not None:
        return "bundle", bundle
    return ("package", package) if package is not None else (None, None)


def _one(left: str | None, right: str | None) -> str | None:
    """Take a value from one of two places; it may stand in both if it is the same."""
    if left is not None and right is not None and left != right:
        raise InvalidRequest("The request names it in two places with different values.")
    return left if left is not None else right


def _missing(field: str) -> NoReturn:
    raise InvalidRequest(f"{field} is missing.", fields=[field])


def _failure(refused: DeviceRefused) -> OAuthRefused:
    more = {} if refused.interval is None else {"interval": refused.interval}
    return OAuthRefused(refused.description, code=refused.error, **more)

"""The device flow: the signer keeps the codes and decides; here it gets the words of RFC 8628. Spec 2/4.2."""

from typing import Any, Literal, NoReturn

import msgspec

from custody.kit.callers import Origin, SessionCaller
from custody.kit.errors import Invalid
from custody.people.device_types import (
    DeviceCode,
    DeviceCodeAnswer,
    DeviceCodeBody,
    DeviceDecision,
    DeviceDecisionBody,
    DeviceRequest,
    DeviceSession,
    DeviceSessionAnswer,
    DeviceTokenBody,
    NativeHeaders,
    OAuthRefused,
)
from custody.people.types import SignedIn
from custody.ports import Ports
from custody.protocol.client import asked, told
from custody.protocol.messages import DecideDevice, LookAtDevice, NewDeviceCode, PollDeviceCode

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
NativeKind = Literal["bundle", "package"]


async def new_code(ports: Ports, origin: Origin, headers: NativeHeaders, body: DeviceCodeBody) -> DeviceCodeAnswer:
    """A code for a device. Raises OAuthRefused, as everything here that a device calls."""
    tenant = body.tenant_id or _missing("tenant_id")
    kind, native_id = _native(headers, body)
    data = await told(ports.signer, NewDeviceCode(tenant, body.client_id, kind, native_id), origin)
    _raise(data)
    page, user_code = data["verificationUri"], data["userCode"]
    code = DeviceCode(
        device_code=data["deviceCode"], user_code=user_code, verification_uri=page,
        verification_uri_complete=f"{page}?user_code={user_code}", expires_in=data["expiresIn"],
        interval=data["interval"], client_id=body.client_id,
        native_bundle_id=native_id if kind == "bundle" else None,
        native_package_name=native_id if kind == "package" else None,
    )  # fmt: skip
    return DeviceCodeAnswer(ok=True, data=code, **msgspec.structs.asdict(code))


async def session(ports: Ports, origin: Origin, headers: NativeHeaders, body: DeviceTokenBody) -> DeviceSessionAnswer:
    """A session, once a person let the device in."""
    if (body.grant_type or _missing("grant_type")) != GRANT_TYPE:
        raise OAuthRefused(f"The grant type must be {GRANT_TYPE}.", code="unsupported_grant_type")
    device_code = body.device_code or _missing("device_code")
    kind, native_id = _native(headers, body)
    data = await told(ports.signer, PollDeviceCode(device_code, body.client_id, kind, native_id), origin)
    _raise(data)
    begun = msgspec.convert(data["session"], SignedIn)
    whole = DeviceSession(
        **msgspec.structs.asdict(begun), access_token=begun.token, token_type="Bearer",  # noqa: S106 - a kind, no token
        oauth_refresh_token=begun.refresh_token, oauth_expires_in=begun.expires_in,
    )  # fmt: skip
    return DeviceSessionAnswer(ok=True, data=whole, **msgspec.structs.asdict(whole))


async def look(ports: Ports, caller: SessionCaller, user_code: str) -> DeviceRequest:
    """What a device asks for."""
    data = await asked(ports.signer, LookAtDevice(user_code), caller)
    kind, native_id = data.pop("nativeKind"), data.pop("nativeId")
    data["nativeBundleId"] = native_id if kind == "bundle" else None
    data["nativePackageName"] = native_id if kind == "package" else None
    return msgspec.convert(dict(data), DeviceRequest)


async def decide(ports: Ports, caller: SessionCaller, body: DeviceDecisionBody) -> DeviceDecision:
    """Let a device in, or not."""
    user_code = _one(body.user_code, body.user_code_camel)
    if user_code is None:
        raise Invalid("Send the code that the device shows, once, as user_code.", fields=["user_code"])
    data = await asked(ports.signer, DecideDevice(user_code, body.action == "approve"), caller)
    return msgspec.convert(dict(data), DeviceDecision)


def _native(headers: NativeHeaders, body: DeviceCodeBody | DeviceTokenBody) -> tuple[NativeKind | None, str | None]:
    """The native application, named in the body or in a header."""
    bundle = _one(body.native_bundle_id, headers.native_bundle_id)
    package = _one(body.native_package_name, headers.native_package_name)
    if bundle is not None and package is not None:
        raise OAuthRefused("Name a bundle id or a package name, not both.", code="invalid_request")
    if bundle is not None:
        return "bundle", bundle
    return ("package", package) if package is not None else (None, None)


def _one(left: str | None, right: str | None) -> str | None:
    """What was said in one of two places; it may be said in both if it is the same."""
    if left is not None and right is not None and left != right:
        raise OAuthRefused("Two places of this request name it differently.", code="invalid_request")
    return left if left is not None else right


def _missing(field: str) -> NoReturn:
    raise OAuthRefused(f"{field} is missing.", code="invalid_request", fields=[field])


def _raise(data: dict[str, Any]) -> None:
    if error := data.get("error"):
        more = {"interval": data["interval"]} if "interval" in data else {}
        raise OAuthRefused(data["description"], code=error, **more)

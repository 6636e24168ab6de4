"""The device flow."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.identity.roles import ANYBODY
from custody.kit.described import Instant, described
from custody.kit.shapes import TenantId
from custody.protocol.command import SESSION, Command, command, refuses
from custody.protocol.identity import refusals
from custody.protocol.identity.sessions import SignedIn

NativeKind = Literal["bundle", "package"]
# The words of RFC 6749 and RFC 8628 that a device may get from identity.
OAuthError = Literal[
    "invalid_request", "invalid_client", "access_denied", "expired_token", "slow_down", "authorization_pending"
]


class IssuedDeviceCode(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The code that the device alone knows, and the one that it shows with the page to type it into."""

    device_code: str
    user_code: str
    verification_uri: str
    expires_in: int
    interval: int

    def __repr__(self) -> str:
        return "IssuedDeviceCode()"


class DeviceSignedIn(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The session of a device that a person let in; the code is used up."""

    session: SignedIn


class DeviceRefused(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """An error of RFC 8628 or RFC 6749 and a sentence about it; `interval` where the device is to poll again."""

    error: OAuthError
    description: str
    interval: int | None = None


class Asker(msgspec.Struct, frozen=True):
    """A tenant or an app client."""

    id: Annotated[str, described("Its id.")]
    name: Annotated[str, described("Its name.")]


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A device's request, and the address that it came from."""

    user_code: Annotated[str, described("The code that the device shows.")]
    tenant: Annotated[Asker, described("The tenant that the device asks for.")]
    client: Annotated[Asker | None, described("The app client that asks, if one does.")]
    native_bundle_id: Annotated[str | None, described("The bundle id of the native application.")]
    native_package_name: Annotated[str | None, described("The package name of the native application.")]
    ip_address: Annotated[str | None, described("The address that the request came from.")]
    user_agent: Annotated[str | None, described("User agent that the client sent.")]
    created_at: Annotated[Instant, described("Time of the device's request.")]
    expires_at: Annotated[Instant, described("Time of expiry.")]


class DeviceDecision(msgspec.Struct, frozen=True, rename="camel"):
    """The decision about a code."""

    user_code: Annotated[str, described("The code that the device shows.")]
    status: Annotated[Literal["approved", "denied"], described("The decision.")]


@command("identity")
class NewDeviceCode(Command[IssuedDeviceCode | DeviceRefused], frozen=True):
    """Make a code with which a person can sign a device in."""

    tenant: TenantId
    client: str | None = None
    native_kind: NativeKind | None = None
    native_id: str | None = None


@command("identity", audit=("session.began",))
class PollDeviceCode(Command[DeviceSignedIn | DeviceRefused], frozen=True):
    """Ask for the device whether it was approved; the answer is a session or an error of RFC 8628."""

    device_code: Annotated[str, Meta(max_length=128)]
    client: str | None = None
    native_kind: NativeKind | None = None
    native_id: str | None = None

    def __repr__(self) -> str:
        return "PollDeviceCode()"


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True)
@refuses(refusals.DeviceCodeAbsent, refusals.DeviceDecided, refusals.TooManyAttempts)
class LookAtDevice(Command[DeviceRequest], frozen=True):
    """Show what a device that displays this code asks for."""

    user_code: Annotated[str, Meta(max_length=32)]


@command("identity", proofs=SESSION, roles=ANYBODY, bound=True, audit=("device.approved", "device.denied"))
@refuses(refusals.DeviceCodeAbsent, refusals.DeviceDecided, refusals.TooManyAttempts)
class DecideDevice(Command[DeviceDecision], frozen=True):
    """Let the device that displays this code in, or not."""

    user_code: Annotated[str, Meta(max_length=32)]
    approve: bool

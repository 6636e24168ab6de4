"""The bodies and answers of devices, in the words of RFC 8628: the one place where names have underscores."""

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from custody.kit.described import InContract, described
from custody.kit.errors import Invalid
from custody.kit.shapes import ClientId, TenantId
from custody.protocol.identity.sessions import SignedIn

# Loose on purpose: the signer says in a sentence what is wrong with it.
NativeText = Annotated[str, Meta(min_length=1, max_length=255)]
UserCodeText = Annotated[str, Meta(min_length=1, max_length=32)]


class UserCodeMissing(Invalid):
    """Send the code that the device shows, once, as user_code."""


class OAuthRefused(Invalid):
    """The request failed with an error of RFC 6749 or RFC 8628; `error` names it."""


class InvalidRequest(OAuthRefused):
    """A field is missing, malformed, or given in two places with different values; the sentence names it."""


class InvalidClient(OAuthRefused):
    """The tenant has no such app client, it does not list this native application, or the code is another client's."""


class UnsupportedGrantType(OAuthRefused):
    """The grant type must be urn:ietf:params:oauth:grant-type:device_code."""


class AuthorizationPending(OAuthRefused):
    """No decision has been made yet; poll again after `interval` seconds."""


class SlowDown(OAuthRefused):
    """The device polls too often; wait `interval` seconds between polls from now on."""


class AccessDenied(OAuthRefused):
    """The person denied the request, or is no longer an active member of the tenant; begin again with a new code."""


class ExpiredToken(OAuthRefused):
    """The device code is unknown, used, or older than ten minutes; begin again with a new code."""


class NativeHeaders(
    msgspec.Struct,
    frozen=True,
    rename={
        "native_bundle_id": "X-Service-Native-Bundle-Id",
        "native_package_name": "X-Service-Native-Package-Name",
    }.get,
):
    """The native application that asks, where the body does not name it."""

    native_bundle_id: Annotated[NativeText | None, described("The bundle id of the native application.")] = None
    native_package_name: Annotated[NativeText | None, described("The package name of the native application.")] = None


class DeviceCodeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The client that requests a session, and the tenant."""

    contract: ClassVar = InContract(needed=("tenant_id",))

    tenant_id: Annotated[TenantId | None, described("The tenant to sign in to.")] = None
    client_id: Annotated[ClientId | None, described("The app client that asks.")] = None
    native_bundle_id: Annotated[NativeText | None, described("The bundle id of the native application.")] = None
    native_package_name: Annotated[NativeText | None, described("The package name of the native application.")] = None
    scope: Annotated[
        NativeText | None, described("Taken from clients that send one, and ignored: the person's role counts.")
    ] = None


class DeviceTokenBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The device code, with the client and native application it was issued to."""

    contract: ClassVar = InContract(needed=("grant_type", "device_code"))

    grant_type: Annotated[
        Annotated[str, Meta(max_length=128)] | None, described("`urn:ietf:params:oauth:grant-type:device_code`.")
    ] = None
    device_code: Annotated[
        Annotated[str, Meta(max_length=128)] | None, described("The code that the device keeps.")
    ] = None
    client_id: Annotated[ClientId | None, described("The app client that asked for the code.")] = None
    native_bundle_id: Annotated[NativeText | None, described("The bundle id of the native application.")] = None
    native_package_name: Annotated[NativeText | None, described("The package name of the native application.")] = None

    def __repr__(self) -> str:
        return "DeviceTokenBody()"


class DeviceDecisionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The code that the device shows, and the decision."""

    contract: ClassVar = InContract(needed=("user_code",), same={"userCode": "user_code"})

    action: Annotated[Literal["approve", "deny"], described("The decision.")]
    user_code: Annotated[UserCodeText | None, described("The code that the device shows.")] = None
    user_code_camel: Annotated[
        UserCodeText | None, described("Another spelling of `user_code`; send one of the two.")
    ] = msgspec.field(default=None, name="userCode")


class DeviceQuery(msgspec.Struct, frozen=True):
    """The code that the device shows."""

    user_code: Annotated[UserCodeText, described("The code that the device shows.")]


class DeviceCode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The code the device keeps and the one it shows; it polls every `interval` seconds for at most `expires_in`."""

    device_code: Annotated[str, described("The code that the device keeps.")]
    user_code: Annotated[str, described("The code that the device shows.")]
    verification_uri: Annotated[str, described("The page where a person types the code.")]
    verification_uri_complete: Annotated[str, described("The same page with the code filled in.")]
    expires_in: Annotated[int, described("Seconds until both codes expire.")]
    interval: Annotated[int, described("Seconds between two polls.")]
    client_id: Annotated[str | None, described("The app client that asked.")] = None
    native_bundle_id: Annotated[str | None, described("The bundle id of the native application.")] = None
    native_package_name: Annotated[str | None, described("The package name of the native application.")] = None

    def __repr__(self) -> str:
        return "DeviceCode()"


class DeviceCodeAnswer(DeviceCode, frozen=True, kw_only=True, omit_defaults=True):
    """The same at the top level, where RFC 8628 looks for it, and under `data`."""

    ok: Annotated[Literal[True], described("The request succeeded.")]
    data: Annotated[DeviceCode, described("The same once more.")]


class DeviceSession(SignedIn, frozen=True, kw_only=True):
    """A session, with its tokens also under the names of RFC 6749."""

    access_token: Annotated[str, described("The same as `token`.")] = msgspec.field(name="access_token")
    token_type: Annotated[Literal["Bearer"], described("Scheme for sending the token.")] = msgspec.field(
        name="token_type"
    )
    oauth_refresh_token: Annotated[str, described("The same as `refreshToken`.")] = msgspec.field(name="refresh_token")
    oauth_expires_in: Annotated[int, described("The same as `expiresIn`.")] = msgspec.field(name="expires_in")


class DeviceSessionAnswer(DeviceSession, frozen=True, kw_only=True):
    """The same at the top level, where RFC 6749 looks for it, and under `data`."""

    ok: Annotated[Literal[True], described("The request succeeded.")]
    data: Annotated[DeviceSession, described("The same once more.")]

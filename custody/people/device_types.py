"""What devices send and get, in the words of RFC 8628: the one place where names have underscores. Spec 2/4.2."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from custody.kit.errors import Invalid
from custody.kit.shapes import ClientId, TenantId
from custody.people.types import SignedIn

# Loose on purpose: the signer says in a sentence what is wrong with it.
NativeText = Annotated[str, Meta(min_length=1, max_length=255)]
UserCodeText = Annotated[str, Meta(min_length=1, max_length=32)]


class OAuthRefused(Invalid):
    """The request failed with an error of RFC 6749 or RFC 8628; its code is that error."""


class NativeHeaders(
    msgspec.Struct, frozen=True,
    rename={"native_bundle_id": "X-Service-Native-Bundle-Id",
            "native_package_name": "X-Service-Native-Package-Name"}.get,
):  # fmt: skip
    """The native application that asks, where the body does not name it."""

    native_bundle_id: NativeText | None = None
    native_package_name: NativeText | None = None


class DeviceCodeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who asks to be signed in, and to which tenant."""

    tenant_id: TenantId | None = None
    client_id: ClientId | None = None
    native_bundle_id: NativeText | None = None
    native_package_name: NativeText | None = None


class DeviceTokenBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The device code again, with everything that it was issued to."""

    grant_type: Annotated[str, Meta(max_length=128)] | None = None
    device_code: Annotated[str, Meta(max_length=128)] | None = None
    client_id: ClientId | None = None
    native_bundle_id: NativeText | None = None
    native_package_name: NativeText | None = None

    def __repr__(self) -> str:
        return "DeviceTokenBody()"


class DeviceDecisionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The code that the device shows, in one of two spellings, and what to do with it."""

    action: Literal["approve", "deny"]
    user_code: UserCodeText | None = None
    user_code_camel: UserCodeText | None = msgspec.field(default=None, name="userCode")


class DeviceQuery(msgspec.Struct, frozen=True):
    """The code that the device shows."""

    user_code: UserCodeText


class DeviceCode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a device keeps and what it shows; it polls every `interval` seconds for at most `expires_in`."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: int
    interval: int
    client_id: str | None = None
    native_bundle_id: str | None = None
    native_package_name: str | None = None

    def __repr__(self) -> str:
        return "DeviceCode()"


class DeviceCodeAnswer(DeviceCode, frozen=True, kw_only=True, omit_defaults=True):
    """The same at the top level, where RFC 8628 looks for it, and under `data`."""

    ok: Literal[True]
    data: DeviceCode


class DeviceSession(SignedIn, frozen=True, kw_only=True):
    """A session, its tokens once more under the names of RFC 6749."""

    access_token: str = msgspec.field(name="access_token")
    token_type: Literal["Bearer"] = msgspec.field(name="token_type")
    oauth_refresh_token: str = msgspec.field(name="refresh_token")
    oauth_expires_in: int = msgspec.field(name="expires_in")


class DeviceSessionAnswer(DeviceSession, frozen=True, kw_only=True):
    """The same at the top level, where RFC 6749 looks for it, and under `data`."""

    ok: Literal[True]
    data: DeviceSession


class Asker(msgspec.Struct, frozen=True):
    """A tenant or an app client."""

    id: str
    name: str


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a device that shows a code asks for, and where it asked from."""

    user_code: str
    tenant: Asker
    client: Asker | None
    native_bundle_id: str | None
    native_package_name: str | None
    ip_address: str | None
    user_agent: str | None
    created_at: str
    expires_at: str


class DeviceDecision(msgspec.Struct, frozen=True, rename="camel"):
    """What became of a code."""

    user_code: str
    status: Literal["approved", "denied"]

"""Trying a tenant's identity provider before people depend on it."""

from typing import Annotated

import msgspec

from api.http.endpoint import Routes
from api.http.who import asking
from custody.kit.answers import Answered
from custody.kit.callers import SessionCaller
from custody.kit.described import described
from custody.kit.shapes import ProviderId
from custody.ports import Ports
from custody.protocol.identity.sign_on import SignOnTest, TestSignOn

routes = Routes("/tenants/<tenant_id>/sign-on", tag="Sign-on")


class SignOnTestBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The provider to test."""

    provider: Annotated[ProviderId, described("`saml`, or the id of an OIDC provider; it may still be switched off.")]


@routes.post("/test", who=asking(TestSignOn), private=True, shows_secret=True)
async def begin_sign_on_test(
    ports: Ports, caller: SessionCaller, tenant_id: str, body: SignOnTestBody
) -> Answered[SignOnTest]:
    """Make an address at which you try a provider in a browser.

    Sign in there as one of your people would. Nobody is signed in here: you see each check, what arrived, and which
    role it would give. The last result stands at the provider (`lastTest`).
    """
    return await ports.workers.ask(TestSignOn(body.provider), caller)

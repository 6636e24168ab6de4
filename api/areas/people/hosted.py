"""The page where people sign in for an app client: what it shows, and the code with which it sends them on.

Identity says what the app client lists and makes the code; names and colours are the tenant's, and only shown.
"""

from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from api.areas.tenants import store as tenants
from custody.identity.domains import SignOnMethod
from custody.identity.theme import Theme
from custody.kit.answers import Answered
from custody.kit.callers import Origin, SessionCaller
from custody.kit.described import described
from custody.kit.oauth_endpoints import OAuthName
from custody.kit.shapes import ClientId, TenantId
from custody.ports import Ports
from custody.protocol.identity.refusals import BadCodeChallenge
from custody.protocol.identity.sign_on import CodeGranted, GrantCode, LookAtSignIn

# Loose on purpose: what is wrong is said in a sentence, by identity.
Text = Annotated[str, msgspec.Meta(max_length=2048)]
_CHALLENGE = 128
_STATE = 1024


class HostedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The app client for which a person is to sign in, and where it waits."""

    tenant_id: Annotated[TenantId, described("The tenant.")]
    client_id: Annotated[ClientId, described("The app client.")]
    redirect_uri: Annotated[Text, described("The address for the code, from the list of the app client.")]


class HostedSignIn(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A sign-in for an app client, as the page shows it."""

    tenant_id: Annotated[str, described("The tenant.")]
    tenant_name: Annotated[str, described("Its name for people.")]
    client_name: Annotated[str, described("The app client's name.")]
    returns_to: Annotated[str, described("The origin of the redirect URL, where the person goes on.")]
    registers: Annotated[bool, described("True if people who come for the first time become members.")]
    theme: Annotated[Theme | None, described("Colours and fonts of the tenant's pages.")]
    oauth: Annotated[list[OAuthName], described("Providers of the deployment that this client offers.")]
    organisation: Annotated[list[SignOnMethod], described("The tenant's own identity providers, and where to begin.")]


class HostedCodeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """The app client of your tenant, the address for the code, and the challenge of its verifier (RFC 7636)."""

    client_id: Annotated[ClientId, described("The app client.")]
    redirect_uri: Annotated[Text, described("The address for the code, from the list of the app client.")]
    code_challenge: Annotated[Text, described("SHA-256 of the verifier in base64url, 43 characters.")]
    code_challenge_method: Annotated[Text, described("`S256`.")] = ""
    state: Annotated[Text, described("Sent back as it is: at most 512 printable ASCII characters.")] = ""


async def look(ports: Ports, origin: Origin, query: HostedQuery) -> HostedSignIn:
    """The app client and its tenant, as the page shows them before anybody signs in."""
    asked = await ports.workers.tell(
        LookAtSignIn(tenant=query.tenant_id, client=query.client_id, redirect_uri=query.redirect_uri), origin
    )
    config = await tenants.get_config(ports.pool, query.tenant_id, ports.presets)
    parts = urlsplit(query.redirect_uri)
    return HostedSignIn(
        tenant_id=query.tenant_id,
        tenant_name=config.display_name or (await tenants.get(ports.pool, query.tenant_id)).name,
        client_name=asked.name,
        returns_to=f"{parts.scheme}://{parts.netloc}",
        registers=asked.registers,
        theme=config.theme,
        oauth=sorted(name for name in ports.oauth_secrets if name not in asked.oauth_off),
        organisation=asked.methods,
    )


async def grant(ports: Ports, caller: SessionCaller, body: HostedCodeBody) -> Answered[CodeGranted]:
    """The app client's address, with a code."""
    if body.code_challenge_method != "S256":
        raise BadCodeChallenge
    message = GrantCode(
        client=body.client_id,
        redirect_uri=body.redirect_uri,
        code_challenge=body.code_challenge[:_CHALLENGE],
        state=body.state[:_STATE],
    )
    return await ports.workers.ask(message, caller)

"""Signing in at this service's own page for an app client, which gets a code."""

from typing import Final

from api.areas.people import hosted
from api.areas.people.hosted import HostedCodeBody, HostedQuery, HostedSignIn
from api.http import pages, sign_in_pages
from api.http.endpoint import Routes
from api.http.who import asking, public
from custody.kit.answer_kinds import Document
from custody.kit.answers import Answered
from custody.kit.callers import Origin, SessionCaller
from custody.ports import Ports
from custody.protocol.identity.sign_on import CodeGranted, GrantCode, LookAtSignIn

page = Routes("/sign-in", tag="Sign-in")
routes = Routes("/auth/sign-in", tag="Sign-in", hardened=False)
_PAGE: Final = sign_in_pages.compose("hosted", "")
ASSETS: Final = pages.assets("/hosted", pages.FOLDER / "hosted")


@page.get("", who=public, private=True, media="text/html")
async def show_sign_in_page() -> Document:
    """Show the page where a person signs in for an app client, which gets a code at its `redirect_uri`.

    Its address has `client_id` (`<tenantId>/<clientId>`), `redirect_uri`, `code_challenge`, `code_challenge_method`
    (`S256`) and `state`; the page reads them (docs/web-applications.md).
    """
    return Document(_PAGE, "text/html", pages.HEADERS)


@routes.get("", who=asking(LookAtSignIn), limit="discover", private=True)
async def get_hosted_sign_in(ports: Ports, origin: Origin, query: HostedQuery) -> HostedSignIn:
    """Get what the page `/sign-in` shows: names, colours and ways to sign in of an app client.

    A redirect URL that the client does not list is refused here, and nobody is sent there.
    """
    return await hosted.look(ports, origin, query)


@routes.post("/code", who=asking(GrantCode), limit="exchange", private=True, shows_secret=True)
async def create_sign_in_code(ports: Ports, caller: SessionCaller, body: HostedCodeBody) -> Answered[CodeGranted]:
    """Make a code for an app client of your tenant, which exchanges it for a session of yours in that tenant alone.

    `POST /auth/oauth/exchange` takes the code within a minute, once, with the verifier of the challenge.
    """
    return await hosted.grant(ports, caller, body)

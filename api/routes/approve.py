"""The page where a person decides what waits: HTML and no more, what it does it asks of other routes."""

from typing import Final

from api.http import pages, sign_in_pages
from api.http.endpoint import Routes
from api.http.who import public
from custody.kit.answer_kinds import Document

routes = Routes("/approve", tag="Approvals")
_PAGE: Final = sign_in_pages.compose("approve", "Before you decide")
_POLICY: Final = "Content-Security-Policy"
# It begins one worker, at an address that its script fixes, and can be put on a telephone's home screen.
HEADERS: Final = pages.HEADERS | {
    _POLICY: pages.HEADERS[_POLICY].replace("trusted-types 'none'", "trusted-types custody-worker; manifest-src 'self'")
}
ASSETS: Final = pages.assets("/approve", pages.FOLDER / "approve")


@routes.get("", who=public, private=True, media="text/html")
async def show_approve_page() -> Document:
    """Show the page where a person signs in, reads what waits, and approves or denies it."""
    return Document(_PAGE, "text/html", HEADERS)

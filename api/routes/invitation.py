"""The page where a person accepts an invitation: HTML and no more, what it does it asks of other routes."""

from typing import Final

from api.http import pages, sign_in_pages
from api.http.endpoint import Routes
from api.http.who import public
from custody.kit.answer_kinds import Document

routes = Routes("/invitation", tag="Invitations")
_PAGE: Final = sign_in_pages.compose("invitation", "Step 1 of 2")
ASSETS: Final = pages.assets("/invitation", pages.FOLDER / "invitation")


@routes.get("", who=public, private=True, media="text/html")
async def show_invitation_page() -> Document:
    """Show the page where a person signs in and accepts the invitation in the link's fragment."""
    return Document(_PAGE, "text/html", pages.HEADERS)

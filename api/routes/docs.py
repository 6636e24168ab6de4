"""The contract as a page for people. It holds nothing of its own: its script draws what `/openapi.json` says."""

from typing import Final

from api.http import pages
from api.http.endpoint import Routes
from api.http.who import public
from custody.kit.answer_kinds import Document

routes = Routes("/docs", tag="System")
_PAGE: Final = pages.page("docs")
ASSETS: Final = pages.assets("/docs", pages.FOLDER / "docs")


@routes.get("", who=public, media="text/html")
async def show_contract() -> Document:
    """Show this contract as a page."""
    return Document(_PAGE, "text/html", pages.HEADERS)

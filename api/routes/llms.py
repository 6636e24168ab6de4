"""One page that a model reads to use the service rightly; a test drives its steps."""

from typing import Final

from api.http import pages
from api.http.endpoint import Routes
from api.http.who import public
from custody.kit.answer_kinds import Document

routes = Routes("/llms.txt", tag="System")
_PAGE: Final = (pages.FOLDER / "llms" / "page.txt").read_text()


@routes.get("", who=public, media="text/plain")
async def show_llms_page() -> Document:
    """Show a model how to use the service: the rules for it, and requests that work as they stand."""
    return Document(_PAGE, "text/plain", pages.HEADERS)

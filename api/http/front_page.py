"""The page at `/` for browsers: where to go from here. Programs get there what they get at any path without a route."""

import html

from sanic import Request
from sanic.response import HTTPResponse

from api.http import browser_pages, pages
from custody.version import VERSION


class FrontPage:
    """The page of one deployment, written once."""

    def __init__(self, public_url: str) -> None:
        page = pages.page("front")
        self._page = page.replace("{{version}}", html.escape(VERSION)).replace("{{url}}", html.escape(public_url))

    def answer(self, request: Request) -> HTTPResponse | None:
        """The page, where a browser asks for what it shows at `/`."""
        if request.path != "/" or request.method not in {"GET", "HEAD"} or not browser_pages.asks_for_page(request):
            return None
        return HTTPResponse(self._page, 200, pages.HEADERS, "text/html; charset=utf-8")

"""Pages for people whom a sign-in sent here: what went wrong and whose turn it is, or what a try came to."""

import html
from typing import Final

from sanic import Request
from sanic.response import HTTPResponse

from api.http import pages
from api.http.errors import status_of
from custody.kit.errors import CustodyError

_PAGE: Final = pages.page("sign-on")


def asks_for_page(request: Request) -> bool:
    """Say whether the caller is a browser that shows what it gets. Programs name JSON, or anything at all."""
    return "text/html" in request.headers.get("accept", "").lower()


def refusal(problem: CustodyError, request_id: str, base: str) -> HTTPResponse:
    """A refusal as a page: its sentence, its code, and by which id the operator finds it."""
    said = (
        f'<p class="problem">{html.escape(problem.message)}</p>'
        f'<dl><dt>Code</dt><dd class="code">{html.escape(problem.code)}</dd>'
        f'<dt>Request id</dt><dd class="code">{html.escape(request_id)}</dd></dl>'
        '<p class="hint">Close this page and begin again where you wanted to sign in.</p>'
    )
    return response(page("You are not signed in", said, base), status_of(problem))


def response(page: str, status: int) -> HTTPResponse:
    """The answer with a page."""
    return HTTPResponse(page, status, headers=pages.HEADERS, content_type="text/html; charset=utf-8")


def page(title: str, body: str, base: str) -> str:
    """A page with a title, as text whatever it is, and a body of HTML; `base` is where the service is reached."""
    return (
        _PAGE.replace("{{title}}", html.escape(title)).replace("{{base}}", html.escape(base)).replace("{{body}}", body)
    )

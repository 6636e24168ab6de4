"""The page where a person lets a device in: HTML and no more, what it does it asks of other routes. Decisions 5."""

import html
from pathlib import Path
from typing import Any, Final

import msgspec
from sanic.response import HTTPResponse

from api.http.endpoint import Routes
from api.http.who import public

routes = Routes("/device", tag="Devices")
_FOLDER = Path(__file__).parents[1] / "pages" / "device"
_TYPES: Final = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
_PAGE: Final = (_FOLDER / "page.html").read_text()
# Nothing runs or is fetched but what this process serves; nobody may frame the page or keep a handle on its window.
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "publickey-credentials-get=(self)",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_SHOWN = 32
# What the page is made of, beside the contract: by path, its content and type.
ASSETS: Final = {
    f"/device/{name}": ((_FOLDER / name).read_bytes(), _TYPES[name.rpartition(".")[2]])
    for name in ("page.css", "page.js", "checksum.js")
}


class PageQuery(msgspec.Struct, frozen=True):
    """The code that the device put into the address; the person still has to compare it."""

    user_code: str = ""


@routes.get("", who=public, returns={200: str}, private=True, media="text/html")
async def page(query: PageQuery) -> Any:
    """Show the page where a person signs in and lets a device in, or turns it away."""
    return HTTPResponse(written(query.user_code), headers=_HEADERS, content_type="text/html; charset=utf-8")


def written(user_code: str) -> str:
    """The page with a code in its first field, as text whatever it is."""
    return _PAGE.replace("{{user_code}}", html.escape(user_code[:_SHOWN]))


def asset(path: str) -> HTTPResponse:
    """One of the files that the page is made of."""
    content, kind = ASSETS[path]
    return HTTPResponse(content, headers=_HEADERS, content_type=kind)

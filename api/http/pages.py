"""Pages for browsers: HTML, and the files beside it, held in memory and served with what keeps strangers' code out."""

from pathlib import Path
from typing import Final

from sanic.response import HTTPResponse

FOLDER: Final = Path(__file__).parents[1] / "pages"
_HEAD: Final = (FOLDER / "head.html").read_text().strip()
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
}
# Nothing runs or is fetched but what this process serves; nobody may frame the page or keep a handle on its window.
HEADERS: Final = {
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
# Each asset is a small file: its bytes and its content type.
Assets = dict[str, tuple[bytes, str]]


def page(name: str) -> str:
    """The HTML of a page, with the head that all begin with."""
    return (FOLDER / name / "page.html").read_text().replace("{{head}}", _HEAD)


def assets(prefix: str, folder: Path) -> Assets:
    """The files of a page by the path at which each is served: everything in its folder but the HTML."""
    return {
        f"{prefix}/{file.name}": (file.read_bytes(), _TYPES[file.suffix[1:]])
        for file in sorted(folder.iterdir())
        if file.suffix[1:] in _TYPES
    }


def asset(found: tuple[bytes, str]) -> HTTPResponse:
    """The answer with one of them."""
    content, kind = found
    return HTTPResponse(content, headers=HEADERS, content_type=kind)

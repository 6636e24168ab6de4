"""The contract of a handler's return type, and the response that its answer becomes."""

import typing
from collections.abc import Iterator
from types import UnionType
from typing import Any, Never, NoReturn, TypeAliasType

from msgspec import UNSET
from sanic.response import HTTPResponse

from api.http import browser_pages, envelope
from custody.kit.answer_kinds import (
    Cookie,
    Created,
    Declined,
    Deferred,
    Document,
    Metered,
    NotReady,
    Page,
    Recorded,
    Redirect,
    Streamed,
    Throttled,
)
from custody.kit.answers import Answered
from custody.kit.cursors import NEXT_CURSOR
from custody.kit.paging import Listed, Total, offset_headers, total_headers

# Where a browser was sent is nobody else's: the address may have a code in it.
PRIVATE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
# A plain answer has the status that its route declares.
STATUS: dict[Any, int] = {Created: 201, Deferred: 202, Declined: 403, Throttled: 429, NotReady: 503}


def returned_by(hint: Any, usual: int) -> dict[int, Any]:
    """The type of `data` by status, as a handler's annotation says it; the usual status comes first."""
    found: dict[int, Any] = {}
    kinds = list(_kinds(hint))
    for kind in kinds:
        origin = typing.get_origin(kind) or kind
        if origin is Document and len(kinds) > 1:
            # The same in another form: `media_too` says which.
            continue
        if origin is Page:
            found[200] = str
            continue
        if origin in STATUS:
            status, data = STATUS[origin], typing.get_args(kind)[0]
        elif origin is Metered:
            status, data = usual, typing.get_args(kind)[0]
        elif origin is Listed:
            status, data = usual, list[typing.get_args(kind)]  # type: ignore[misc]
        else:
            status, data = usual, str if origin in (Document, Streamed) else kind
        if data is Any:
            raise TypeError("a handler says what it returns")
        found[status] = found[status] | data if status in found else data
    return found


def is_page(hint: Any) -> bool:
    """Say whether a handler answers a page of rows."""
    return any(typing.get_origin(kind) is Listed for kind in _kinds(hint))


def _kinds(hint: Any) -> Iterator[Any]:
    """The kinds of answer that a return type allows: each part of its unions and of its type aliases."""
    origin = typing.get_origin(hint)
    if hint in (Never, NoReturn):
        return
    if origin is Answered:
        yield from _kinds(typing.get_args(hint)[0])
    elif origin in (typing.Union, UnionType):
        for part in typing.get_args(hint):
            yield from _kinds(part)
    elif isinstance(origin, TypeAliasType):
        yield from _kinds(origin.__value__[typing.get_args(hint)])
    elif isinstance(hint, TypeAliasType):
        yield from _kinds(hint.__value__)
    else:
        yield hint


def response_of(answer: object, *, status: int, raw: bool, public_url: str, offset: int | None = None) -> HTTPResponse:
    """The response to an answer; one that is of no kind of its own is the data of a success.

    `public_url`: where browsers reach the service. `offset`: that of the request, of a list without cursors.
    """
    match answer:
        case Recorded():
            return envelope.outcome(STATUS[type(answer)], answer)
        case Created():
            return envelope.success(STATUS[Created], answer.data)
        case Metered():
            response = envelope.success(status, answer.data)
            if answer.limit is not None:
                response.headers.update(envelope.rate_limit_headers(answer.limit, answer.remaining, answer.seconds))
        case Document():
            media = f"{answer.media}; charset=utf-8"
            named = {"Content-Disposition": f'attachment; filename="{answer.name}"'} if answer.name else {}
            return HTTPResponse(answer.content, 200, headers=answer.headers | named, content_type=media)
        case Redirect():
            response = HTTPResponse(b"", status, headers={"Location": answer.location, **PRIVATE})
            if answer.cookie is not None:
                response.headers["Set-Cookie"] = _cookie(answer.cookie, secure=public_url.startswith("https:"))
        case Page():
            response = browser_pages.response(browser_pages.page(answer.title, answer.body, public_url), 200)
        case Listed():
            beside: dict[str, object] = {} if answer.next_cursor is UNSET else {"nextCursor": answer.next_cursor}
            beside |= {"totalIsEstimate": True} if answer.total_is_estimate else {}
            response = envelope.success(200, answer.rows, **beside)
            response.headers.update(total_headers(Total(answer.total, answer.total_is_estimate)))
        case _:
            response = envelope.raw(status, answer) if raw else envelope.success(status, answer)
    if onwards := getattr(answer, "next_cursor", None):
        response.headers[NEXT_CURSOR] = onwards
    if offset is not None and (page_of := getattr(answer, "page_of", None)):
        response.headers.update(offset_headers(offset, *page_of))
    return response


def cookie_name(name: str, *, secure: bool) -> str:
    """Name one of our cookies as browsers know it. The prefix keeps out what another host of the same site sets."""
    return f"__Host-{name}" if secure else name


def _cookie(cookie: Cookie, *, secure: bool) -> str:
    """On loopback without TLS browsers keep no secure cookie, nor send one that is not to another site's page."""
    site = "None" if cookie.cross_site and secure else "Lax"
    ends = f"; Max-Age={cookie.seconds}; Path=/; HttpOnly; SameSite={site}" + ("; Secure" if secure else "")
    return f"{cookie_name(cookie.name, secure=secure)}={cookie.value}{ends}"

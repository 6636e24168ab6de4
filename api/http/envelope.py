"""`{ok, data, error}`: the only shape an answer has."""

from typing import Any

import msgspec
from sanic.response import HTTPResponse

from api.areas.people.device_types import OAuthRefused
from api.http.errors import status_of
from api.http.response import Response
from custody.kit.answer_kinds import Recorded, Throttled
from custody.kit.errors import CustodyError, Invalid

_encode = msgspec.json.Encoder(enc_hook=str).encode
JSON = "application/json"


def success(status: int, data: Any, **beside: Any) -> HTTPResponse:
    """A success; `beside` stands next to the data."""
    return Response(_encode({"ok": True, "data": data, **beside}), status, content_type=JSON)


def raw(status: int, document: Any) -> HTTPResponse:
    """A document whose shape another standard fixes (OpenAPI, JWKS)."""
    return Response(_encode(document), status, content_type=JSON)


def outcome(status: int, answer: Recorded[Any]) -> HTTPResponse:
    """An outcome that is no success, such as a queued or refused order."""
    body = _encode({"ok": False, "error": answer.error, "data": answer.data})
    response = Response(body, status, content_type=JSON)
    if answer.retry_after is not None:
        response.headers["Retry-After"] = str(answer.retry_after)
    if isinstance(answer, Throttled) and answer.limit is not None:
        # Of the rule that refused: the headers of the general limit would say that there is room.
        response.headers.update(full(answer.limit, answer.retry_after or 1))
    return response


def limit_headers(amount: int, remaining: int, seconds: int) -> dict[str, str]:
    """The headers that say what is left of a limit."""
    return {
        "RateLimit-Limit": str(amount),
        "RateLimit-Remaining": str(remaining),
        "RateLimit-Reset": str(seconds),
    }


def full(amount: int, seconds: int) -> dict[str, str]:
    """The headers of a limit with nothing left, in the legacy spelling too: each costs as much as a small query."""
    return rate_limit_headers(amount, 0, seconds)


def rate_limit_headers(amount: int, remaining: int, seconds: int) -> dict[str, str]:
    """The headers that say what is left of a limit, in both spellings."""
    headers = limit_headers(amount, remaining, seconds)
    return headers | {f"X-{name}": text for name, text in headers.items()}


def failure(problem: CustodyError, request_id: str) -> HTTPResponse:
    """A known error."""
    status = status_of(problem)
    data = {"code": problem.code, **problem.context}
    response = Response(_encode({"ok": False, "error": problem.message, "data": data}), status, content_type=JSON)
    if (seconds := getattr(problem, "retry_after", None)) is not None:
        response.headers["Retry-After"] = str(seconds)
    if allow := problem.context.get("allow"):
        response.headers["Allow"] = ", ".join(allow)
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def oauth_error(problem: Invalid) -> HTTPResponse:
    """A bad request as RFC 6749 5.2 has it: `error` is the word for programs. Only routes that declare `oauth`."""
    error = problem.code if isinstance(problem, OAuthRefused) else "invalid_request"
    body: dict[str, Any] = {"ok": False, "error": error, "error_description": problem.message}
    if "interval" in problem.context:
        body["interval"] = problem.context["interval"]
    return Response(
        _encode(body | {"data": {"code": problem.code, **problem.context}}), status_of(problem), content_type=JSON
    )


def internal_error(request_id: str) -> HTTPResponse:
    """Internal error: no detail, only the id to look for in the logs."""
    body = {
        "ok": False,
        "error": "Internal error; the operator can find the cause by the request id.",
        "data": {"code": "internal", "requestId": request_id},
    }
    return Response(_encode(body), 500, content_type=JSON)

"""`{ok, data, error}`: the only shape an answer has. Spec 1/2.1."""

from typing import Any

import msgspec
from sanic.response import HTTPResponse

from api.http.errors import status_of
from custody.kit.answers import Outcome
from custody.kit.errors import CustodyError, Invalid
from custody.people.device_types import OAuthRefused

_encode = msgspec.json.Encoder(enc_hook=str).encode
JSON = "application/json"


def succeeded(status: int, data: Any) -> HTTPResponse:
    """A success."""
    return HTTPResponse(_encode({"ok": True, "data": data}), status, content_type=JSON)


def raw(status: int, document: Any) -> HTTPResponse:
    """A document whose shape another standard fixes (OpenAPI, JWKS)."""
    return HTTPResponse(_encode(document), status, content_type=JSON)


def answered(answer: Outcome) -> HTTPResponse:
    """An outcome that is not plain success, such as a queued or refused order."""
    if answer.error is None:
        response = succeeded(answer.status, answer.data)
    else:
        response = HTTPResponse(
            _encode({"ok": False, "error": answer.error, "data": answer.data}), answer.status, content_type=JSON
        )
    response.headers.update(answer.headers)
    return response


def failed(problem: CustodyError, request_id: str) -> HTTPResponse:
    """A known error."""
    status = status_of(problem)
    data = {"code": problem.code, **problem.context}
    response = HTTPResponse(_encode({"ok": False, "error": problem.message, "data": data}), status, content_type=JSON)
    if (seconds := getattr(problem, "retry_after", None)) is not None:
        response.headers["Retry-After"] = str(seconds)
    if allow := problem.context.get("allow"):
        response.headers["Allow"] = ", ".join(allow)
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def refused(problem: Invalid) -> HTTPResponse:
    """A bad request as RFC 6749 5.2 has it: `error` is the word for programs. Only routes that declare `oauth`."""
    error = problem.code if isinstance(problem, OAuthRefused) else "invalid_request"
    body: dict[str, Any] = {"ok": False, "error": error, "error_description": problem.message}
    if "interval" in problem.context:
        body["interval"] = problem.context["interval"]
    return HTTPResponse(
        _encode(body | {"data": {"code": problem.code, **problem.context}}), status_of(problem), content_type=JSON
    )


def faulted(request_id: str) -> HTTPResponse:
    """A fault of ours: no detail, only the id to look for in the logs."""
    body = {
        "ok": False,
        "error": "Something went wrong on our side.",
        "data": {"code": "internal", "requestId": request_id},
    }
    return HTTPResponse(_encode(body), 500, content_type=JSON)

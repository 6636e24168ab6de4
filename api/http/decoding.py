"""Strict decoding of bodies and queries: unknown fields, duplicate keys and wrong types are named. Decisions 1."""

import json  # noqa: TID251 - only it shows duplicate keys
from typing import Any

import msgspec
from sanic import Request

from api.http.endpoint import Endpoint
from api.http.errors import BodyTooLarge, WrongContentType
from custody.kit.errors import Invalid

MAX_BODY = 1024 * 1024
MAX_DEPTH = 64


class BadBody(Invalid):
    """The body is not what this route takes."""


class BadQuery(Invalid):
    """A query parameter is not what this route takes."""


def body_of(request: Request, endpoint: Endpoint) -> Any:
    """The decoded body; an empty one is `{}`."""
    content = request.body
    if len(content) > MAX_BODY:
        raise BodyTooLarge
    if not content:
        content = b"{}"
    elif request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise WrongContentType
    _refuse_duplicates(content)
    if endpoint.lenient is not None:
        _refuse_retired(content, endpoint.lenient)
    try:
        return msgspec.json.decode(content, type=endpoint.body)
    except msgspec.ValidationError as problem:
        raise BadBody(_sentence(problem), fields=_fields(problem)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadBody("The body is not valid JSON.", code="malformed_json") from None


def query_of(request: Request, endpoint: Endpoint) -> Any:
    """The query as the route declares it; parameters it does not know are ignored."""
    known = {field.encode_name: field for field in msgspec.structs.fields(endpoint.query)}
    given: dict[str, str] = {}
    for name, values in request.get_args(keep_blank_values=True).items():
        if name in known:
            if len(values) > 1:
                raise BadQuery(f"{name} is given more than once.", fields=[name])
            given[name] = values[0]
    try:
        return msgspec.convert(given, endpoint.query, strict=False)
    except msgspec.ValidationError as problem:
        raise BadQuery(_sentence(problem), fields=_fields(problem)) from None


def _refuse_duplicates(content: bytes) -> None:
    # Two values for one key: which one is judged, and which one is meant? (The decoder keeps the last.)
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            seen: set[str] = set()
            twice = next(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise BadBody(f"The key {twice!r} is given twice.", code="duplicate_key", fields=[twice[:128]])
        return found

    try:
        json.loads(content, object_pairs_hook=pairs, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise BadBody("The body is not valid JSON.", code="malformed_json") from None


def _refuse_constant(_name: str) -> None:
    raise ValueError


def _refuse_retired(content: bytes, gone: type[Exception]) -> None:
    """A retired field is 410 with any value, before strict decoding (decisions 1)."""
    try:
        document = msgspec.json.decode(content)
    except msgspec.DecodeError:
        return
    if isinstance(document, dict) and "defaultPolicies" in document:
        raise gone


def _sentence(problem: msgspec.ValidationError) -> str:
    text = str(problem)
    message, separator, path = text.partition(" - at `$")
    if not separator:
        return f"{message}."
    return f"{path.rstrip('`').lstrip('.') or 'The body'}: {message}."


def _fields(problem: msgspec.ValidationError) -> list[str]:
    text = str(problem)
    if "unknown field `" in text:
        return [text.split("unknown field `", 1)[1].split("`", 1)[0]]
    if "missing required field `" in text:
        return [text.split("missing required field `", 1)[1].split("`", 1)[0]]
    path = text.partition(" - at `$")[2].rstrip("`").lstrip(".")
    return [path] if path else []

"""Strict decoding of bodies and queries: unknown fields, duplicate keys and wrong types are named. Decisions 1."""

import json  # noqa: TID251 - only it shows duplicate keys
import re
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


class BadHeader(Invalid):
    """A header is not what this route takes."""


def body_of(request: Request, endpoint: Endpoint) -> Any:
    """The decoded body; an empty one is `{}`."""
    content = request.body
    if len(content) > MAX_BODY:
        raise BodyTooLarge
    if not content:
        content = b"{}"
    elif request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise WrongContentType
    _look_through(content)
    if endpoint.lenient is not None:
        _refuse_retired(content, endpoint.lenient)
    try:
        if endpoint.oauth:
            return msgspec.convert(_respelled(content, endpoint.body), endpoint.body)
        return msgspec.json.decode(content, type=endpoint.body)
    except msgspec.ValidationError as problem:
        raise BadBody(_sentence(problem), fields=_fields(problem)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadBody("The body is not valid JSON.", code="malformed_json") from None


def query_of(request: Request, endpoint: Endpoint) -> Any:
    """The query as the route declares it; parameters it does not know are ignored.

    A field whose name ends with a dot takes every parameter whose name begins so.
    """
    known = {field.encode_name for field in msgspec.structs.fields(endpoint.query)}
    given: dict[str, Any] = {}
    for name, values in request.get_args(keep_blank_values=True).items():
        if name in known and not name.endswith("."):
            if len(values) > 1:
                raise BadQuery(f"{name} is given more than once.", fields=[name])
            given[name] = values[0]
        elif (family := name[: name.find(".") + 1]) in known:
            if len(values) > 1:
                raise BadQuery(f"{name[:128]} is given more than once.", fields=[name[:128]])
            given.setdefault(family, {})[name.removeprefix(family)] = values[0]
    try:
        return msgspec.convert(given, endpoint.query, strict=False)
    except msgspec.ValidationError as problem:
        raise BadQuery(_sentence(problem), fields=_fields(problem)) from None


def headers_of(request: Request, endpoint: Endpoint) -> Any:
    """The headers that the route declares, each at most once."""
    given: dict[str, str] = {}
    for field in msgspec.structs.fields(endpoint.headers):
        values = request.headers.getall(field.encode_name, [])
        if len(values) > 1:
            raise BadHeader(f"{field.encode_name} is given more than once.", fields=[field.encode_name])
        if values:
            given[field.encode_name] = values[0]
    try:
        return msgspec.convert(given, endpoint.headers)
    except msgspec.ValidationError as problem:
        raise BadHeader(_sentence(problem), fields=_fields(problem)) from None


def _respelled(content: bytes, shape: Any) -> Any:
    """The body with fields in snake case, whichever of the two spellings each had."""
    document = msgspec.json.decode(content)
    if not isinstance(document, dict):
        return document
    for snake in shape.__struct_fields__:
        camel = re.sub(r"_(.)", lambda found: found[1].upper(), snake)
        if camel != snake and camel in document:
            if snake in document:
                raise BadBody(f"The key {snake!r} is given in both spellings.", code="duplicate_key", fields=[snake])
            document[snake] = document.pop(camel)
    return document


def _look_through(content: bytes) -> None:
    """What the typed decoder lets pass: a key given twice, numbers and nesting that the signer's frames cannot hold."""

    # Two values for one key: which one is judged, and which one is meant? (The decoder keeps the last.)
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) != len(items):
            seen: set[str] = set()
            twice = next(key for key, _ in items if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise BadBody(f"The key {twice!r} is given twice.", code="duplicate_key", fields=[twice[:128]])
        return found

    try:
        document = json.loads(content, object_pairs_hook=pairs, parse_int=_whole, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise BadBody("The body is not valid JSON.", code="malformed_json") from None

    if content.count(b"{") + content.count(b"[") > MAX_DEPTH:
        _refuse_deep(document)


def _whole(digits: str) -> int:
    number = int(digits)
    if not -(2**63) <= number < 2**64:
        # Many parsers would round it, so it could mean something else to whoever looks at it.
        raise BadBody("A number is larger than 64 bits; send it as a decimal string.", code="number_out_of_range")
    return number


def _refuse_deep(document: Any) -> None:
    level = [document]
    for _ in range(MAX_DEPTH):
        level = [
            part
            for item in level
            if isinstance(item, dict | list)
            for part in (item.values() if isinstance(item, dict) else item)
        ]
    if level:
        raise BadBody(f"The body is nested deeper than {MAX_DEPTH} levels.", code="nested_too_deeply")


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

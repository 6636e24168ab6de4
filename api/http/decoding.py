"""Strict decoding of bodies and queries: unknown fields, duplicate keys and wrong types are named.

What stands here runs on the loop that serves everybody: it takes time in proportion to the body, whose size was
bounded when it was received (`bodies.py`), and our code sees single values only of bodies that decode.
"""

import functools
import re
from typing import Any

import msgspec
from sanic import Request

from api.http import forms
from api.http.answers import cookie_name
from api.http.endpoint import Endpoint
from api.http.envelope import JSON
from api.http.errors import WrongContentType
from api.http.negotiation import preference
from api.http.present import present, sentence_of
from custody.kit.errors import Invalid
from custody.kit.json_bodies import BadBody, decode_as, look_through
from custody.kit.validation import explain
from custody.policies.rules import invalid_rule
from custody.policies.types import InvalidPolicy


class NoFields(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a change that takes none: nothing that a caller says may be lost without a word."""


class BadQuery(Invalid):
    """A query parameter does not match the schema of this route."""


class BadCookie(Invalid):
    """A cookie of this service came more than once; close other tabs of it, and begin again."""


class BadHeader(Invalid):
    """A header does not match the schema of this route."""


def body_of(request: Request, endpoint: Endpoint) -> Any:
    """The decoded body; an empty one is `{}`. The type is decoded first: most of what is wrong ends there."""
    content, shape = request.body, endpoint.body or NoFields
    media = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if not content:
        content = b"{}"
    elif (endpoint.form_too or endpoint.form_only) and media == forms.MEDIA:
        return _form(content, endpoint)
    elif endpoint.form_only:
        raise WrongContentType(f"Send a form, with Content-Type: {forms.MEDIA}.")
    elif media != JSON:
        message = f"Send JSON or a form, with Content-Type: {JSON} or {forms.MEDIA}."
        raise WrongContentType(message if endpoint.form_too else None)
    if endpoint.lenient is not None:
        _refuse_retired(content, endpoint.lenient)
    try:
        if endpoint.oauth or endpoint.both_spellings:
            decoded = msgspec.convert(_respell(msgspec.json.decode(content), shape), shape)
        else:
            decoded = decode_as(content, shape)
        look_through(content)
    except msgspec.ValidationError as problem:
        wrong = explain(problem, shape)
        # A rule that does not decode is refused as one that the signer cannot read.
        rule = invalid_rule(problem, wrong.says) if InvalidPolicy in endpoint.refuses else None
        raise rule or BadBody(wrong.sentence("The body"), fields=wrong.fields) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadBody("The body is not valid JSON.", code="malformed_json") from None
    return decoded


def _form(content: bytes, endpoint: Endpoint) -> Any:
    """A form, whose fields are texts."""
    fields = forms.fields_of(content)
    try:
        return msgspec.convert(_respell(fields, endpoint.body) if endpoint.oauth else fields, endpoint.body)
    except msgspec.ValidationError as problem:
        wrong = explain(problem, endpoint.body)
        raise BadBody(wrong.sentence("The form"), fields=wrong.fields) from None


def query_of(request: Request, endpoint: Endpoint) -> Any:
    """The query as the route declares it; parameters it does not know are ignored.

    A field whose name ends with a dot takes every parameter whose name begins so.
    """
    known = _names_of(endpoint.query)
    given: dict[str, Any] = {}
    for name, values in request.get_args(keep_blank_values=True).items():
        if name in known and not name.endswith("."):
            if len(values) > 1:
                raise BadQuery(f"{name} is given more than once; send it once.", fields=[name])
            given[name] = values[0]
        elif (family := name[: name.find(".") + 1]) in known:
            if len(values) > 1:
                raise BadQuery(f"{name[:128]} is given more than once; send it once.", fields=[name[:128]])
            given.setdefault(family, {})[name.removeprefix(family)] = values[0]
    if "format" in known and "format" not in given:
        asked_for = preference(endpoint, request.headers.get("accept", ""))
        given |= {"format": asked_for} if asked_for else {}
    try:
        return msgspec.convert(given, present(endpoint.query), strict=False)
    except msgspec.ValidationError as problem:
        wrong = explain(problem, endpoint.query)
        name = "".join(wrong.fields)
        sentence = sentence_of(endpoint.query, name, given.get(name), wrong.sentence("The query"))
        raise BadQuery(sentence, fields=wrong.fields) from None


def headers_of(request: Request, endpoint: Endpoint) -> Any:
    """The headers that the route declares, each at most once."""
    given: dict[str, str] = {}
    for name in _names_of(endpoint.headers):
        values = request.headers.getall(name, [])
        if len(values) > 1:
            raise BadHeader(f"{name} is given more than once; send it once.", fields=[name])
        if values:
            given[name] = values[0]
    try:
        return msgspec.convert(given, endpoint.headers)
    except msgspec.ValidationError as problem:
        wrong = explain(problem, endpoint.headers)
        raise BadHeader(wrong.sentence("The request"), fields=wrong.fields) from None


def cookies_of(request: Request, endpoint: Endpoint, *, secure: bool) -> Any:
    """The cookies that the route declares, each at most once; empty where one did not come."""
    sent: dict[str, str] = {}
    wanted = {cookie_name(name, secure=secure): name for name in _names_of(endpoint.cookies)}
    for header in request.headers.getall("cookie", []):
        for pair in header.split(";"):
            name, _, value = pair.strip().partition("=")
            if name not in wanted:
                continue
            if wanted[name] in sent:
                raise BadCookie
            sent[wanted[name]] = value
    return msgspec.convert(sent, endpoint.cookies)


@functools.cache
def _names_of(shape: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields of a query or of headers, as they are sent; looking up their types takes as long as a small query."""
    return tuple(field.encode_name for field in msgspec.structs.fields(shape))


def _respell(document: Any, shape: Any) -> Any:
    """The body with fields in snake case, whichever of the two spellings each had."""
    if not isinstance(document, dict):
        return document
    for snake in shape.__struct_fields__:
        camel = re.sub(r"_(.)", lambda found: found[1].upper(), snake)
        if camel != snake and camel in document:
            if snake in document:
                raise BadBody(
                    f"The key {snake!r} is given in both spellings; send one of them.",
                    code="duplicate_key",
                    fields=[snake],
                )
            document[snake] = document.pop(camel)
    return document


def _refuse_retired(content: bytes, gone: type[Exception]) -> None:
    """A retired field is 410 with any value, before strict decoding."""
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if isinstance(document, dict) and "defaultPolicies" in document:
        raise gone

"""The contract, made from the endpoint table. OpenAPI 3.1 takes msgspec's JSON Schema; its parts are in `contract/`."""

import functools
import re
import typing
from typing import Any

import msgspec

from api.http import forms
from api.http.contract import events, examples, texts
from api.http.contract.codes import COMMON, codes_of, error_codes
from api.http.contract.headers import (
    AUTHORIZING_PARAMETERS,
    HEADERS,
    PARAMETERS,
    SIGNED,
    headers_of,
    parameters_of,
    refused_headers,
)
from api.http.contract.plain import plain
from api.http.contract.schemas import OAUTH_ERROR, REF, Schemas, said_of, same_again, same_as
from api.http.endpoint import PATH_SHAPES, SPELLED, Endpoint
from custody.kit.answer_kinds import Redirect
from custody.kit.cursors import NextCursor
from custody.kit.paging import TotalIsEstimate
from custody.version import VERSION

# Where the contract is served, its form for generators that take two spellings for one name, and what we send.
CONTRACT, PLAIN, EVENTS = "/openapi.json", "/openapi-plain.json", "/webhooks.json"

SCHEMES: dict[str, dict[str, str]] = {
    "tenant_key": {"type": "apiKey", "in": "header", "name": "X-Service-Key", "description": "A tenant's API key."},
    "agent_token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "An agent's token."},
    "platform_key": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Service-Platform-Key",
        "description": "The operator's key.",
    },
    "session": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A person's access token; x-service-roles lists the roles that may call, x-service-mfa the "
        "action that requires a recent second factor.",
    },
    "app_client": {
        "type": "http",
        "scheme": "basic",
        "description": "An app client: its app id (repeated in X-Service-App-Id) and its secret.",
    },
}
# Beside a session, where a route needs both.
AGENT_BESIDE = "agent_token_beside"
SCHEMES[AGENT_BESIDE] = {
    "type": "apiKey",
    "in": "header",
    "name": "X-Service-Agent-Token",
    "description": "The token of the agent in the path, beside a session.",
}
# In JSON also where a browser asks for a page: its request was not read to the end, or nobody knows what failed.
_NEVER_PAGES = {431, 500}
# What a bad request is answered with: its errors are kinds of Invalid.
_OF_BAD_REQUESTS = {400, 408, 413, 415}
_ERROR = {"$ref": REF.format(name="Error")}
_TEXTS = {
    200: "Done",
    201: "Created",
    202: "Queued for approval",
    302: "The browser is sent to the identity provider",
    303: "The browser is sent back",
    304: "Not changed since the answer with this `ETag`",
    400: "The request is not valid",
    401: "Authentication required",
    403: "Refused",
    404: "Not found",
    405: "Wrong method",
    408: "The body arrived too slowly",
    409: "Conflict",
    410: "Retired",
    413: "The body is too large",
    415: "Wrong content type",
    423: "Frozen",
    429: "Too many requests",
    431: "The address or the headers are too long",
    500: "Internal error",
    502: "A blockchain node failed",
    503: "Temporarily unavailable",
}


def document(endpoints: list[Endpoint], public_url: str) -> dict[str, Any]:
    """The contract: all that is taken and answered, in every spelling."""
    sent = [endpoint.body for endpoint in endpoints if endpoint.body is not None]
    returned = [kind for endpoint in endpoints for kind in endpoint.returns.values() if kind not in (None, Redirect)]
    schemas = Schemas(sent, returned, [one.body for one in endpoints if one.oauth or one.both_spellings])
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.contract_path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    paths |= {path: {"get": _self(path)} for path in (CONTRACT, PLAIN, EVENTS)}
    made = {
        "openapi": "3.1.0",
        "info": {
            "title": "Custody",
            "version": VERSION,
            "summary": "Lets agents spend money and call APIs without holding a key.",
            "description": texts.DESCRIPTION,
            "license": texts.LICENSE,
        },
        "servers": [{"url": public_url}],
        "tags": [{"name": name, "description": text} for name, text in texts.TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": {**schemas.components, "ErrorCode": error_codes(endpoints)},
            "responses": _common_responses(),
            "headers": HEADERS,
            "parameters": PARAMETERS | AUTHORIZING_PARAMETERS,
            "securitySchemes": SCHEMES,
        },
    }
    examples.put_into(made)
    return made


def documents(endpoints: list[Endpoint], public_url: str) -> dict[str, dict[str, Any]]:
    """All that is served of it, by path."""
    whole = document(endpoints, public_url)
    return {CONTRACT: whole, PLAIN: plain(whole), EVENTS: events_document()}


def events_document() -> dict[str, Any]:
    """The contract of webhook events. Apart: some generators write it over the routes of the same group."""
    schemas = Schemas([], events.PAYLOADS)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Custody's webhooks",
            "version": VERSION,
            "summary": "What endpoints are sent.",
            "description": texts.EVENTS,
            "license": texts.LICENSE,
        },
        "tags": [{"name": "Webhooks", "description": texts.TAGS["Webhooks"]}],
        "webhooks": events.webhooks(schemas),
        "components": {"schemas": {name: one for name, one in schemas.components.items() if name != "Error"}},
    }


def _self(path: str) -> dict[str, Any]:
    name, summary, description = texts.SELF[path]
    return {
        "operationId": name,
        "summary": summary,
        "description": description,
        "tags": ["System"],
        "security": [],
        "responses": {
            "200": {"description": _TEXTS[200], **_json({"type": "object"})},
            "304": {"description": _TEXTS[304]},
            "429": {"$ref": f"#/components/responses/{_common_name(429)}"},
        },
    }


def operation_id(endpoint: Endpoint) -> str:
    """The name of the handler, in camel case; of a handler that is mounted twice, with the version of the second."""
    name = re.sub(r"_(.)", lambda found: found[1].upper(), endpoint.handler.__name__)
    return f"{name}V1" if endpoint.path.startswith("/v1/") else name


def _operation(endpoint: Endpoint, schemas: Schemas) -> dict[str, Any]:
    beside: dict[str, list[str]] = {AGENT_BESIDE: []} if endpoint.who.agent_beside else {}
    operation: dict[str, Any] = {
        "operationId": operation_id(endpoint),
        "summary": endpoint.summary,
        "description": endpoint.description or endpoint.summary,
        "tags": [endpoint.tag],
        "security": [{kind: [], **beside} for kind in sorted(endpoint.who.kinds - {"public"})],
        "parameters": _parameters(endpoint, schemas),
        "responses": _responses(endpoint, schemas),
    }
    if 410 in endpoint.returns:
        operation["deprecated"] = True
    if endpoint.body is not None:
        body = _json(schemas.of(endpoint.body))
        if endpoint.form_too or endpoint.form_only:
            body["content"][forms.MEDIA] = body["content"]["application/json"]
        if endpoint.form_only:
            del body["content"]["application/json"]
        operation["requestBody"] = {
            "required": _needs_body(endpoint),
            **body,
            "x-service-max-bytes": endpoint.max_body,
        }
    if endpoint.hardened:
        operation["x-service-hardening"] = {
            "headers": SIGNED,
            "requiredByDeployment": True,
            "signatureRequiredByDeployment": not endpoint.unsigned,
        }
    if endpoint.who.roles:
        operation["x-service-roles"] = sorted(endpoint.who.roles)
    if endpoint.who.action:
        operation["x-service-mfa"] = endpoint.who.action
    if scope := endpoint.who.scope:
        operation["x-service-scope"] = scope
    return operation


def _needs_body(endpoint: Endpoint) -> bool:
    if not isinstance(endpoint.body, type):
        return True
    return any(field.required for field in msgspec.structs.fields(endpoint.body))


def _parameters(endpoint: Endpoint, schemas: Schemas) -> list[dict[str, Any]]:
    parameters = [
        _parameter(SPELLED.get(name, name), "path", _schema_in_path(name), required=True)
        for name in endpoint.path_names
    ]
    for place, struct in (("query", endpoint.query), ("header", endpoint.headers), ("cookie", endpoint.cookies)):
        if struct is None:
            continue
        required = {field.encode_name for field in msgspec.structs.fields(struct) if field.required}
        shapes = schemas.fields(struct)
        made = {
            name: _open_parameter(name)
            if name.endswith(".")
            else _parameter(name, place, _present(shape), required=name in required)
            for name, shape in shapes.items()
        }
        for name, taught in (same_as(made) | said_of(struct).same).items():
            made[name] = same_again(made[name], taught, made[taught])
        parameters += made.values()
    return parameters + parameters_of(endpoint)


@functools.cache
def _schema_in_path(name: str) -> dict[str, Any]:
    found: dict[str, Any] = Schemas([shape := PATH_SHAPES[name]], []).of(shape)
    return found


def _parameter(name: str, place: str, schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    text = schema.get("description", "")
    shape = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": place, "required": required, "description": text, "schema": shape}


def _open_parameter(name: str) -> dict[str, Any]:
    """Every parameter that begins so: an object whose members are parameters of their own."""
    shape = {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 256}}
    described = f"Parameters whose names begin with `{name}`, such as `{name}kind`."
    return {
        "name": name,
        "in": "query",
        "required": False,
        "description": described,
        "style": "form",
        "explode": True,
        "schema": shape,
    }


def _present(shape: dict[str, Any]) -> dict[str, Any]:
    """A parameter is absent or has a value; it is never null."""
    options = [option for option in shape.get("anyOf", []) if option != {"type": "null"}]
    rest = {
        key: value for key, value in shape.items() if key != "anyOf" and not (key == "default" and value in (None, ""))
    }
    return {**options[0], **rest} if len(options) == 1 else rest | ({"anyOf": options} if options else {})


def _responses(endpoint: Endpoint, schemas: Schemas) -> dict[str, Any]:
    codes = codes_of(endpoint)
    responses: dict[str, Any] = {}
    for status in sorted({*endpoint.returns, *codes}):
        kind = endpoint.returns.get(status)
        page = endpoint.browsed and status >= 400 and status not in _NEVER_PAGES
        oauth = kind is None and endpoint.oauth and status in _OF_BAD_REQUESTS
        if kind is None and not oauth and codes.get(status) == COMMON.get(status, ()) and not page:
            responses[str(status)] = {"$ref": f"#/components/responses/{_common_name(status)}"}
            continue
        if kind is Redirect:
            responses[str(status)] = {"headers": headers_of(endpoint, status), "description": _TEXTS[status]}
            continue
        if oauth:
            content = _json(schemas.reference("OauthError", OAUTH_ERROR))
        else:
            content = _json(_ERROR) if kind is None else _answer(endpoint, status, kind, schemas)
        if page:
            content["content"]["text/html"] = {"schema": {"type": "string"}}
        said = _with_codes(status, codes[status]) if status in codes else {"description": _TEXTS[status]}
        responses[str(status)] = {"headers": headers_of(endpoint, status), **said, **content}
    if endpoint.media is None and endpoint.media_too is not None:
        responses["200"]["content"][endpoint.media_too] = {"schema": {"type": "string"}}
    return responses


def _with_codes(status: int, codes: dict[str, str]) -> dict[str, Any]:
    """A refusal with its codes, for people and for programs."""
    listed = ", ".join(f"`{code}`" for code in codes)
    return {"description": f"{_TEXTS[status]}: {listed}.", examples.CODES: list(codes)}


def _common_name(status: int) -> str:
    return "".join(word.capitalize() for word in re.split(r"\W+", _TEXTS[status]))


def _common_responses() -> dict[str, Any]:
    """Refusals that are alike on all routes that have no more of their status."""
    return {
        _common_name(status): {"headers": refused_headers(status), **_with_codes(status, codes), **_json(_ERROR)}
        for status, codes in COMMON.items()
    }


def _answer(endpoint: Endpoint, status: int, kind: Any, schemas: Schemas) -> dict[str, Any]:
    schema = schemas.of(kind)
    if endpoint.media is not None:
        kinds = [media for media in (endpoint.media, endpoint.media_too) if media is not None]
        return {"content": {media: {"schema": schema} for media in kinds}}
    if endpoint.raw_answer:
        return _json(schema)
    good = status < 202
    properties: dict[str, Any] = {
        "ok": {"type": "boolean", "description": f"Always {str(good).lower()}: whether the request was done."},
        "data": {"description": "The answer.", **schema},
    }
    if endpoint.listed and "cursor" in getattr(endpoint.query, "__struct_fields__", ()):
        # A list has no other place for it than beside the data.
        properties["nextCursor"] = msgspec.json.schema(NextCursor)
    required = list(properties)
    if endpoint.listed and good:
        properties["totalIsEstimate"] = msgspec.json.schema(TotalIsEstimate)
    if not good:
        required.append("error")
        properties["error"] = {"type": "string", "description": "Why it was not done, for people."}
    name = _name_of(endpoint, kind)
    body = {
        "type": "object",
        "description": f"{name} in its envelope.",
        "required": required,
        "properties": properties,
    }
    if not good and kind == endpoint.returns.get(endpoint.status):
        name = f"Not{name}"
    answer = schemas.reference(f"{name}{'Page' if good and endpoint.listed else 'Answer'}", body)
    # A policy's refusal and a refused credential share the status; both are the envelope.
    return _json(answer if status < 400 else {"anyOf": [answer, _ERROR]})


def _name_of(endpoint: Endpoint, kind: Any) -> str:
    """Name the data of an answer after its type or, if that has no name, after the operation."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind.__name__
    parts = typing.get_args(kind)
    if typing.get_origin(kind) is list and len(parts) == 1 and isinstance(parts[0], type):
        return parts[0].__name__ if endpoint.listed else f"{parts[0].__name__}List"
    name = operation_id(endpoint)
    return name[0].upper() + name[1:]


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}

"""The contract, made from the endpoint table. OpenAPI 3.1 takes msgspec's JSON Schema unchanged."""

from typing import Any

import msgspec

from api.http.endpoint import PATH_SHAPES, SPELLED, Endpoint
from api.http.errors import BodyTooLarge, HeadersTooLarge, WrongContentType, status_of
from custody.kit.errors import (
    Conflict,
    CustodyError,
    Forbidden,
    Invalid,
    NotFound,
    TooMany,
    Unauthenticated,
    Unavailable,
)
from custody.kit.shapes import AgentId
from custody.version import VERSION

SCHEMES = {
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
        "description": "A person's access token; x-service-roles says which roles may call, x-service-mfa for which "
        "action a second factor must have been shown recently.",
    },
    "app_client": {
        "type": "http",
        "scheme": "basic",
        "description": "An app client: its app id (said again in X-Service-App-Id) and its secret.",
    },
}
_REF = "#/components/schemas/{name}"
_ERROR = {
    "type": "object",
    "required": ["ok", "error"],
    "properties": {"ok": {"const": False}, "error": {"type": "string"}, "data": {"type": "object"}},
}
_HARDENING = {
    "requestTimestamp": "X-Service-Request-Timestamp", "requestExpiresAt": "X-Service-Request-Expires-At",
    "signature": "X-Service-Signature", "signingKeyId": "X-Service-Signing-Key-Id", "idempotencyKey": "Idempotency-Key",
}  # fmt: skip
_TEXTS = {
    200: "Done", 201: "Created", 202: "Queued for approval", 400: "The request is not valid",
    401: "No valid credential", 403: "Refused",
    404: "Not found", 405: "Wrong method", 409: "Conflict", 410: "Retired", 413: "The body is too large",
    415: "Wrong content type",
    423: "Frozen", 429: "Too many requests", 431: "The address or the headers are too long", 500: "A fault of ours",
    502: "A blockchain node failed",
    503: "Not available right now",
}  # fmt: skip


def document(endpoints: list[Endpoint], public_url: str) -> dict[str, Any]:
    """The whole contract."""
    types = [kind for endpoint in endpoints for kind in (endpoint.body, *endpoint.returns.values()) if kind is not None]
    types += [AgentId, *PATH_SHAPES.values()]
    found, components = msgspec.json.schema_components(types, ref_template=_REF)
    schemas = dict(zip(map(repr, types), found, strict=True))
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.contract_path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    paths["/openapi.json"] = {
        "get": {
            "summary": "Get this contract.",
            "tags": ["System"],
            "security": [],
            "responses": {"200": _plain("The contract")},
        }
    }
    contract: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Custody",
            "version": VERSION,
            "description": "Lets agents spend money and call APIs without holding a key.",
        },
        "servers": [{"url": public_url}],
        "paths": paths,
        "components": {"schemas": {**components, "Error": _ERROR}, "securitySchemes": SCHEMES},
    }
    portable: dict[str, Any] = _portable(contract)
    return portable


def _portable(node: Any) -> Any:
    """Python's end of text is spelled otherwise in the regular expressions that JSON Schema means (ECMA-262)."""
    if isinstance(node, dict):
        return {
            name: value.replace(r"\Z", "$") if name == "pattern" and isinstance(value, str) else _portable(value)
            for name, value in node.items()
        }
    return [_portable(item) for item in node] if isinstance(node, list) else node


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint), "summary": endpoint.summary, "tags": [endpoint.tag],
        "security": [{kind: []} for kind in sorted(endpoint.who.kinds - {"public"})],
        "parameters": _parameters(endpoint, schemas), "responses": _responses(endpoint, schemas),
    }  # fmt: skip
    if endpoint.description:
        operation["description"] = endpoint.description
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": _needs_body(endpoint),
            "content": {"application/json": {"schema": schemas[repr(endpoint.body)]}},
        }
    if endpoint.hardened:
        operation["x-service-hardening"] = {
            "headers": _HARDENING, "requiredByDeployment": True, "signatureRequiredByDeployment": not endpoint.unsigned,
        }  # fmt: skip
    if endpoint.who.roles:
        operation["x-service-roles"] = sorted(endpoint.who.roles)
    if endpoint.who.action:
        operation["x-service-mfa"] = endpoint.who.action
    if scope := endpoint.who.scope:
        operation["x-service-scope"] = scope
    return operation


def _operation_id(endpoint: Endpoint) -> str:
    words = [part.strip("{}").replace(".", "") for part in endpoint.contract_path.split("/") if part]
    return endpoint.method.lower() + "".join(word[:1].upper() + word[1:] for part in words for word in part.split("-"))


def _needs_body(endpoint: Endpoint) -> bool:
    if not isinstance(endpoint.body, type):
        return True
    return any(field.required for field in msgspec.structs.fields(endpoint.body))


def _parameters(endpoint: Endpoint, schemas: dict[str, Any]) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = [
        {
            "name": SPELLED.get(name, name),
            "in": "path",
            "required": True,
            "schema": schemas[repr(AgentId if name == "agent" else PATH_SHAPES[name])],
        }
        for name in endpoint.path_names
    ]
    if endpoint.query is not None:
        schema = msgspec.json.schema(endpoint.query)["$defs"][endpoint.query.__name__]
        parameters += [
            _open_parameter(name) if name.endswith(".") else
            {"name": name, "in": "query", "required": False, "schema": _present(kind)}
            for name, kind in schema["properties"].items()
        ]  # fmt: skip
    if endpoint.headers is not None:
        schema = msgspec.json.schema(endpoint.headers)["$defs"][endpoint.headers.__name__]
        parameters += [
            {"name": name, "in": "header", "required": False, "schema": _present(kind)}
            for name, kind in schema["properties"].items()
        ]
    if endpoint.hardened and "public" not in endpoint.who.kinds:
        shape = {"type": "string", "minLength": 8, "maxLength": 255, "pattern": "^[\\x20-\\x7e]{8,255}$"}
        parameters.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": shape})
        parameters += [
            {"name": name, "in": "header", "required": False, "schema": {"type": "string", "maxLength": 1024}}
            for key, name in _HARDENING.items()
            if key != "idempotencyKey"
        ]
    return parameters


def _open_parameter(name: str) -> dict[str, Any]:
    """Every parameter that begins so: an object whose members are parameters of their own."""
    shape = {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "string", "maxLength": 256}}
    described = f"Parameters whose names begin with `{name}`, such as `{name}kind`."
    return {"name": name, "in": "query", "required": False, "description": described, "style": "form", "explode": True,
            "schema": shape}  # fmt: skip


def _present(kind: dict[str, Any]) -> dict[str, Any]:
    """A query parameter is absent or has a value; it is never null."""
    options = [option for option in kind.get("anyOf", []) if option != {"type": "null"}]
    rest = {key: value for key, value in kind.items() if key != "anyOf" and not (key == "default" and value is None)}
    return {**rest, **options[0]} if len(options) == 1 else kind


def _responses(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, kind in endpoint.returns.items():
        if kind is not None:
            responses[str(status)] = _answer(endpoint, status, schemas[repr(kind)])
    for problem in _failures(endpoint):
        status = status_of(problem())
        responses.setdefault(str(status), _plain(_TEXTS[status], {"$ref": _REF.format(name="Error")}))
    responses.setdefault("500", _plain(_TEXTS[500], {"$ref": _REF.format(name="Error")}))
    return dict(sorted(responses.items()))


def _failures(endpoint: Endpoint) -> list[type[CustodyError]]:
    """What every route of its kind can answer, and what this one declares."""
    found: list[type[CustodyError]] = [*endpoint.fails, TooMany, Unavailable]
    if "public" not in endpoint.who.kinds:
        found += [Unauthenticated, Forbidden, Invalid]
    if endpoint.body is not None:
        found += [Invalid, BodyTooLarge, WrongContentType]
    if endpoint.query is not None or endpoint.path_names:
        found += [Invalid, HeadersTooLarge]
    if endpoint.path_names:
        found += [NotFound]
    if endpoint.hardened:
        found += [Conflict]
    if endpoint.lenient is not None and issubclass(endpoint.lenient, CustodyError):
        found += [endpoint.lenient]
    return found


def _answer(endpoint: Endpoint, status: int, schema: Any) -> dict[str, Any]:
    if endpoint.media is not None:
        kinds = [kind for kind in (endpoint.media, endpoint.media_too) if kind is not None]
        return {"description": _TEXTS[status], "content": {kind: {"schema": schema} for kind in kinds}}
    if endpoint.raw_answer:
        return _plain(_TEXTS[status], schema)
    good = status < 202 or status == 200
    properties: dict[str, Any] = {"ok": {"const": good}, "data": schema}
    required = ["ok", "data"]
    if not good:
        properties["error"] = {"type": "string"}
        required.append("error")
        # A policy's refusal and a refused credential share the status; both are the envelope.
        refusal = {"type": "object", "required": required, "properties": properties}
        return _plain(_TEXTS[status], {"anyOf": [refusal, {"$ref": _REF.format(name="Error")}]})
    return _plain(_TEXTS[status], {"type": "object", "required": required, "properties": properties})


def _plain(text: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema or {"type": "object"}}}}

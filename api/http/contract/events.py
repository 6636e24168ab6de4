"""The `webhooks` of the contract: what a receiver is sent, from the payloads of `custody/webhooks/`."""

import inspect
from types import ModuleType
from typing import Any

from api.http.contract.schemas import Schemas
from custody.webhooks import control_events, events, intent_events, later_events, payload
from custody.webhooks.envelope import Envelope
from custody.webhooks.names import SUBSCRIBABLE, TEST
from custody.webhooks.payload import Payload

_HEADERS = {
    "X-Service-Signature": "`sha256=` and the hex HMAC-SHA256 of the body, keyed by the endpoint's secret.",
    "webhook-id": "The delivery: the same for every attempt of it.",
    "webhook-timestamp": "When this attempt was signed, in Unix seconds.",
    "webhook-signature": "`v1,` and the base64 HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`.",
}
_CHECK = "Verify a signature before you read the body, and refuse what is older than five minutes. Note `id`: an event "
_CHECK += "may come more than once. Answer 2xx within ten seconds."


def payloads(*modules: ModuleType) -> tuple[type[Payload], ...]:
    """The payload of each event on the list, in its order: the structs of these modules that have a name."""
    structs = {struct for module in modules for struct in vars(module).values() if isinstance(struct, type)}
    named = {struct.event: struct for struct in structs if issubclass(struct, Payload) and "event" in vars(struct)}
    if odd := set(named) ^ set(SUBSCRIBABLE):
        raise TypeError(f"an event is on the list of names and has a payload, or neither: {sorted(odd)}")
    return tuple(named[name] for name in SUBSCRIBABLE)


PAYLOADS = payloads(events, control_events, intent_events, later_events, payload)


def webhooks(schemas: Schemas) -> dict[str, Any]:
    """Every event by its name."""
    found = {kind.event: _webhook(schemas, kind.event, _summary(kind), schemas.of(kind)) for kind in PAYLOADS}
    empty = {"type": "object", "description": "Empty.", "additionalProperties": False}
    return found | {TEST: _webhook(schemas, TEST, "An endpoint is tried on request.", empty)}


def _summary(payload: type) -> str:
    return inspect.cleandoc(payload.__doc__ or "").partition("\n")[0]


def _webhook(schemas: Schemas, event: str, text: str, data: dict[str, Any]) -> dict[str, Any]:
    name = "".join(word.capitalize() for word in event.replace("_", ".").split("."))
    fields = schemas.fields(Envelope)
    said = {"type": "string", "const": event, "description": fields["event"]["description"]}
    described = fields | {"event": said, "data": {"description": fields["data"]["description"], **data}}
    body = {"type": "object", "description": text, "required": list(fields), "properties": described}
    return {
        "post": {
            "operationId": f"on{name}",
            "summary": text,
            "description": _CHECK,
            "tags": ["Webhooks"],
            "security": [],
            "parameters": [
                {"name": header, "in": "header", "required": True, "description": said, "schema": {"type": "string"}}
                for header, said in _HEADERS.items()
            ],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": schemas.reference(f"{name}Event", body)}},
            },
            "responses": {
                "2XX": {"description": "The event was received."},
                "4XX": {"description": "Sent again later; 410 disables the endpoint."},
            },
        }
    }

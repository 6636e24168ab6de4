"""The examples of the contract.

Bodies that succeed as they stand are written here, and tests send what can be sent without a node. All other bodies and
answers are from `examples.json`, which `make examples` writes from what clients of tests sent and got.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

# Where an answer lists the codes that it may have.
CODES: Final = "x-service-error-codes"
_JSON: Final = "application/json"
FILE: Final = Path(__file__).with_name("examples.json")

_RECIPIENT = "0x1111111111111111111111111111111111111111"
_EVM = {"to": _RECIPIENT, "value": "1000000000000000", "broadcast": False, "referenceId": "invoice-17"}
_TRANSFER = {"to": _RECIPIENT, "value": "1000000000000000", "broadcast": False, "referenceId": "invoice-18"}

BODIES: dict[str, Any] = {
    "createAgent": {"id": "payer-1", "name": "Payer", "platformId": "user-42"},
    "createAgents": {"agents": [{"id": "payer-2", "name": "Second payer"}]},
    "changeAgent": {"name": "Payer of invoices"},
    "createAgentToken": {"expiresIn": "24h"},
    "replacePolicies": [
        {"type": "spending-limit", "enabled": True, "config": {"maxPerTransaction": "2000000000000000"}},
        {"type": "auto-approve-threshold", "enabled": True, "config": {"threshold": "1000000000000000"}},
    ],
    "signEvmTransaction": _EVM,
    "signTypedData": {
        "domain": {"name": "Notes", "version": "1", "chainId": 1},
        "types": {"Note": [{"name": "text", "type": "string"}]},
        "primaryType": "Note",
        "value": {"text": "hello"},
    },
    "signMessage": {"chainFamily": "evm", "message": "I own this wallet.", "referenceId": "proof-1"},
    "transferFunds": _TRANSFER,
    "quoteTransfer": _TRANSFER,
    "simulateOrder": {"kind": "evm", "request": _EVM},
    "createSecret": {"name": "openai", "value": "sk-example", "description": "Key of the API"},
    "explainCredentialRoute": {"agentId": "payer-1", "method": "GET", "url": "https://api.example.com/v1/models"},
    "createWebhook": {"url": "https://hooks.example.com/in", "events": ["tx.signed", "tx.denied"]},
    "backtestPolicies": {
        "policies": [{"type": "spending-limit", "enabled": True, "config": {"maxPerDay": "5000000000000000"}}],
        "days": 7,
    },
    "approveItem": {"comment": "Checked against the invoice."},
    "approveTransaction": {"comment": "Checked against the invoice."},
    "denyItem": {"reason": "Not our supplier."},
    "rejectTransaction": {"reason": "Not our supplier."},
    "rotateSecret": {"value": "sk-next-example"},
    "createCredentialRoute": {
        "secretId": "00000000-0000-4000-8000-000000000000",
        "hostPattern": "api.example.com",
        "pathPattern": "/v1/*",
        "injectAs": "header",
        "injectKey": "Authorization",
        "injectFormat": "Bearer {value}",
    },
    "createPaymentRoute": {
        "hostPattern": "api.example.com",
        "pathPattern": "/paid/*",
        "maxPerCall": {"evm:8453:0x833589fcd6edb6e08f4c7c32d4f71b54bda02913": "10000"},
        "payTo": ["0x00000000000000000000000000000000000000aa"],
    },
    "createApiKey": {"name": "backend", "overlapSeconds": 3600},
    "rollWebhookSecret": {"overlapSeconds": 3600},
    "sendEmailCode": {"email": "name@example.com"},
    "freezeAgent": {"reason": "The laptop was stolen."},
}


class Kept(msgspec.Struct, frozen=True):
    """The content of the file: bodies by operation, answers by operation and status, refusals by status and code."""

    bodies: dict[str, Any] = {}
    answers: dict[str, dict[str, Any]] = {}
    refusals: dict[str, dict[str, Any]] = {}


def put_into(document: dict[str, Any]) -> None:
    """Put an example beside each schema of a body or an answer that has one."""
    kept = msgspec.json.decode(FILE.read_bytes(), type=Kept)
    answers: list[tuple[str, str, dict[str, Any]]] = []
    for operation in (one for item in document["paths"].values() for one in item.values()):
        name, shared = operation["operationId"], document["components"]["responses"]
        if (body := BODIES.get(name, kept.bodies.get(name))) is not None:
            for media in operation["requestBody"]["content"].values():
                media["example"] = body
        for status, said in operation["responses"].items():
            answers.append((name, status, shared[said["$ref"].rpartition("/")[2]] if "$ref" in said else said))
    document["components"]["examples"] = dict(sorted(_put_answers(answers, kept)))


def _put_answers(answers: list[tuple[str, str, dict[str, Any]]], kept: Kept) -> Iterator[tuple[str, Any]]:
    """The same for answers; what stands once for many, by its name.

    A refusal shows that code of its status which the fewest others have, and so says most of the operation.
    """
    common = Counter(code for _, _, said in answers for code in said.get(CODES, ()))
    for name, status, said in answers:
        own, refusals = kept.answers.get(name, {}), kept.refusals.get(status, {})
        for media, shown in said.get("content", {}).items():
            if (found := own.get(status if media == _JSON else f"{status} {media}")) is not None:
                shown["example"] = found
            elif _is_refusal(shown["schema"]) and (codes := refusals.keys() & said.get(CODES, ())):
                code = min(codes, key=lambda one: (common[one], one))
                shown["examples"] = {code: {"$ref": f"#/components/examples/{status}_{code}"}}
                yield f"{status}_{code}", {"value": refusals[code]}


def _is_refusal(schema: dict[str, Any]) -> bool:
    return any(one.get("$ref") == "#/components/schemas/Error" for one in schema.get("anyOf", (schema,)))

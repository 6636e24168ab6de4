"""Bodies that succeed, by operation: the contract shows them, and tests send what can be sent without a node."""

from typing import Any

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
    "createApiKey": {"name": "backend", "overlapSeconds": 3600},
    "rollWebhookSecret": {"overlapSeconds": 3600},
    "sendEmailCode": {"email": "name@example.com"},
    "freezeAgent": {"reason": "The laptop was stolen."},
}

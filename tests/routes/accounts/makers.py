"""Accounts as tests make them."""

from typing import Any

import httpx

from tests.fixtures.callers import Agent, Client

OTHER_SPELLING = {
    "tenantId": "tenant_id",
    "displayName": "display_name",
    "ownerUserIds": "owner_user_ids",
    "additionalSignerIds": "additional_signer_ids",
    "signerPolicyIds": "signer_policy_ids",
    "walletIds": "wallet_ids",
    "capabilityMetadata": "capability_metadata",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
}


def open_account(client: Client, *agents: Agent, **fields: Any) -> dict[str, Any]:
    """A new account with the wallets of these agents."""
    wallets = {"wallet_ids": [agent.id for agent in agents]} if agents else {}
    made: dict[str, Any] = client.ok("POST", "/accounts", {**wallets, **fields})
    return made


def status_and_code(answer: httpx.Response) -> tuple[int, str]:
    """Status and code."""
    return answer.status_code, answer.json()["data"]["code"]


def audit_of(client: Client, resource: str) -> list[tuple[str, dict[str, Any]]]:
    """Read the audit trail of one resource: actions with their metadata, oldest first."""
    rows = client.ok("GET", f"/audit/events?resourceId={resource}")["data"]
    return [(row["action"], row["metadata"]) for row in reversed(rows)]

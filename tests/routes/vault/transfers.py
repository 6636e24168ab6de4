"""Transfers as agents send them, with the signer that authorises them."""

import itertools
from typing import Any

import httpx

from tests.fixtures.callers import ADDRESS, Agent
from tests.fixtures.people import Person
from tests.fixtures.signers import new_signer
from tests.routes.orders import CHAIN, TOKEN_CONTRACT

TRANSFER, APPROVE = "0xa9059cbb", "0x095ea7b3"
_references = itertools.count(1)


def with_signer(owner: Person, agent: Agent, *permissions: str) -> Agent:
    """The agent with a signer of its own, whose credential its transfers bring; `transfer` is what the signer may."""
    made = new_signer(owner, agent, permissions=list(permissions) or ["transfer"])
    agent.signer = {"X-Service-Signer-Id": made["id"], "X-Service-Signer-Secret": made["credentialSecret"]}
    return agent


def fields(**changed: Any) -> dict[str, Any]:
    """A transfer that is not broadcast, with any field changed, or left out when it is `...`."""
    given = {"to": ADDRESS, "value": "1", "broadcast": False, **changed}
    return {name: one for name, one in given.items() if one is not ...}


def transfer(agent: Agent, *, key: str | None = None, **changed: Any) -> httpx.Response:
    """Send a transfer."""
    headers = getattr(agent, "signer", {}) | ({"Idempotency-Key": key} if key else {})
    return agent.post(f"/vault/{agent.id}/actions/transfer", json=fields(**changed), headers=headers)


def reference() -> str:
    """A reference nobody used."""
    return f"invoice-{next(_references)}"


def list_entry(**changed: Any) -> dict[str, Any]:
    """An entry of a contract-allowlist under which a token may be transferred, with its constraints changed."""
    limits = {"recipientAllowlist": [ADDRESS], "maxAmount": "100", **changed}
    kept = {name: one for name, one in limits.items() if one is not ...}
    return {
        "address": TOKEN_CONTRACT,
        "chainId": CHAIN,
        "selectors": [TRANSFER],
        "constraints": {TRANSFER: kept},
    }

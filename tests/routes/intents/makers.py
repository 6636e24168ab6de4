"""Intents and the people who decide over them."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from tests.fixtures.callers import ADDRESS, Agent, Client, Tenant
from tests.fixtures.people import Person, member
from tests.fixtures.server import EVM_CHAIN, Service


@pytest.fixture
def other_admin(service: Service, tenant: Tenant) -> Iterator[Person]:
    """A second person who may authorise what the owner proposed."""
    with closing(member(service, tenant, "admin", mfa=True)) as somebody:
        yield somebody


def transfer(agent: Agent, value: int = 1, **fields: Any) -> dict[str, Any]:
    """The body of a transfer intent, which is not broadcast."""
    payload = {"to": ADDRESS, "value": str(value), "chainId": EVM_CHAIN, "broadcast": False, **fields}
    return {"intentType": "transfer", "agentId": agent.id, "payload": payload}


def propose(client: Client, body: dict[str, Any]) -> dict[str, Any]:
    """A new intent."""
    made: dict[str, Any] = client.ok("POST", "/intents", body)
    return made


def propose_authorised(by: Client, admin: Person, body: dict[str, Any]) -> dict[str, Any]:
    """An intent of one, authorised by another."""
    intent = propose(by, body)
    shown: dict[str, Any] = admin.ok("POST", f"/intents/{intent['id']}/authorize", {"digest": intent["digest"]})
    return shown


def act(client: Client, intent: dict[str, Any] | str, act: str, body: Any = None, **headers: str) -> httpx.Response:
    """One step of an intent's life."""
    name = intent if isinstance(intent, str) else intent["id"]
    return client.post(f"/intents/{name}/{act}", json=body or {}, headers=headers)


def state(client: Client, intent: dict[str, Any]) -> str:
    """Read the intent's state."""
    status: str = client.ok("GET", f"/intents/{intent['id']}")["status"]
    return status


def status_and_code(answer: httpx.Response) -> tuple[int, str | None]:
    """Status and code."""
    data = answer.json()["data"]
    return answer.status_code, data.get("code")

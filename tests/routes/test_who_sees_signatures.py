"""Signatures that can be sent, wherever they might be read: each reading route, as each kind of reader."""

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from api.http.endpoint import Endpoint
from api.routes import endpoints
from tests.fixtures.app_clients import app_client_of
from tests.fixtures.callers import Agent, Client, Tenant, new_tenant, rule
from tests.fixtures.people import member
from tests.fixtures.server import Service
from tests.routes.orders import mail, solana_payment

READING = [one for one in endpoints() if (one.method == "GET" and "<agent>" in one.path) or one.path == "/events"]
# With the signature, by a reader who has the right to it.
RECORDS = {
    "/vault/<agent>/history",
    "/vault/<agent>/transactions",
    "/vault/<agent>/transactions/<tx_id>",
}


class Scene:
    """A tenant with an agent that signed one order of each kind, none of them broadcast, and everybody who reads."""

    def __init__(self, service: Service, tenant: Tenant, ends: ExitStack) -> None:
        self.agent: Agent = tenant.agent(rule("spending-limit", maxPerDay="100"))
        evm = self.agent.sign(value=1).json()["data"]
        typed = self.agent.ok("POST", f"/vault/{self.agent.id}/sign-typed-data", mail())
        solana = self.agent.ok("POST", f"/vault/{self.agent.id}/sign-solana", solana_payment(self.agent, 1))
        # What one could send, by the order's id.
        self.usable = {
            evm["txId"]: [evm["signedTransaction"][2:]],
            typed["txId"]: [typed["signature"][2:]],
            solana["txId"]: [solana["signedTransaction"], solana["signature"]],
        }
        owner = ends.enter_context(closing(member(service, tenant, "owner", mfa=True)))
        people = {
            role: ends.enter_context(closing(member(service, tenant, role)))
            for role in ("admin", "developer", "billing", "viewer")
        }
        self.deciders: dict[str, Client] = {
            "key": tenant,
            "agent": self.agent,
            "owner": owner,
            "admin": people["admin"],
        }
        self.readers: dict[str, Client] = {
            "app client": ends.enter_context(closing(app_client_of(owner))),
            **{role: people[role] for role in ("developer", "billing", "viewer")},
        }

    def read(self, reader: Client, endpoint: Endpoint, tx_id: str) -> str:
        """Return the answer to a reader; of the stream, everything from its beginning to now."""
        path = endpoint.path.replace("<agent>", self.agent.id).replace("<tx_id>", tx_id)
        # Lists leave out what is long, unless one asks; others ignore the question.
        path += "?follow=false" if endpoint.path == "/events" else "?include=data"
        answer = reader.get(path, headers={"Last-Event-ID": "0"} if endpoint.path == "/events" else {})
        assert answer.status_code != 404, answer.text
        return answer.text


@pytest.fixture(scope="module")
def scene(service: Service) -> Iterator[Scene]:
    with new_tenant(service) as tenant, ExitStack() as ends:
        yield Scene(service, tenant, ends)


@pytest.mark.parametrize("endpoint", READING, ids=lambda one: one.contract_path)
def test_readers_without_sign_or_approve_rights_see_no_signature(scene: Scene, endpoint: Endpoint) -> None:
    found = [
        (who, endpoint.path)
        for who, reader in scene.readers.items()
        for tx_id, usable in scene.usable.items()
        if any(one in scene.read(reader, endpoint, tx_id) for one in usable)
    ]

    assert found == []


@pytest.mark.parametrize("path", sorted(RECORDS))
def test_the_agent_and_deciders_see_the_signature(scene: Scene, path: str) -> None:
    endpoint = next(one for one in READING if one.path == path)

    for who, reader in scene.deciders.items():
        for tx_id, usable in scene.usable.items():
            text = scene.read(reader, endpoint, tx_id)
            assert [one for one in usable if one not in text] == [], (who, path)

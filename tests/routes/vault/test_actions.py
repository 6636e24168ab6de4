"""The outcome of a transfer, for a person who has the agent's token beside their session."""

import uuid
from collections.abc import Iterator
from contextlib import closing

import asyncpg
import pytest

from tests.fixtures.callers import Agent, Client, Tenant, rule
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.routes.vault.transfers import transfer, with_signer

NOBODY = str(uuid.UUID(int=0))


def token_of(client: Client) -> str:
    return client.headers["authorization"].removeprefix("Bearer ")


def look(person: Client, agent: Agent, action: str, *tokens: str) -> tuple[int, str]:
    headers = [("X-Service-Agent-Token", token) for token in tokens]
    answer = person.get(f"/vault/{agent.id}/actions/{action}", headers=headers)
    return answer.status_code, answer.json()["data"].get("code", "")


@pytest.fixture
def payer(as_owner: Person, tenant: Tenant) -> Agent:
    return with_signer(as_owner, tenant.agent())


@pytest.fixture
def viewer(service: Service, tenant: Tenant) -> Iterator[Person]:
    with closing(member(service, tenant, "viewer", mfa=True)) as somebody:
        yield somebody


def test_an_action_is_read_with_both_credentials(as_owner: Person, payer: Agent) -> None:
    made = transfer(payer).json()["data"]

    headers = {"X-Service-Agent-Token": token_of(payer)}
    assert as_owner.ok("GET", f"/vault/{payer.id}/actions/{made['id']}", **headers) == made


def test_the_agents_token_must_be_there_and_be_one(as_owner: Person, agent: Agent, tenant: Tenant) -> None:
    other, own = tenant.agent(), token_of(agent)

    assert look(as_owner, agent, NOBODY) == (401, "agent_token_required")
    assert look(as_owner, agent, NOBODY, "") == (401, "agent_token_required")
    assert look(as_owner, agent, NOBODY, "x.y.z")[0] == 401
    assert look(as_owner, agent, NOBODY, token_of(as_owner)) == (401, "bad_credential")
    assert look(as_owner, agent, NOBODY, own, own) == (400, "ambiguous_credentials")
    assert look(as_owner, agent, NOBODY, token_of(other)) == (403, "other_agent")
    assert look(as_owner, agent, NOBODY, own) == (404, "action_absent")


def test_the_token_of_another_tenants_agent_is_403(as_owner: Person, agent: Agent, other_tenant: Tenant) -> None:
    namesake = other_tenant.agent(agent_id=agent.id)

    assert look(as_owner, agent, NOBODY, token_of(namesake)) == (403, "other_tenant")


def test_a_revoked_agents_token_is_401(as_owner: Person, agent: Agent, tenant: Tenant) -> None:
    tenant.ok("DELETE", f"/agents/{agent.id}/tokens")

    assert look(as_owner, agent, NOBODY, token_of(agent))[0] == 401


def test_the_session_alone_decides_who_reads(service: Service, viewer: Person, agent: Agent, tenant: Tenant) -> None:
    with closing(member(service, tenant, "admin")) as admin:
        assert look(admin, agent, NOBODY, token_of(agent)) == (403, "mfa_required")
    assert look(viewer, agent, NOBODY, token_of(agent)) == (403, "wrong_role")
    assert look(agent, agent, NOBODY, token_of(agent)) == (403, "wrong_kind")
    assert look(tenant, agent, NOBODY, token_of(agent)) == (403, "wrong_kind")


def test_an_order_of_another_route_is_no_action(as_owner: Person, agent: Agent) -> None:
    signed = agent.sign().json()["data"]["txId"]

    assert look(as_owner, agent, signed, token_of(agent)) == (404, "action_absent")
    assert look(as_owner, agent, "nonsense", token_of(agent)) == (400, "bad_path")


def test_an_action_follows_its_approval(as_owner: Person, tenant: Tenant) -> None:
    agent = with_signer(as_owner, tenant.agent(rule("auto-approve-threshold", threshold="0")))
    headers = {"X-Service-Agent-Token": token_of(agent)}

    def status(action: str) -> str:
        return as_owner.ok("GET", f"/vault/{agent.id}/actions/{action}", **headers)["status"]

    approved, denied = (transfer(agent).json()["data"]["id"] for _ in range(2))
    assert (status(approved), status(denied)) == ("pending_approval", "pending_approval")
    tenant.ok("POST", f"/vault/{agent.id}/approve/{approved}")
    tenant.ok("POST", f"/vault/{agent.id}/reject/{denied}")

    assert (status(approved), status(denied)) == ("signed", "rejected")


async def test_an_action_shows_how_its_transaction_ended(
    as_owner: Person, payer: Agent, owner: asyncpg.Connection
) -> None:
    made = transfer(payer).json()["data"]["id"]
    headers = {"X-Service-Agent-Token": token_of(payer)}
    shown = {}
    for status in ("broadcast", "confirmed", "failed"):
        await owner.execute("UPDATE transactions SET status = $2 WHERE id = $1", made, status)
        shown[status] = as_owner.ok("GET", f"/vault/{payer.id}/actions/{made}", **headers)["status"]

    assert shown == {"broadcast": "broadcast", "confirmed": "broadcast", "failed": "failed"}

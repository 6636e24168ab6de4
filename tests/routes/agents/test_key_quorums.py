"""Key quorums of an agent: of whom, how many, and no further than three levels."""

from contextlib import closing
from typing import Any

import asyncpg
import pytest

from tests.fixtures.callers import Agent, Client, Tenant
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.signers import new_quorum, new_signer, path_of, quorum_body, signer_body

FIELDS = {
    "id", "agentId", "name", "threshold", "memberSignerIds", "memberQuorumIds", "permissions", "metadata", "status",
    "createdAt", "updatedAt", "revokedAt",
}  # fmt: skip
ABSENT = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def signers(as_owner: Person, agent: Agent) -> list[str]:
    """Three signers of the agent."""
    return [new_signer(as_owner, agent, f"worker-{number}")["id"] for number in range(3)]


def refusal_of(somebody: Client, agent: Agent, members: list[str], **fields: Any) -> tuple[int, str]:
    response = somebody.post(path_of(agent, "key-quorums"), json=quorum_body(members, **fields))
    return response.status_code, response.json()["data"]["code"]


def test_a_quorum_is_made_listed_changed_and_revoked(as_owner: Person, agent: Agent, signers: list[str]) -> None:
    made = new_quorum(as_owner, agent, signers, metadata={"for": "treasury"})
    one = path_of(agent, "key-quorums", made["id"])

    assert set(made) == FIELDS
    assert (made["threshold"], made["memberSignerIds"], made["status"]) == (2, signers, "active")
    assert as_owner.ok("GET", path_of(agent, "key-quorums")) == [made]
    assert as_owner.ok("PATCH", one, {"threshold": 3, "name": "vault"})["threshold"] == 3
    assert as_owner.ok("PATCH", one, {"status": "paused"})["status"] == "paused"
    revoked = as_owner.ok("DELETE", one)
    assert (revoked["status"], as_owner.ok("DELETE", one)) == ("revoked", revoked)
    changed = as_owner.patch(one, json={"name": "x"})
    assert (changed.status_code, changed.json()["data"]["code"]) == (409, "quorum_revoked")
    assert as_owner.ok("GET", path_of(agent, "key-quorums?status=active")) == []


@pytest.mark.parametrize("threshold", [0, -1, 4, 2**31])
def test_a_threshold_that_nobody_meets_is_refused(
    threshold: int, as_owner: Person, agent: Agent, signers: list[str]
) -> None:
    assert refusal_of(as_owner, agent, signers, threshold=threshold) == (400, "bad_threshold")


def test_members_must_be_living_signers_of_the_agent(
    as_owner: Person, tenant: Tenant, agent: Agent, signers: list[str]
) -> None:
    foreign = new_signer(as_owner, tenant.agent(), "foreign")["id"]
    as_owner.ok("DELETE", path_of(agent, "signers", signers[2]))

    assert refusal_of(as_owner, agent, [signers[0], ABSENT]) == (400, "unknown_member")
    assert refusal_of(as_owner, agent, [signers[0], foreign]) == (400, "unknown_member")
    assert refusal_of(as_owner, agent, [signers[0], signers[2]]) == (400, "unknown_member")
    assert refusal_of(as_owner, agent, signers[:2], memberQuorumIds=[ABSENT]) == (400, "unknown_member")
    assert refusal_of(as_owner, agent, signers[:2], permissions=["*"]) == (400, "unknown_permission")
    # The same signer twice is one member.
    assert refusal_of(as_owner, agent, [signers[0], signers[0]]) == (400, "bad_threshold")
    assert as_owner.ok("GET", path_of(agent, "key-quorums")) == []


def test_a_signer_that_is_a_member_can_be_revoked(as_owner: Person, agent: Agent, signers: list[str]) -> None:
    made = new_quorum(as_owner, agent, signers)

    as_owner.ok("DELETE", path_of(agent, "signers", signers[0]))

    one = path_of(agent, "key-quorums", made["id"])
    assert as_owner.ok("PATCH", one, {"name": "still there"})["memberSignerIds"] == signers


def test_quorums_in_quorums(as_owner: Person, agent: Agent, signers: list[str]) -> None:
    first = new_quorum(as_owner, agent, signers[:1], threshold=1)["id"]
    second = new_quorum(as_owner, agent, [], threshold=1, memberQuorumIds=[first])["id"]
    third = new_quorum(as_owner, agent, [signers[1]], memberQuorumIds=[second])["id"]
    # A diamond is no cycle.
    assert new_quorum(as_owner, agent, [signers[2]], memberQuorumIds=[first])["memberQuorumIds"] == [first]

    assert refusal_of(as_owner, agent, [signers[0]], memberQuorumIds=[third]) == (400, "quorum_too_deep")

    def turn(quorum: str, *below: str) -> tuple[int, str]:
        said = as_owner.patch(path_of(agent, "key-quorums", quorum), json={"memberQuorumIds": list(below)})
        return said.status_code, said.json()["data"]["code"]

    assert turn(first, first) == (400, "quorum_cycle")
    assert turn(first, second) == (400, "quorum_cycle")
    assert turn(first, third) == (400, "quorum_cycle")


def test_a_change_of_authority_wants_a_second_factor(
    as_owner: Person, service: Service, tenant: Tenant, agent: Agent, signers: list[str]
) -> None:
    one = path_of(agent, "key-quorums", new_quorum(as_owner, agent, signers)["id"])
    with closing(member(service, tenant, "admin")) as admin:
        assert admin.ok("PATCH", one, {"name": "x", "metadata": {"a": 1}})
        asked = [
            admin.patch(one, json={"threshold": 1}),
            admin.patch(one, json={"status": "paused"}),
            admin.patch(one, json={"name": "y", "memberSignerIds": signers[:2]}),
            admin.delete(one),
            admin.post(path_of(agent, "key-quorums"), json=quorum_body(signers)),
        ]
    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in asked} == {(403, "mfa_required")}


@pytest.mark.parametrize(
    "forged",
    [
        "UPDATE key_quorums SET threshold = 1 WHERE id = $1",
        "UPDATE key_quorums SET members = replace(members, ',', ',\"x\",') WHERE id = $1",
        "UPDATE key_quorums SET status = 'revoked' WHERE id = $1",
        "UPDATE key_quorums SET permissions = '[\"transfer\"]' WHERE id = $1",
        "DELETE FROM key_quorums WHERE id = $1",
    ],
)
async def test_a_quorum_that_was_tampered_with_is_not_sealed_again(
    forged: str, as_owner: Person, agent: Agent, signers: list[str], owner: asyncpg.Connection
) -> None:
    made = new_quorum(as_owner, agent, signers)

    await owner.execute(forged, made["id"])
    answer = as_owner.post(path_of(agent, "signers"), json=signer_body("one-more"))

    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "authority_tampered")


def test_an_agent_has_32_living_quorums(as_owner: Person, agent: Agent, signers: list[str]) -> None:
    for _ in range(32):
        new_quorum(as_owner, agent, signers)

    assert refusal_of(as_owner, agent, signers) == (409, "too_many_quorums")

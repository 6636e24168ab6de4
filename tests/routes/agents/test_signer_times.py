"""Signers that authorise only for a time: from a moment on, until a moment, and no order outside of it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from custody.identity.authority import Authority, Signer, microseconds
from tests.fixtures.authorised import Order, status_and_code
from tests.fixtures.callers import Agent, Tenant, rule
from tests.fixtures.eventually import eventually
from tests.fixtures.people import Person
from tests.fixtures.signers import new_quorum, new_signer, path_of
from tests.routes.vault.transfers import transfer

FAR, FARTHER = "2999-01-01T00:00:00.000Z", "2999-01-01T00:00:01.000Z"
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)


def bring(agent: Agent, signer: dict[str, Any]) -> None:
    """Have the agent's transfers brought by this signer."""
    agent.signer = {"X-Service-Signer-Id": signer["id"], "X-Service-Signer-Secret": signer["credentialSecret"]}


@pytest.fixture
def signer(as_owner: Person, agent: Agent) -> dict[str, Any]:
    """A signer that may transfer until far in the future, and whom the agent's transfers bring."""
    made = new_signer(as_owner, agent, permissions=["transfer"], expiresAt=FAR)
    bring(agent, made)
    return made


@pytest.mark.parametrize(
    ("now", "counts"),
    [(NOON - TICK, False), (NOON, True), (NOON + timedelta(hours=1) - TICK, True), (NOON + timedelta(hours=1), False)],
)
def test_a_signer_counts_from_its_first_moment_until_its_last(now: datetime, counts: bool) -> None:
    one = Signer(
        id="one",
        signer_type="service",
        subject=("external", "one"),
        key_type="hmac",
        public_key=None,
        permissions=frozenset({"transfer"}),
        policy_ids=(),
        status="active",
        not_before=microseconds(NOON),
        expires_at=microseconds(NOON + timedelta(hours=1)),
    )
    timeless = Signer(**{field: getattr(one, field) for field in one.__struct_fields__[:-2]} | {"id": "two"})

    found = Authority({"one": one, "two": timeless}, {}).at(now)

    assert (found.signers["one"].status == "active") is counts
    assert found.signers["two"].status == "active"


def test_times_are_shown_and_changed(as_owner: Person, agent: Agent, signer: dict[str, Any]) -> None:
    path = path_of(agent, "signers", signer["id"])

    changed = as_owner.ok("PATCH", path, {"notBefore": FAR, "expiresAt": "2999-01-01T02:00:01+02:00"})
    renamed = as_owner.ok("PATCH", path, {"label": "another"})
    crossed = as_owner.patch(path, json={"expiresAt": FAR})
    past = as_owner.patch(path, json={"expiresAt": "2020-01-01T00:00:00Z"})
    cleared = as_owner.ok("PATCH", path, {"notBefore": None, "expiresAt": None})

    assert (signer["notBefore"], signer["expiresAt"]) == (None, FAR)
    assert [(one["notBefore"], one["expiresAt"]) for one in (changed, renamed, cleared)] == [
        (FAR, FARTHER), (FAR, FARTHER), (None, None),
    ]  # fmt: skip
    assert [status_and_code(crossed), status_and_code(past)] == [(400, "bad_not_before"), (400, "bad_expiry")]


def test_a_signer_authorises_nothing_outside_its_time(as_owner: Person, agent: Agent, signer: dict[str, Any]) -> None:
    path = path_of(agent, "signers", signer["id"])
    assert transfer(agent).status_code == 200
    as_owner.ok("PATCH", path, {"expiresAt": None, "notBefore": FAR})
    early = transfer(agent)
    as_owner.ok("PATCH", path, {"notBefore": None})
    assert transfer(agent).status_code == 200

    soon = datetime.now(UTC) + timedelta(seconds=2)
    as_owner.ok("PATCH", path, {"expiresAt": soon.isoformat()})
    late = eventually(lambda: transfer(agent), lambda answer: answer.status_code != 200)

    assert [status_and_code(early), status_and_code(late)] == [(401, "signer_unknown")] * 2
    assert datetime.now(UTC) >= soon
    [shown] = as_owner.ok("GET", path_of(agent, "signers"))
    assert (shown["status"], shown["expiresAt"] is None) == ("active", False)


def test_a_quorum_does_not_count_who_is_outside_their_time(as_owner: Person, tenant: Tenant, agent: Agent) -> None:
    times = {"a": {}, "b": {"expiresAt": FAR}, "late": {"notBefore": FAR}}
    members = {name: new_signer(as_owner, agent, name, **given) for name, given in times.items()}
    quorum = new_quorum(as_owner, agent, [one["id"] for one in members.values()])["id"]

    def ask(*names: str) -> tuple[int, str | None]:
        order = Order(tenant.id, agent)
        pairs = [(members[name]["id"], members[name]["credentialSecret"]) for name in names]
        return status_and_code(order.send(order.quorum_headers(quorum, *pairs)))

    assert ask("a", "b") == (200, None)
    assert ask("a", "late") == (401, "signer_unknown")


def test_an_order_of_a_signer_who_is_over_cannot_be_approved(as_owner: Person, tenant: Tenant) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    made = new_signer(as_owner, agent, permissions=["transfer"], expiresAt=FAR)
    bring(agent, made)
    first, second = (transfer(agent).json()["data"]["txId"] for _ in range(2))
    tenant.ok("POST", f"/vault/{agent.id}/approve/{first}")

    as_owner.ok("PATCH", path_of(agent, "signers", made["id"]), {"expiresAt": None, "notBefore": FAR})
    answer = tenant.post(f"/vault/{agent.id}/approve/{second}", json={})

    assert status_and_code(answer) == (409, "authorization_stale")


async def test_times_are_sealed(agent: Agent, signer: dict[str, Any], owner: asyncpg.Connection) -> None:
    await owner.execute("UPDATE signers SET expires_at = expires_at + interval '1 us' WHERE id = $1", signer["id"])

    assert status_and_code(transfer(agent)) == (503, "authority_tampered")

"""A drill: an attacker has the api, the database as its owner, and every credential; only the touches are missing.

Each order needs two votes, ada's and ben's. The attacker has one of them, ada's, for the very order; ben's session, but
not ben's key; and mallory, an admin with a key that no rule names. No way may give a signature.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import pytest

from ops import places
from tests.fixtures.app_clients import app_client_of
from tests.fixtures.approvers import PRESENT, Authenticator, approver, quorum
from tests.fixtures.callers import Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy
from tests.fixtures.keepsakes import custody
from tests.fixtures.server import Service
from tests.routes.votes.test_rules import ballot

Item = dict[str, Any]


class Drill:
    """The attacker's means."""

    def __init__(self, service: Service, tenant: Tenant) -> None:
        self.service, self.tenant = service, tenant
        self.ada, self.ben, self.mallory = (approver(service, tenant) for _ in range(3))
        # A key of ben's that was stolen, and revoked when that was noticed; a careless rule still names it.
        self.stolen = Authenticator()
        self.stolen.id = self.ben.person.ok("POST", "/approver-keys", self.stolen.registration())["id"]
        self.client = app_client_of(self.ada.person)
        self.agent: Agent = tenant.agent()
        self.named = [
            self.ada.reference(),
            {**self.ben.reference(), "keys": [self.ben.authenticator.fingerprint, self.stolen.fingerprint]},
        ]
        self.old_head: Any = None

    def fresh(self) -> Item:
        """An agent of its own, and an order of it that ada voted for."""
        self.agent = self.tenant.agent()
        self.old_head = self.sql("SELECT version, count, mac FROM policy_heads WHERE agent_id = $1", self.agent.id)[0]
        config = {"threshold": 2, "approvers": self.named}
        sent = {"type": "approval-quorum", "enabled": True, "config": config}
        self.ada.person.ok("PUT", f"/agents/{self.agent.id}/policies", [sent])
        item = self.queue_order()
        assert self.ada.approve(item).status_code == 202
        return item

    def queue_order(self) -> Item:
        """Another order of the agent."""
        answer = self.agent.sign(value=5)
        assert answer.status_code == 202, answer.text
        found: Item = self.tenant.ok("GET", f"/approvals/{answer.json()['data']['approvalId']}")
        return found

    def sql(self, statement: str, *given: Any) -> list[Any]:
        """Run SQL as the owner of the database."""

        async def run() -> list[Any]:
            connection = await asyncpg.connect(self.service.database.owner_url)
            try:
                return list(await connection.fetch(statement, *given))
            finally:
                await connection.close()

        return asyncio.run(run())

    def signatures(self) -> int:
        """Count the signatures that the signer recorded."""
        return int(self.sql("SELECT count(*) AS n FROM audit WHERE action IN ('tx.signed', 'tx.approved')")[0]["n"])

    def rule_becomes(self, path: str, value: str) -> None:
        """Change the stored rule."""
        self.sql(
            "UPDATE policy_rules SET config = jsonb_set(config::jsonb, $2::text[], $3::jsonb)::text "
            "WHERE agent_id = $1",
            self.agent.id,
            path.split("."),
            value,
        )

    def put(self, who: Any, *rules: dict[str, Any]) -> None:
        """Replace the rules, or try to."""
        who.put(f"/agents/{self.agent.id}/policies", json=list(rules))

    def as_ben(self, item: Item, by: Authenticator | None = None, **changed: Any) -> None:
        """A vote in ben's session, by a key that the attacker holds."""
        key = by or self.mallory.authenticator
        said = changed.pop("said", {})
        vote = key.assertion(self.ben.challenge(item, **said), **changed)
        for key_id in (self.ben.authenticator.id, key.id):
            self.ben.approve(item, {**vote, "keyId": key_id})

    def by_ada(self, item: Item, **changed: Any) -> None:
        """Ada was made to touch her key for something else; it is sent in ben's name and in hers."""
        vote = self.ada.vote(item, **changed)
        self.ben.approve(item, vote)
        self.ada.approve(item, vote)

    def copy_vote(self, item: Item, key: str) -> None:
        """Ada's vote under ben's name."""
        self.sql(
            "INSERT INTO approval_votes SELECT tenant_id, kind, subject, $2::uuid, $3::uuid, authenticator_data, "
            "client_data, signature, until, voted_at FROM approval_votes WHERE subject = $1",
            item["id"],
            self.ben.person.id,
            key,
        )

    def moved_vote(self, item: Item) -> None:
        """Ben's vote for another order of the same agent."""
        other = self.queue_order()
        assert self.ben.approve(other).status_code == 202
        self.sql("UPDATE approval_votes SET subject = $1 WHERE subject = $2", item["id"], other["id"])

    def older_rules(self) -> None:
        """The rules before there were votes, with the head that was sealed for them."""
        version, count, mac = self.old_head
        self.sql("DELETE FROM policy_rules WHERE agent_id = $1", self.agent.id)
        self.sql("UPDATE agents SET policy_version = $2 WHERE id = $1", self.agent.id, version)
        self.sql(
            "UPDATE policy_heads SET version = $2, count = $3, mac = $4 WHERE agent_id = $1",
            self.agent.id,
            version,
            count,
            mac,
        )

    def register(self, item: Item) -> None:
        """A new key under ben's name, made in ben's session."""
        key = Authenticator()
        key.id = self.ben.person.ok("POST", "/approver-keys", key.registration())["id"]
        self.as_ben(item, key)
        self.ben.person.ok("DELETE", f"/approver-keys/{key.id}")

    def revive(self, item: Item) -> None:
        """The stolen key put back, row and MAC, as it was before it was revoked."""
        row = self.sql("SELECT mac FROM approver_keys WHERE id = $1", self.stolen.id)[0]
        self.ada.person.ok("DELETE", f"/approver-keys/{self.stolen.id}")
        self.sql("UPDATE approver_keys SET revoked_at = NULL, mac = $2 WHERE id = $1", self.stolen.id, row["mac"])
        self.as_ben(item, self.stolen)

    def set_back(self, *, restart: bool = False) -> None:
        """An order that was signed honestly, put back with all its votes. Its one signature is not the attacker's."""
        item = self.queue_order()
        assert self.ada.approve(item).status_code == 202
        assert self.ben.approve(item).status_code == 200
        self.sql(
            "UPDATE approvals SET status = 'pending', resolved_at = NULL, resolved_by = NULL WHERE id = $1", item["id"]
        )
        self.sql(
            "UPDATE transactions SET status = 'pending_approval', signature = NULL, signed_bytes = NULL, "
            "tx_hash = NULL, nonce = NULL, signed_at = NULL WHERE id = $1",
            item["txId"],
        )
        self.sql("DELETE FROM nonces WHERE tx_id = $1", item["txId"])
        if restart:
            self.service.kill("signer")
            self.service.start("signer")
            self.service.wait_until_ready()
        told = self.tenant.post(f"/approvals/{item['id']}/approve", json={})
        assert (told.status_code, told.json()["data"]["code"]) == (409, "approval_resolved"), told.text
        self.last_tries(item)

    def last_tries(self, item: Item) -> None:
        """Try what the attacker does at the end of every way."""
        for who in (self.tenant, self.ada.person, self.ben.person, self.mallory.person):
            answer = who.post(f"/approvals/{item['id']}/approve", json={})
            assert answer.status_code != 200, answer.text
        for one in (self.ada, self.mallory):
            assert one.approve(item).status_code != 200
        self.as_ben(item)


Way = Callable[[Drill, Item], Any]
ALL = "UPDATE approver_keys SET "
WAYS: dict[str, Way] = {
    # ---- by what the api may send
    "the tenant's key": lambda d, i: d.tenant.post(f"/approvals/{i['id']}/approve", json={}),
    "an app client": lambda d, i: d.client.post(f"/approvals/{i['id']}/approve", json={}),
    "the agent's own token": lambda d, i: d.agent.post(f"/approvals/{i['id']}/approve", json={}),
    "the other approve route": lambda d, i: d.tenant.post(f"/vault/{d.agent.id}/approve/{i['txId']}", json={}),
    "ben's session without a vote": lambda d, i: d.ben.person.post(f"/approvals/{i['id']}/approve", json={}),
    "ada's vote again": lambda d, i: d.ada.approve(i),
    "ada's vote in ben's session": lambda d, i: d.ben.approve(i, d.ada.vote(i)),
    "a vote of ben's by ada's key": lambda d, i: d.as_ben(i, d.ada.authenticator),
    "a vote of ben's by mallory's key": lambda d, i: d.as_ben(i),
    "mallory's vote": lambda d, i: d.mallory.approve(i),
    "a key registered in ben's session": lambda d, i: d.register(i),
    "a touch for a denial": lambda d, i: d.by_ada(i, said={"decision": "deny"}),
    "a touch for another tenant": lambda d, i: d.by_ada(i, said={"tenant": "other"}),
    "a touch for policies": lambda d, i: d.by_ada(i, said={"kind": "policies"}),
    "a touch for another digest": lambda d, i: d.by_ada(i, said={"digest": "00" * 32}),
    "a touch for another approval": lambda d, i: d.by_ada(i, said={"subject": i["txId"]}),
    "a touch for ben's name by ada": lambda d, i: d.by_ada(i, said={"user": d.ben.person.id}),
    "a touch on the service's own site": lambda d, i: d.by_ada(i, rp_id="localhost", client={"origin": d.service.url}),
    "a touch in a frame": lambda d, i: d.by_ada(i, client={"crossOrigin": True}),
    "a touch below another page": lambda d, i: d.by_ada(i, client={"topOrigin": "http://example.com"}),
    "a touch without a finger or code": lambda d, i: d.by_ada(i, flags=PRESENT),
    "a touch at a registration": lambda d, i: d.by_ada(i, client={"type": "webauthn.create"}),
    "a touch that ended": lambda d, i: d.by_ada(i, said={"seconds": -5}),
    "a touch that lasts for ever": lambda d, i: d.by_ada(i, said={"until": 2**32 - 1}),
    "no rules, by the tenant's key": lambda d, i: d.put(d.tenant),
    "no rules, by an admin": lambda d, i: d.put(d.mallory.person),
    "the rule disabled": lambda d, i: d.put(d.mallory.person, quorum(2, d.ada, d.ben, enabled=False)),
    "a lower threshold": lambda d, i: d.put(d.mallory.person, quorum(1, d.ada, d.ben)),
    "mallory among the approvers": lambda d, i: d.put(d.mallory.person, quorum(2, d.ada, d.ben, d.mallory)),
    "an amount below which nobody votes": lambda d, i: d.put(d.mallory.person, quorum(2, d.ada, d.ben, above="99")),
    "another rule instead": lambda d, i: d.put(d.tenant, rule("spending-limit", maxPerTx="9")),
    "no rules, by one vote of two": lambda d, i: d.ada.person.post(
        f"/agents/{d.agent.id}/policies/votes", json=ballot(d.agent, d.ada, [], 2)
    ),
    "no rules, by mallory's vote too": lambda d, i: d.mallory.person.post(
        f"/agents/{d.agent.id}/policies/votes", json=ballot(d.agent, d.mallory, [], 2)
    ),
    # ---- by what the owner of the database may write
    "the rule deleted": lambda d, i: d.sql("DELETE FROM policy_rules WHERE agent_id = $1", d.agent.id),
    "the rule deleted, then rules by the tenant's key": lambda d, i: (
        d.sql("DELETE FROM policy_rules WHERE agent_id = $1", d.agent.id),
        d.put(d.tenant),
    ),
    "the head deleted, then rules by the tenant's key": lambda d, i: (
        d.sql("DELETE FROM policy_heads WHERE agent_id = $1", d.agent.id),
        d.put(d.tenant),
    ),
    "the rule disabled in its row": lambda d, i: d.sql(
        "UPDATE policy_rules SET enabled = false WHERE agent_id = $1", d.agent.id
    ),
    "the threshold in its row": lambda d, i: d.rule_becomes("threshold", "1"),
    "mallory's key in its row": lambda d, i: d.rule_becomes(
        "approvers.1.keys.0", f'"{d.mallory.authenticator.fingerprint}"'
    ),
    "mallory in its row": lambda d, i: d.rule_becomes("approvers.1.userId", f'"{d.mallory.person.id}"'),
    "an amount in its row": lambda d, i: d.rule_becomes("above", '"99"'),
    "the rules of yesterday": lambda d, i: d.older_rules(),
    "the rules of yesterday, then rules by the tenant's key": lambda d, i: (d.older_rules(), d.put(d.tenant)),
    "ada's vote copied for ben": lambda d, i: d.copy_vote(i, d.ada.authenticator.id),
    "ada's vote copied for ben and ben's key": lambda d, i: d.copy_vote(i, d.ben.authenticator.id),
    "ben's vote for another order": lambda d, i: d.moved_vote(i),
    "mallory's key in ben's row": lambda d, i: (
        d.sql(ALL + "public_key = $2 WHERE id = $1", d.ben.authenticator.id, d.mallory.authenticator.public_key),
        d.as_ben(i),
    ),
    "mallory's key given to ben": lambda d, i: (
        d.sql(ALL + "user_id = $2 WHERE id = $1", d.mallory.authenticator.id, d.ben.person.id),
        d.as_ben(i),
    ),
    "ben's fingerprint beside mallory's key": lambda d, i: (
        d.sql("UPDATE approver_keys SET fingerprint = id::text WHERE id = $1", d.ben.authenticator.id),
        d.sql(ALL + "fingerprint = $2 WHERE id = $1", d.mallory.authenticator.id, d.ben.authenticator.fingerprint),
        d.as_ben(i),
    ),
    "another site for ben's key": lambda d, i: d.sql(ALL + "rp_id = 'localhost' WHERE id = $1", d.ben.authenticator.id),
    "a revoked key put back": lambda d, i: d.revive(i),
    "the digest in the item": lambda d, i: d.sql("UPDATE approvals SET digest = $2 WHERE id = $1", i["id"], bytes(32)),
    "another order behind the item": lambda d, i: d.sql(
        "UPDATE transactions SET order_text = replace(order_text, '\"5\"', '\"500\"') WHERE id = $1", i["txId"]
    ),
    "a break that nobody said": lambda d, i: d.sql(
        "INSERT INTO quorum_breaks SELECT tenant_id, agent_id, version, now() - interval '1 day', mac, now() "
        "FROM policy_heads WHERE agent_id = $1",
        d.agent.id,
    ),
    "a signed order put back with its votes": lambda d, i: d.set_back(),
    "the same after the signer was started again": lambda d, i: d.set_back(restart=True),
}


@pytest.fixture(scope="module")
def drill(postgres_home: places.Home, worker_id: str) -> Iterator[Drill]:
    """A deployment whose api and database the attacker controls."""
    with (
        deploy(database_apart(postgres_home, f"{worker_id}_quorum")) as service,
        new_tenant(service) as tenant,
    ):
        made = Drill(service, tenant)
        made.sql("CREATE TABLE keys_before AS TABLE approver_keys")
        yield made
        for one in (made.ada, made.ben, made.mallory):
            one.person.close()
        made.client.close()


@pytest.mark.parametrize("way", WAYS)
def test_no_way_gives_a_signature_without_the_touch(drill: Drill, way: str) -> None:
    item = drill.fresh()
    before = drill.signatures()
    honest = 1 if "put back with its votes" in way or "started again" in way else 0
    try:
        WAYS[way](drill, item)
        drill.last_tries(item)
    finally:
        drill.sql("DELETE FROM approver_keys WHERE id IN (SELECT id FROM keys_before)")
        drill.sql("INSERT INTO approver_keys SELECT * FROM keys_before")

    assert drill.signatures() == before + honest


def test_two_touches_give_one(drill: Drill) -> None:
    item, before = drill.fresh(), drill.signatures()

    assert drill.ben.approve(item).status_code == 200

    assert drill.signatures() == before + 1


def test_the_drill_has_ways_enough() -> None:
    assert len(WAYS) >= 40


CLOCK = (
    "CREATE OR REPLACE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
    "$$SELECT clock_timestamp() + interval '{} hours'$$"
)


def test_the_operator_breaks_a_quorum_after_a_day(drill: Drill) -> None:
    """Not before, whatever the tenant does; and not once it was cancelled, though its row is put back."""
    drill.fresh()
    broken = drill.agent
    kept = drill.tenant.ok("GET", f"/agents/{broken.id}/policies")
    assert break_quorum(drill, broken).startswith("The approval quorums")
    drill.tenant.ok("PUT", f"/agents/{broken.id}/policies", kept)
    drill.fresh()
    cancelled = drill.agent
    break_quorum(drill, cancelled)
    drill.sql("CREATE TABLE breaks_before AS SELECT * FROM quorum_breaks WHERE agent_id = $1", cancelled.id)
    assert break_quorum(drill, cancelled, "--cancel").startswith("Cancelled")
    drill.sql("DELETE FROM quorum_breaks WHERE agent_id = $1", cancelled.id)
    drill.sql("INSERT INTO quorum_breaks SELECT * FROM breaks_before")
    try:
        drill.sql(CLOCK.format(23))
        assert broken.sign(value=1).status_code == 202
        drill.sql(CLOCK.format(25))
        assert broken.sign(value=1).status_code == 200
        assert cancelled.sign(value=1).status_code == 202
        drill.put(drill.tenant, rule("allowed-chains", chains=[1]))
        assert drill.tenant.ok("GET", f"/agents/{cancelled.id}/policies")[0]["type"] == "approval-quorum"
        drill.tenant.ok("PUT", f"/agents/{broken.id}/policies", [])
    finally:
        drill.sql(CLOCK.format(0))


def break_quorum(drill: Drill, agent: Agent, *words: str) -> str:
    """Run `custody break-quorum` and return its output."""
    said = custody(drill.service, "break-quorum", "--tenant", drill.tenant.id, "--agent", agent.id, *words)
    assert said.returncode == 0, said.stderr
    return said.stdout

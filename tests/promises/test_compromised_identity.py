"""A drill: somebody has taken over identity. They have its database role, its key and its uid.

They can be any person, tenant or operator (docs/threats.md). Each way past that, to a key, a secret, the ledger, the
rules or an agent's token, is one row; none may succeed.
"""

import time
from collections.abc import Iterator
from typing import Any

import asyncpg
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from custody.worker import peers
from custody.worker.sealing import Context, Tampered, fields
from custody.worker.token_keys import SESSION_KEYS
from ops import places
from signer.policies import POLICY_MAC, content_of_stored
from tests.fixtures.callers import ADDRESS, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.forgery import claims_of, identity_sealer_of, sign_again
from tests.fixtures.people import member
from tests.fixtures.server import Service

LIMITS = rule("spending-limit", maxPerDay="1000"), rule("auto-approve-threshold", threshold="50")
STATEMENTS = {
    "reading a wallet's key, or a secret": "SELECT blob FROM sealed",
    "a key of theirs in a wallet's place": "UPDATE sealed SET blob = 'x'",
    "reading secrets": "SELECT * FROM secrets",
    "a credential route": "UPDATE credential_routes SET fields = '{}'",
    "reading orders": "SELECT * FROM transactions",
    "writing an order": "INSERT INTO transactions SELECT * FROM transactions",
    "approving": "UPDATE approvals SET status = 'approved', resolved_at = now()",
    "deleting spend": "DELETE FROM spend",
    "deleting a rate": "DELETE FROM rate",
    "putting a nonce back": "UPDATE nonces SET state = 'open'",
    "deleting a rule": "DELETE FROM policy_rules",
    "sealing rules": "UPDATE policy_heads SET mac = 'x'",
    "reviving a token": "UPDATE agents SET token_epoch = 1",
    "thawing an agent": "UPDATE agents SET frozen_at = NULL",
    "thawing a tenant": "UPDATE tenants SET frozen_at = NULL",
    "deleting a tenant": "DELETE FROM tenants",
    "a key that mints agents' tokens": "INSERT INTO token_keys (kid, public_key, mac) VALUES ('x', 'x', 'x')",
    "another key in its place": "UPDATE token_keys SET public_key = 'x'",
    "a version of the master key": "UPDATE key_versions SET begun_at = now()",
    "taking away what a request was answered": "DELETE FROM idempotency",
    "an agent's answer": "INSERT INTO idempotency "
    "(tenant_id, principal, route, key_hash, fingerprint, answer, expires_at) VALUES "
    " (current_setting('custody.tenant'), 'agent:a:b', 'r', 'x', 'x', 'x', now())",
    "an order's answer": "INSERT INTO idempotency "
    "(tenant_id, principal, route, key_hash, fingerprint, tx_id, expires_at) VALUES "
    " (current_setting('custody.tenant'), 'user:u', 'r', 'x', 'x', gen_random_uuid(), now())",
    "calling sign_write": "SELECT sign_write('t', 'a', NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "calling lock_agent": "SELECT lock_agent('t', 'a')",
    "calling outcome_write": "SELECT outcome_write('t', gen_random_uuid(), 'sent', 4, '{}')",
    "calling reveal_read": "SELECT * FROM reveal_read('t', 'a', gen_random_uuid())",
    "calling receipt_read": "SELECT * FROM receipt_read('t', 'a', gen_random_uuid())",
    "an event": """SELECT emit('a', '[{"event": "tx.signed", "data": {}}]')""",
    "sealing the log": "SELECT audit_waiting(NULL, 1)",
    "another role": "SET ROLE custody_signer",
    **{
        f"an audit row {action}": f"SELECT audit_append('agent', 'a', '{action}', 'x', 'x', '{{}}', '{{}}')"
        for action in (
            "tx.signed",
            "policy.replaced",
            "key.rotated",
            "agent.token_minted",
            "tenant.deleted",
        )
    },
}


class Attacker:
    """The attacker, beside a tenant with an agent that interests them."""

    def __init__(self, service: Service, tenant: Tenant) -> None:
        self.service, self.tenant, self.agent = service, tenant, tenant.agent(*LIMITS)
        self.sealer = identity_sealer_of(service)
        self.waiting = self.agent.sign(value=60).json()["data"]
        self.owner = member(service, tenant, "owner")

    async def execute(self, statement: str, *given: Any) -> str:
        """Run SQL as identity, in the tenant; what Postgres said."""
        connection = await asyncpg.connect(self.service.database.urls["identity"])
        try:
            await connection.execute("SELECT set_config('custody.tenant', $1, false)", self.tenant.id)
            return str(await connection.fetch(statement, *given))
        except asyncpg.PostgresError as problem:
            return type(problem).__name__
        finally:
            await connection.close()

    async def session_with_a_factor(self) -> str:
        """The owner's session, raised by their own hand."""
        await self.execute("UPDATE sessions SET mfa_at = now() WHERE user_id = $1 RETURNING id", self.owner.id)
        async with owner_of(self.service.database) as owner:
            return await sign_again(self.service, owner, self.owner.session["token"], mfa_at=int(time.time()))


@pytest.fixture(scope="module")
def attacker(postgres_home: places.Home, worker_id: str) -> Iterator[Attacker]:
    """A deployment whose identity is theirs."""
    with deploy(database_apart(postgres_home, f"{worker_id}_identity")) as service, new_tenant(service) as tenant:
        made = Attacker(service, tenant)
        yield made
        made.owner.close()


@pytest.mark.parametrize("what", STATEMENTS)
async def test_no_statement_leads_past_people(attacker: Attacker, what: str) -> None:
    assert await attacker.execute(STATEMENTS[what]) in ("InsufficientPrivilegeError", "RaiseError")


async def test_their_key_opens_nothing_of_the_signers(attacker: Attacker) -> None:
    async with owner_of(attacker.service.database) as owner:
        incarnation = str(await owner.fetchval("SELECT incarnation FROM agents WHERE id = $1", attacker.agent.id))
        blob = await owner.fetchval("SELECT blob FROM sealed WHERE owner = $1 AND purpose = 'evm'", attacker.agent.id)

    with pytest.raises(Tampered):
        attacker.sealer.open(blob, Context(attacker.tenant.id, "agent", attacker.agent.id, "evm", incarnation))
    master = (attacker.service.home / "master.key").read_text().split()[-1]
    assert master not in (attacker.service.home / "identity-key" / "identity.key").read_text()


@pytest.mark.parametrize("named", ["their own", "the signer's"])
async def test_an_agents_token_of_their_making_signs_nothing(attacker: Attacker, named: str) -> None:
    async with owner_of(attacker.service.database) as owner:
        kid = await owner.fetchval("SELECT kid FROM session_keys")
        blob = await owner.fetchval("SELECT blob FROM identity_sealed WHERE owner = $1", kid)
        signers = await owner.fetchval("SELECT kid FROM token_keys")
    key = Ed25519PrivateKey.from_private_bytes(attacker.sealer.open(blob, SESSION_KEYS.context(kid)))
    said = claims_of(attacker.agent.headers["Authorization"].split()[1])
    token = jwt.encode(said, key, "EdDSA", headers={"kid": kid if named == "their own" else signers})

    attacker.agent.headers["Authorization"], before = f"Bearer {token}", attacker.agent.headers["Authorization"]
    try:
        assert attacker.agent.sign(value=1).status_code == 401
    finally:
        attacker.agent.headers["Authorization"] = before


async def test_rules_that_they_seal_are_refused_even_when_somebody_writes_them(attacker: Attacker) -> None:
    agent = attacker.tenant.agent(*LIMITS)
    async with owner_of(attacker.service.database) as owner:
        found = await owner.fetchrow("SELECT incarnation::text, policy_version FROM agents WHERE id = $1", agent.id)
        await owner.execute("DELETE FROM policy_rules WHERE agent_id = $1", agent.id)
        version = found["policy_version"]
        content = content_of_stored(attacker.tenant.id, agent.id, found["incarnation"], (version, 0), version, "[]")
        mac = attacker.sealer.mac(POLICY_MAC, attacker.tenant.id, content)
        await owner.execute("UPDATE policy_heads SET count = 0, mac = $2 WHERE agent_id = $1", agent.id, mac)

    answer = agent.sign(value=2000)

    assert (answer.status_code, answer.json()["data"]["code"]) == (503, "policy_tampered")


async def test_a_person_of_their_making_stays_within_the_rules(attacker: Attacker) -> None:
    headers = {"Authorization": f"Bearer {await attacker.session_with_a_factor()}"}

    answers = {
        value: attacker.owner.post(
            f"/vault/{attacker.agent.id}/sign",
            json={"to": ADDRESS, "value": value, "broadcast": False, "chainId": 31337},
            headers=headers,
        ).status_code
        for value in ("1001", "1")
    }

    assert answers == {"1001": 403, "1": 200}


async def test_a_key_of_theirs_for_agents_counts_for_identity_alone(attacker: Attacker) -> None:
    mac = attacker.sealer.mac("token-key-mac", "platform", fields("agent", "mine", b"x" * 32))
    said = await attacker.execute("UPDATE token_keys SET mac = $1 RETURNING kid", mac)

    assert "Record" in said
    assert attacker.agent.sign(value=1).status_code == 200


def test_their_uid_is_no_peer_of_the_signer() -> None:
    uids = {name: places.UIDS[name] for name in ("api", "scheduler", "proxy")}

    for socket in (peers.SIGN_SOCKET, peers.REVEAL_SOCKET):
        assert peers.names_of(places.UIDS["identity"], socket, uids, places.UIDS["signer"]) == frozenset()


async def test_the_drill_would_notice(attacker: Attacker) -> None:
    """The attacker can do what docs/threats.md says: approve as the owner, whose second factor they made up."""
    headers = {"Authorization": f"Bearer {await attacker.session_with_a_factor()}"}

    answer = attacker.owner.post(f"/approvals/{attacker.waiting['approvalId']}/approve", json={}, headers=headers)

    assert answer.status_code == 200, answer.json()
    assert "Record" in await attacker.execute("SELECT 1 FROM identity_sealed UNION ALL SELECT 1 FROM users")

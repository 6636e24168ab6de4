"""A drill: somebody has taken over the api. He has its database role, its socket, and every credential he saw pass by.

Each way to a signature outside the policy is one row; none may succeed. What he may do with a credential that is still
valid, he can do (docs/threats.md): within the rules.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import asyncpg
import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes

from custody.cli import places
from tests.fixtures.callers import ADDRESS, Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deployed, owner_of
from tests.fixtures.server import Service

# Far above what the chain table allows for one gas, and for one transaction.
CAP_PER_GAS, CAP = 500 * 10**9, 10**17
LIMITS = rule("spending-limit", maxPerDay="1000"), rule("auto-approve-threshold", threshold="50")


class Attacker:
    """What he has: the socket, the api's database role, a tenant of his own, and what passed by."""

    def __init__(self, service: Service, tenant: Tenant, own: Tenant) -> None:
        self.service, self.tenant, self.own = service, tenant, own
        self.victim, self.own_agent = tenant.agent(*LIMITS), own.agent(*LIMITS)
        self.token, self.own_token = _token(self.victim), _token(self.own_agent)
        self.key, self.own_key = _tenant_key(tenant.key), _tenant_key(own.key)
        self.expired = self._minted(expiresIn="1s")
        self.revoked = self._minted()
        tenant.ok("DELETE", f"/agents/{self.victim.id}/tokens")
        self.token = self._minted()
        self.victim.headers["Authorization"] = f"Bearer {self.token['value']}"
        self.waiting, self.approved, self.denied = (self.victim.sign(value=v).json()["data"] for v in (60, 51, 52))
        tenant.ok("POST", f"/approvals/{self.approved['approvalId']}/approve", {})
        tenant.ok("POST", f"/approvals/{self.denied['approvalId']}/deny", {})

    def _minted(self, **body: str) -> dict[str, str]:
        return {"kind": "agent", "value": self.tenant.ok("POST", f"/agents/{self.victim.id}/token", body)["token"]}

    async def say(self, body: dict[str, Any], proof: Any = None, *, process: str = "api", **request: Any) -> Any:
        """Say something to the signer; its answer, or None where it hung up."""
        told = {"v": 1, "n": 1, "deadline_ms": 9000, "origin": {"request_id": "drill"}, "body": body, "proof": proof}
        return await self.send(frame(msgspec.msgpack.encode(told | request)), process=process)

    async def send(self, data: bytes, *, process: str = "api", version: int = 1, ends: bool = False) -> Any:
        """The same with bytes of his own making."""
        reader, writer = await asyncio.open_unix_connection(str(self.service.socket))
        try:
            writer.write(frame(msgspec.msgpack.encode({"version": version, "process": process})))
            if await _frame(reader) is None:
                return None
            writer.write(data)
            if ends:
                writer.write_eof()
            answer = await _frame(reader)
            return msgspec.msgpack.decode(answer)["outcome"] if answer else None
        finally:
            writer.close()

    async def execute(self, statement: str, *given: Any) -> str:
        """Run SQL as the api, in the victim's tenant; what Postgres said."""
        connection = await asyncpg.connect(self.service.database.urls["api"])
        try:
            await connection.execute("SELECT set_config('custody.tenant', $1, false)", self.tenant.id)
            return str(await connection.fetch(statement, *given))
        except asyncpg.PostgresError as problem:
            return type(problem).__name__
        finally:
            await connection.close()

    async def once_expired(self) -> Any:
        """Ask with a token that has expired."""
        expires = jwt.decode(self.expired["value"], options={"verify_signature": False})["exp"]
        while time.time() <= expires:
            await asyncio.sleep(0.02)
        return await self.say(order(self), self.expired)


def frame(data: bytes) -> bytes:
    """A frame of the protocol."""
    return len(data).to_bytes(4, "big") + data


def order(a: Attacker, value: int = 1, prepared: Any = None, agent: str | None = None, **fields: Any) -> dict[str, Any]:
    """A signing order as the api would send it."""
    told = {"to": ADDRESS, "value": str(value), "broadcast": False, "chainId": 31337, **fields}
    body = {"type": "SignEvm", "agent": agent or a.victim.id, "tx_id": str(uuid.uuid4()), "order": told}
    return body | {"prepared": prepared}


def approve(a: Attacker, item: str = "waiting", **fields: Any) -> dict[str, Any]:
    """An approval of an order that was queued."""
    return {"type": "Approve", "approval_id": getattr(a, item)["approvalId"], **fields}


def replace(a: Attacker) -> dict[str, Any]:
    """A policy without limits."""
    return {"type": "ReplacePolicies", "agent": a.victim.id, "policies": []}


def allow(a: Attacker) -> dict[str, Any]:
    """A configuration that lets everything pass which no rule covers."""
    judging = {"autoExpireSeconds": 0, "uncoveredEffects": "allow"}
    return {"type": "PutJudgingConfig", "document": "{}", "judging": judging}


def mint(a: Attacker) -> dict[str, Any]:
    """Another token of the victim."""
    return {"type": "MintAgentToken", "agent": a.victim.id, "ttl_seconds": 3600, "expires_in": "1h"}


def outcome(a: Attacker, word: str) -> dict[str, Any]:
    """What only a scheduler may say of a transaction."""
    return {"type": "BroadcastOutcome", "tenant": a.tenant.id, "tx_id": a.approved["txId"], "outcome": word}


def forged(a: Attacker, key: Any = None, algorithm: str = "EdDSA", **claims: Any) -> dict[str, str]:
    """A token that says what he likes, signed with a key of his own or not at all."""
    said = jwt.decode(a.token["value"], options={"verify_signature": False}) | claims
    headers = {"kid": jwt.get_unverified_header(a.token["value"])["kid"]}
    key = Ed25519PrivateKey.generate() if algorithm == "EdDSA" else key
    return {"kind": "agent", "value": jwt.encode(said, key, algorithm, headers=headers)}


def from_node(**said: int) -> dict[str, Any]:
    """What he says a node said."""
    return {"pending_nonce": 0, "gas_limit": 21_000, "max_fee": 10**9, "priority_fee": 1, **said}


Way = Callable[[Attacker], Awaitable[Any]]
WAYS: dict[str, Way] = {
    "no proof": lambda a: a.say(order(a)),
    "a forged token": lambda a: a.say(order(a), forged(a)),
    "a token without a signature": lambda a: a.say(order(a), forged(a, "", "none")),
    "a token signed with the public key as secret": lambda a: a.say(order(a), forged(a, "public" * 8, "HS256")),
    "his own agent's token": lambda a: a.say(order(a), a.own_token),
    "his own agent's token, renamed": lambda a: a.say(order(a), forged(a, tid=a.own.id)),
    "an expired token": lambda a: a.once_expired(),
    "a revoked token": lambda a: a.say(order(a), a.revoked),
    "the tenant's key": lambda a: a.say(order(a), a.key),
    "another agent's wallet": lambda a: a.say(order(a, agent="somebody"), a.token),
    "a chain that is not known": lambda a: a.say(order(a, chainId=5), a.token),
    "more than the limit": lambda a: a.say(order(a, 1001), a.token),
    "a negative amount": lambda a: a.say(order(a, -1), a.token),
    "approving without a proof": lambda a: a.say(approve(a)),
    "approving as the agent": lambda a: a.say(approve(a), a.token),
    "approving as another tenant": lambda a: a.say(approve(a), a.own_key),
    "approving with a key that he made up": lambda a: a.say(approve(a), _tenant_key("ck_" + "A" * 43)),
    "approving as the operator": lambda a: a.say(approve(a), _platform_key(a)),
    "approving twice": lambda a: a.say(approve(a, "approved"), a.key),
    "approving what was denied": lambda a: a.say(approve(a, "denied"), a.key),
    "approving something else than was shown": lambda a: a.say(approve(a, digest="00" * 32), a.key),
    "approving by another agent's name": lambda a: a.say(
        {"type": "Approve", "agent": a.own_agent.id, "tx_id": a.waiting["txId"]}, a.own_key
    ),
    "a nonce that leaves a gap": lambda a: a.say(order(a, nonce=900, broadcast=True, prepared=from_node()), a.token),
    "a nonce that the chain has used": lambda a: a.say(order(a, nonce=1, prepared=from_node(pending_nonce=7)), a.token),
    "a nonce beyond all": lambda a: a.say(order(a, prepared=from_node(pending_nonce=2**64 - 1)), a.token),
    "a fee below nothing": lambda a: a.say(order(a, prepared=from_node(max_fee=-1)), a.token),
    "a fee of the caller's above the cap": lambda a: a.say(order(a, maxFeePerGas=str(CAP_PER_GAS + 1)), a.token),
    "gas of the caller's above the cap": lambda a: a.say(order(a, gasLimit="10000000000"), a.token),
    "a raw hash": lambda a: a.say({"type": "SignHash", "agent": a.victim.id, "hash": "00" * 32}, a.token),
    "raw bytes": lambda a: a.say({**order(a), "raw": b"\x02"}, a.token),
    "a field that is not known": lambda a: a.say(order(a, force=True), a.token),
    "another version": lambda a: a.say(order(a), a.token, v=2),
    "a greeting in another version": lambda a: a.send(b"", version=2),
    "a frame without an end": lambda a: a.send((2**31 - 1).to_bytes(4, "big") + b"x" * 70_000, ends=True),
    "a frame cut short": lambda a: a.send(frame(b"x" * 100)[:50], ends=True),
    "a frame that is no message": lambda a: a.send(frame(b"\xc1" * 100)),
    "a frame of nothing": lambda a: a.send(bytes(4)),
    "the scheduler's name": lambda a: a.say(order(a), a.token, process="scheduler"),
    "the operator's name": lambda a: a.say(order(a), a.token, process="operator"),
    "the signer's name": lambda a: a.say(order(a), a.token, process="signer"),
    "saying that it failed, to free its spend": lambda a: a.say(outcome(a, "failed")),
    "saying that it was replaced": lambda a: a.say(outcome(a, "replaced")),
    "saying as a scheduler that it was replaced": lambda a: a.say(outcome(a, "replaced"), process="scheduler"),
    "making a tenant": lambda a: a.say({"type": "CreateTenant", "id": "mine", "name": "Mine"}),
    "making a tenant with a tenant's key": lambda a: a.say({"type": "CreateTenant", "id": "mine", "name": "M"}, a.key),
    "deleting a tenant": lambda a: a.say({"type": "DeleteTenant", "id": a.tenant.id}, a.own_key),
    "deleting another tenant's agent": lambda a: a.say({"type": "DeleteAgent", "agent": a.victim.id}, a.own_key),
    "loosening as the agent": lambda a: a.say(replace(a), a.token),
    "loosening as another agent": lambda a: a.say(replace(a), a.own_token),
    "loosening as another tenant": lambda a: a.say(replace(a), a.own_key),
    "judging loosely as the agent": lambda a: a.say(allow(a), a.token),
    "another token as the agent": lambda a: a.say(mint(a), a.token),
    "another token as another tenant": lambda a: a.say(mint(a), a.own_key),
}
STATEMENTS = {
    "reading a key": "SELECT blob FROM sealed",
    "writing a signature": "UPDATE transactions SET status = 'signed', signature = 'x'",
    "writing an order": "INSERT INTO transactions SELECT * FROM transactions",
    "writing an approval": "UPDATE approvals SET status = 'approved', resolved_at = now() WHERE status = 'pending'",
    "deleting a rule": "DELETE FROM policy_rules",
    "deleting spend": "DELETE FROM spend",
    "putting a nonce back": "UPDATE nonces SET state = 'open'",
    "deleting a rate": "DELETE FROM rate",
    "writing a tenant's key": "INSERT INTO tenant_keys SELECT * FROM tenant_keys",
    "writing an operator's key": "INSERT INTO platform_keys (key_hash, prefix, mac) VALUES ('x', 'x', 'x')",
    "writing a token key": "INSERT INTO token_keys (kid, public_key) VALUES ('x', 'x')",
    "reviving a token": "UPDATE agents SET token_epoch = 1",
    "an answer of his own": "UPDATE idempotency SET answer = 'x'",
    "calling sign_write": "SELECT sign_write('t', 'a', gen_random_uuid(), 1, 1, 1, 1, NULL, NULL, NULL, NULL)",
    "calling replace_policies": "SELECT replace_policies('t', 'a', gen_random_uuid(), 1, 1, '', '{}', '{}', '{}', "
    "'{}', NULL, 'p', 'r', NULL, NULL, NULL, 'system', 'me', '{}', '{}')",
    "calling outcome_write": "SELECT outcome_write('t', gen_random_uuid(), 'sent', '{}')",
    "calling lock_agent": "SELECT lock_agent('t', 'a')",
    "calling claim_unsent": "SELECT claim_unsent(1)",
    "an audit row of the signer": "SELECT audit_append('agent', 'a', 'tx.signed', 'transaction', 'x', '{}', '{}')",
    "another role": "SET ROLE custody_signer",
}


# What a node is said to ask for.
HUGE = (
    {"max_fee": 10**18}, {"gas_limit": 10**12}, {"gas_limit": -1}, {"priority_fee": 10**18},
    {"max_fee": 10**12, "gas_limit": 10**6},
)  # fmt: skip


@pytest.fixture(scope="module")
def attacker(postgres_home: places.Home, worker_id: str) -> Iterator[Attacker]:
    """A deployment whose api is his."""
    with (
        deployed(database_apart(postgres_home, f"{worker_id}_drill")) as service,
        new_tenant(service) as tenant,
        new_tenant(service) as own,
    ):
        yield Attacker(service, tenant, own)


@pytest.mark.parametrize("way", WAYS)
async def test_no_message_leads_to_a_signature_outside_the_policy(attacker: Attacker, way: str) -> None:
    before = await _state(attacker)

    answer = await WAYS[way](attacker)

    assert answer is None or answer["type"] in ("Failed", "Refused"), answer
    assert await _state(attacker) == before


@pytest.mark.parametrize("what", STATEMENTS)
async def test_no_statement_leads_to_a_signature(attacker: Attacker, what: str) -> None:
    before = await _state(attacker)

    said = await attacker.execute(STATEMENTS[what])

    assert said in ("InsufficientPrivilegeError", "RaiseError")
    assert await _state(attacker) == before


@pytest.mark.parametrize("said", HUGE)
async def test_no_fee_that_a_node_is_said_to_ask_for_is_paid_above_the_cap(attacker: Attacker, said: Any) -> None:
    answer = await attacker.say(order(attacker, prepared=from_node(**said)), attacker.token)

    paid = TypedTransaction.from_bytes(HexBytes(answer["raw"])).as_dict()
    assert paid["maxFeePerGas"] <= CAP_PER_GAS
    assert paid["maxPriorityFeePerGas"] <= paid["maxFeePerGas"]
    assert paid["gas"] * paid["maxFeePerGas"] <= CAP


@pytest.mark.parametrize("way", ["signing", "approving"])
async def test_the_drill_would_notice_a_signature(attacker: Attacker, way: str) -> None:
    before = await _state(attacker)

    within = {"signing": (order(attacker), attacker.token), "approving": (approve(attacker), attacker.key)}
    answer = await attacker.say(*within[way])

    assert answer["type"] == "Signed"
    assert await _state(attacker) != before


_STATE = (
    "SELECT md5(string_agg(x::text, '|' ORDER BY x::text)) FROM (SELECT id, signature, status FROM transactions "
    "WHERE tenant_id = $1 AND status <> 'rejected') x",
    *(
        f"SELECT md5(string_agg(x::text, '|' ORDER BY x::text)) FROM {table} x WHERE tenant_id = $1"
        for table in (
            "approvals",
            "policy_rules",
            "policy_heads",
            "spend",
            "nonces",
            "tenant_keys",
            "tenant_config",
            "sealed",
        )
    ),
    "SELECT md5(string_agg(x::text, '|')) FROM (SELECT id, token_epoch, policy_version, incarnation FROM agents "
    "WHERE tenant_id = $1 ORDER BY id) x",
    "SELECT count(*) + count(*) FILTER (WHERE id = $1) FROM tenants",
)


async def _state(attacker: Attacker) -> list[Any]:
    """Everything of the victim's that is signed or judged by."""
    async with owner_of(attacker.service.database) as owner:
        return [await owner.fetchval(query, attacker.tenant.id) for query in _STATE]


async def _frame(reader: asyncio.StreamReader) -> bytes | None:
    try:
        async with asyncio.timeout(15):
            return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _token(agent: Agent) -> dict[str, str]:
    return {"kind": "agent", "value": agent.headers["Authorization"].split()[1]}


def _tenant_key(value: str) -> dict[str, str]:
    return {"kind": "tenant_key", "value": value}


def _platform_key(a: Attacker) -> dict[str, str]:
    return {"kind": "platform_key", "value": a.service.platform_key}

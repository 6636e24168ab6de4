"""A drill: an attacker controls the api. They have its database role, its socket, and every credential that passed by.

Each way to a signature outside the policy is one row; none may succeed. With a credential that is still valid the
attacker does what it allows (docs/threats.md): within the rules.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes

from custody.protocol.frames import VERSION
from ops import places
from tests.fixtures.callers import ADDRESS, Agent, Tenant, new_tenant, platform_client, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.eventually import soon
from tests.fixtures.people import Person, member, says
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import outcome_of, worker_socket
from tests.outside.wallet import Wallet

# Far above what the chain table allows for one gas, and for one transaction.
CAP_PER_GAS, CAP = 500 * 10**9, 10**17
LIMITS = rule("spending-limit", maxPerDay="1000"), rule("auto-approve-threshold", threshold="50")


class Attacker:
    """The attacker, with the socket, the api's database role, a tenant of their own, and what passed by."""

    def __init__(self, service: Service, tenant: Tenant, own: Tenant) -> None:
        self.service, self.tenant, self.own = service, tenant, own
        self.victim, self.own_agent = tenant.agent(*LIMITS), own.agent(*LIMITS)
        self.token, self.own_token = _token(self.victim), _token(self.own_agent)
        self.key, self.own_key = _tenant_key(tenant.key), _tenant_key(own.key)
        self.expired = self._mint(expiresIn="1s")
        self.revoked = self._mint()
        tenant.ok("DELETE", f"/agents/{self.victim.id}/tokens")
        self.token = self._mint()
        self.victim.headers["Authorization"] = f"Bearer {self.token['value']}"
        self.waiting, self.waiting_too, self.approved, self.denied = (
            self.victim.sign(value=value).json()["data"] for value in (60, 61, 51, 52)
        )
        tenant.ok("POST", f"/approvals/{self.approved['approvalId']}/approve", {})
        tenant.ok("POST", f"/approvals/{self.denied['approvalId']}/deny", {})
        self._know_people()

    def _know_people(self) -> None:
        """Sessions of all kinds passed by as well; the owner's, with its second factor, is what the attacker wants."""
        self.owner, self.fallen = (member(self.service, self.tenant, "owner", mfa=True) for _ in range(2))
        self.plain = member(self.service, self.tenant, "owner")
        self.stranger = member(self.service, self.own, "owner", mfa=True)
        self.viewer = member(self.service, self.tenant, "viewer", mfa=True)
        self.gone = member(self.service, self.tenant, "owner", mfa=True)
        self.gone.ok("POST", "/auth/logout")
        self.spent = self.plain.session["refreshToken"]
        self.plain.take(self.plain.refresh().json()["data"])
        with platform_client(self.service) as platform:
            members = f"/platform/tenants/{self.tenant.id}/members"
            platform.ok("POST", members, {"userId": self.fallen.id, "role": "viewer"})

    def close(self) -> None:
        """Close the clients of the people."""
        for person in (self.owner, self.fallen, self.plain, self.stranger, self.viewer, self.gone):
            person.close()

    def _mint(self, **body: str) -> dict[str, str]:
        return {"kind": "agent", "value": self.tenant.ok("POST", f"/agents/{self.victim.id}/token", body)["token"]}

    async def say(self, body: dict[str, Any], proof: Any = None, *, process: str = "api", **request: Any) -> Any:
        """Say something to the worker that it is for; its answer, or None where it hung up."""
        told = {
            "v": VERSION,
            "n": 1,
            "deadline_ms": 9000,
            "origin": {"request_id": "drill"},
            "body": body,
            "proof": proof,
        }
        path = worker_socket(self.service, body["type"])
        return await self.send(frame(msgspec.msgpack.encode(told | request)), process=process, path=path)

    async def send(
        self, data: bytes, *, process: str = "api", version: int = VERSION, ends: bool = False, path: Path | None = None
    ) -> Any:
        """The same with bytes that the attacker made up."""
        reader, writer = await asyncio.open_unix_connection(str(path or self.service.socket))
        try:
            writer.write(frame(msgspec.msgpack.encode({"version": version, "process": process})))
            if await _frame(reader) is None:
                return None
            writer.write(data)
            if ends:
                writer.write_eof()
            answer = await _frame(reader)
            return outcome_of(msgspec.msgpack.decode(answer)) if answer else None
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
        await soon(lambda: time.time() > expires)
        return await self.say(order(self), self.expired)


def frame(data: bytes) -> bytes:
    """A frame of the protocol."""
    return len(data).to_bytes(4, "big") + data


def order(a: Attacker, value: int = 1, prepared: Any = None, agent: str | None = None, **fields: Any) -> dict[str, Any]:
    """A signing order as the api would send it."""
    told = {"to": ADDRESS, "value": str(value), "broadcast": False, "chainId": 31337, **fields}
    body = {"type": "SignOrder", "agent": agent or a.victim.id, "tx_id": str(uuid.uuid4()), "prepared": prepared}
    return body | {"question": {"kind": "evm", "request": told}}


def approve(a: Attacker, item: str = "waiting", **fields: Any) -> dict[str, Any]:
    """An approval of an order that was queued."""
    return {"type": "Approve", "approval_id": getattr(a, item)["approvalId"], **fields}


def replace(a: Attacker) -> dict[str, Any]:
    """A policy without limits."""
    return {"type": "ReplacePolicies", "agent": a.victim.id, "policies": []}


def allow(a: Attacker) -> dict[str, Any]:
    """A configuration that lets everything pass which no rule covers."""
    judging = {"autoExpireSeconds": 0, "uncoveredEffects": "allow"}
    return {"type": "PutConfig", "document": "{}", "judging": judging}


def join(a: Attacker) -> dict[str, Any]:
    """A membership of the victim's tenant."""
    return {"type": "PutMember", "tenant": a.tenant.id, "user": a.stranger.id, "role": "owner"}


def mint(a: Attacker) -> dict[str, Any]:
    """Another token of the victim."""
    return {"type": "MintAgentToken", "agent": a.victim.id, "ttl_seconds": 3600, "expires_in": "1h"}


def outcome(a: Attacker, word: str) -> dict[str, Any]:
    """Tell the signer an outcome of a transaction, which only a scheduler may do."""
    return {"type": "BroadcastOutcome", "tenant": a.tenant.id, "tx_id": a.approved["txId"], "outcome": word}


def forge(a: Attacker, key: Any = None, algorithm: str = "EdDSA", **claims: Any) -> dict[str, str]:
    """An agent token with made-up claims, signed with the attacker's key or not at all."""
    said = jwt.decode(a.token["value"], options={"verify_signature": False}) | claims
    headers = {"kid": jwt.get_unverified_header(a.token["value"])["kid"]}
    key = Ed25519PrivateKey.generate() if algorithm == "EdDSA" else key
    return {"kind": "agent", "value": jwt.encode(said, key, algorithm, headers=headers)}


def forged_session(a: Attacker, person: Person, **claims: Any) -> dict[str, str]:
    """A person's token with made-up claims, signed with the attacker's key."""
    token = person.session["token"]
    said = jwt.decode(token, options={"verify_signature": False}) | claims
    headers = {"kid": jwt.get_unverified_header(token)["kid"]}
    value = jwt.encode(said, Ed25519PrivateKey.generate(), "EdDSA", headers=headers)
    return {"kind": "session", "value": value}


async def wallet_of_another(a: Attacker) -> Any:
    """Sign in as the owner, with a message of the owner that somebody else signed."""
    nonce = (await a.say({"type": "NewNonce"}))["data"]["nonce"]
    text = says(a.service, nonce).text(a.owner.wallet.address)
    return await a.say({"type": "SignInWithWallet", "message": text, "signature": Wallet().sign(text)})


async def guessed_code(a: Attacker) -> Any:
    """Sign in by mail with a guessed code."""
    await a.say({"type": "NewEmailCode", "email": "owner@example.com"})
    return await a.say({"type": "SignInWithEmail", "email": "owner@example.com", "code": "no code"})


def from_node(**said: int) -> dict[str, Any]:
    """A node's answer that the attacker made up."""
    return {"type": "evm", "pending_nonce": 0, "gas_limit": 21_000, "max_fee": 10**9, "priority_fee": 1, **said}


Way = Callable[[Attacker], Awaitable[Any]]
WAYS: dict[str, Way] = {
    "no proof": lambda a: a.say(order(a)),
    "a forged token": lambda a: a.say(order(a), forge(a)),
    "a token without a signature": lambda a: a.say(order(a), forge(a, "", "none")),
    "a token signed with the public key as secret": lambda a: a.say(order(a), forge(a, "public" * 8, "HS256")),
    "the attacker's own agent's token": lambda a: a.say(order(a), a.own_token),
    "the attacker's own agent's token, renamed": lambda a: a.say(order(a), forge(a, tid=a.own.id)),
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
    "approving with a made-up key": lambda a: a.say(approve(a), _tenant_key("ck_" + "A" * 43)),
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
    "another version": lambda a: a.say(order(a), a.token, v=VERSION + 1),
    "a greeting in another version": lambda a: a.send(b"", version=VERSION + 1),
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
PEOPLE: dict[str, Way] = {
    "a forged session": lambda a: a.say(approve(a), forged_session(a, a.owner)),
    "a session of a tenant that it is not of": lambda a: a.say(
        approve(a), forged_session(a, a.stranger, tid=a.tenant.id)
    ),
    "a second factor that a session never showed": lambda a: a.say(
        approve(a), forged_session(a, a.plain, mfa_at=int(time.time()))
    ),
    "a session without a second factor": lambda a: a.say(approve(a), _session(a.plain)),
    "a session of another tenant": lambda a: a.say(approve(a), _session(a.stranger)),
    "a session that ended": lambda a: a.say(approve(a), _session(a.gone)),
    "a role that its token still has": lambda a: a.say(approve(a), _session(a.fallen)),
    "a viewer": lambda a: a.say(approve(a), _session(a.viewer)),
    "a session as a tenant's key": lambda a: a.say(approve(a), _tenant_key(a.owner.session["token"])),
    "a session as an agent": lambda a: a.say(order(a), {"kind": "agent", "value": a.owner.session["token"]}),
    "an agent as a session": lambda a: a.say(approve(a), {"kind": "session", "value": a.token["value"]}),
    "a refresh token as a session": lambda a: a.say(
        approve(a), {"kind": "session", "value": a.owner.session["refreshToken"]}
    ),
    "a made-up app client": lambda a: a.say(
        replace(a), {"kind": "app_client", "value": f"{a.tenant.id}/server:app_{'A' * 43}"}
    ),
    "stepping up without evidence": lambda a: a.say({"type": "StepUp", "method": "totp"}, _session(a.plain)),
    "stepping up with a code that is none": lambda a: a.say(
        {"type": "StepUp", "method": "recovery", "code": "AAAA-AAAA"}, _session(a.plain)
    ),
    "stepping up with a passkey that is none": lambda a: a.say(
        {"type": "StepUp", "method": "passkey", "credential": {"id": "x"}}, _session(a.plain)
    ),
    "confirming an authenticator that was not begun": lambda a: a.say(
        {"type": "ConfirmTotp", "code": "000000"}, _session(a.plain)
    ),
    "a wallet of another": wallet_of_another,
    "a guessed code by mail": guessed_code,
    "a passkey that is none": lambda a: a.say({"type": "SignInWithPasskey", "credential": {"id": "x"}}),
    "a made-up refresh token": lambda a: a.say({"type": "RefreshSession", "refresh_token": "rt_" + "A" * 75}),
    "a refresh token that was used": lambda a: a.say({"type": "RefreshSession", "refresh_token": a.spent}),
    "letting a device in as nobody": lambda a: a.say({"type": "DecideDevice", "user_code": "x", "approve": True}),
    "letting a device in as an agent": lambda a: a.say(
        {"type": "DecideDevice", "user_code": "x", "approve": True}, a.token
    ),
    "going over to the victim's tenant": lambda a: a.say(
        {"type": "SwitchTenant", "tenant": a.tenant.id}, _session(a.stranger)
    ),
    "becoming a member with a tenant's key": lambda a: a.say(join(a), a.own_key),
    "becoming a member as an owner": lambda a: a.say(join(a), _session(a.owner)),
    "an app client with a tenant's key": lambda a: a.say(
        {"type": "PutAppClients", "clients": [{"id": "his", "name": "His"}], "mode": "create"}, a.key
    ),
    "a secret of an app client without a second factor": lambda a: a.say(
        {"type": "CreateAppSecret", "client": "server"}, _session(a.plain)
    ),
    "a key that signs requests as a viewer": lambda a: a.say({"type": "CreateSigningKey"}, _session(a.viewer)),
    "a looser second factor with a tenant's key": lambda a: a.say(
        {"type": "PutConfig", "document": "{}", "judging": {"mfa": {"requireFor": {"approvals": False}}}}, a.key
    ),
    "a platform key through the api": lambda a: a.say(
        {"type": "CreatePlatformKey", "name": "His", "scopes": ["platform:tenant:write"]}, _platform_key(a)
    ),
}
WAYS |= PEOPLE
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
    "a made-up answer": "UPDATE idempotency SET answer = 'x'",
    "calling sign_write": "SELECT sign_write('t', 'a', NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "an authorised intent": "UPDATE intents SET status = 'authorized'",
    "calling take_step": "SELECT take_step('t', NULL)",
    "a false answer to an order": "SELECT finish_account_act(ROW('me', 'POST /vault/{agentId}/sign', 'k', 'f', 'a', "
    "'system', 'me', '{}', NULL)::act, 'account.created', 'a')",
    "a false act": "SELECT finish_account_act(ROW('me', NULL, NULL, NULL, NULL, 'system', 'me', '{}', NULL)::act, "
    "'tx.signed', 'a')",
    "calling replace_policies": "SELECT replace_policies('t', NULL, NULL, 'a', gen_random_uuid(), 1, 1, '', '{}')",
    "calling outcome_write": "SELECT outcome_write('t', gen_random_uuid(), 'sent', 4, '{}')",
    "calling lock_agent": "SELECT lock_agent('t', 'a')",
    "calling claim_unsent": "SELECT claim_unsent(1, 5, 300)",
    "an audit row of the signer": "SELECT audit_append('agent', 'a', 'tx.signed', 'transaction', 'x', '{}', '{}')",
    "another role": "SET ROLE custody_signer",
    "a user": "INSERT INTO users (id, created_at) VALUES (gen_random_uuid(), now())",
    "the attacker's wallet to the owner's account": "UPDATE identities SET user_id = user_id",
    "a membership": "INSERT INTO memberships SELECT * FROM memberships",
    "a role": "UPDATE memberships SET role = 'owner'",
    "a session": "INSERT INTO sessions SELECT * FROM sessions",
    "a second factor in a session": "UPDATE sessions SET mfa_at = now()",
    "reviving a session": "UPDATE sessions SET revoked_at = NULL",
    "reading sessions": "SELECT mac FROM sessions",
    "an earlier generation": "UPDATE sessions SET generation = 1",
    "a nonce": "INSERT INTO sign_in_nonces (nonce_hash, expires_at) VALUES ('x', now())",
    "reading codes": "SELECT mac FROM sign_in_codes",
    "more tries for a code": "UPDATE sign_in_codes SET tries = 0",
    "forgetting guesses": "DELETE FROM attempts",
    "a factor": "INSERT INTO factors SELECT * FROM factors",
    "removing factors": "DELETE FROM factors",
    "an older step again": "UPDATE factors SET last_step = 0",
    "an enrolment": "UPDATE enrolments SET mac = 'x'",
    "a recovery code again": "UPDATE recovery_codes SET used_at = NULL",
    "a passkey": "UPDATE passkeys SET public_key = 'x'",
    "a challenge": "INSERT INTO challenges (challenge_hash, purpose, expires_at) VALUES ('x', 'step_up', now())",
    "letting a device in": "UPDATE device_codes SET status = 'approved'",
    "an app client": "UPDATE app_clients SET enabled = true",
    "an app secret": "UPDATE app_secrets SET revoked_at = NULL",
    "a signing key": "UPDATE signing_keys SET revoked_at = NULL",
    "forgetting a signature": "DELETE FROM used_signatures",
    "calling session_proof": "SELECT * FROM session_proof(gen_random_uuid(), gen_random_uuid(), 't', 0)",
    "calling count_attempt": "SELECT count_attempt('x', 1, 1)",
    "calling demand_credential": "SELECT demand_credential('t', NULL)",
    "an audit row of a session": "SELECT audit_append('user', 'a', 'session.began', 'session', 'x', '{}', '{}')",
}


# What a node is said to ask for.
HUGE = (
    {"max_fee": 10**18},
    {"gas_limit": 10**12},
    {"gas_limit": -1},
    {"priority_fee": 10**18},
    {"max_fee": 10**12, "gas_limit": 10**6},
)


@pytest.fixture(scope="module")
def attacker(postgres_home: places.Home, worker_id: str) -> Iterator[Attacker]:
    """A deployment whose api the attacker controls."""
    with (
        deploy(database_apart(postgres_home, f"{worker_id}_drill")) as service,
        new_tenant(service) as tenant,
        new_tenant(service) as own,
    ):
        made = Attacker(service, tenant, own)
        yield made
        made.close()


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


async def test_a_device_that_nobody_let_in_gets_no_session(attacker: Attacker) -> None:
    code = (await attacker.say({"type": "NewDeviceCode", "tenant": attacker.tenant.id}))["device_code"]

    answers = [await attacker.say({"type": "PollDeviceCode", "device_code": given}) for given in (code, "made up")]

    assert [answer["error"] for answer in answers] == ["authorization_pending", "expired_token"]
    assert all("session" not in answer for answer in answers)


WITHIN: dict[str, Way] = {
    "signing": lambda a: a.say(order(a), a.token),
    "approving": lambda a: a.say(approve(a, "waiting"), a.key),
    "approving as the owner": lambda a: a.say(approve(a, "waiting_too"), _session(a.owner)),
}


@pytest.mark.parametrize("way", WITHIN)
async def test_the_drill_would_notice_a_signature(attacker: Attacker, way: str) -> None:
    before = await _state(attacker)

    answer = await WITHIN[way](attacker)

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
            "identity_sealed",
            "memberships",
            "app_clients",
            "app_secrets",
            "signing_keys",
        )
    ),
    "SELECT md5(string_agg(x::text, '|')) FROM (SELECT id, user_id, mfa_at FROM sessions ORDER BY id) x WHERE $1 <> ''",
    "SELECT md5(string_agg(x::text, '|')) FROM (SELECT * FROM identities ORDER BY kind, subject) x WHERE $1 <> ''",
    "SELECT md5(string_agg(x::text, '|')) FROM (SELECT * FROM factors ORDER BY user_id, kind) x WHERE $1 <> ''",
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
        async with asyncio.timeout(60):
            return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _token(agent: Agent) -> dict[str, str]:
    return {"kind": "agent", "value": agent.headers["Authorization"].split()[1]}


def _tenant_key(value: str) -> dict[str, str]:
    return {"kind": "tenant_key", "value": value}


def _session(person: Person) -> dict[str, str]:
    return {"kind": "session", "value": person.session["token"]}


def _platform_key(a: Attacker) -> dict[str, str]:
    return {"kind": "platform_key", "value": a.service.platform_key}

"""A drill: somebody has taken over the api. He has its database role, its socket, and every credential he saw pass by.

Each way to a signature outside the policy is one row; none may succeed. What he may do with a credential that is still
valid, he can do (docs/threats.md): within the rules.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import asyncpg
import jwt
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from custody.cli import places
from tests.fixtures.callers import ADDRESS, Agent, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deployed, owner_of
from tests.fixtures.server import Service

LIMIT = 100
CAP_PER_GAS, CAP = 500 * 10**9, 10**17
KEY = {"kind": "tenant_key", "value": "ck_" + "A" * 43}


class Attacker:
    """What he has."""

    def __init__(self, service: Service, victim: Agent, tenant: Tenant, own: Tenant, own_agent: Agent) -> None:
        self.service = service
        self.victim, self.tenant = victim, tenant
        # A tenant of his own, as everybody may have.
        self.own, self.own_agent = own, own_agent
        self.token = {"kind": "agent", "value": victim.headers["Authorization"].split()[1]}
        self.own_token = {"kind": "agent", "value": own_agent.headers["Authorization"].split()[1]}
        self.own_key = {"kind": "tenant_key", "value": own.key}
        self.waiting = victim.sign(value=60).json()["data"]

    async def say(self, body: dict[str, Any], proof: Any = None, *, process: str = "api", **request: Any) -> Any:
        """Say something to the signer; its answer, or None where it hung up."""
        told = {"v": 1, "n": 1, "deadline_ms": 9000, "origin": {"request_id": "drill"}, "body": body, "proof": proof}
        return await self.send(frame(msgspec.msgpack.encode(told | request)), process=process)

    async def send(self, data: bytes, *, process: str = "api") -> Any:
        """The same with bytes of his own making."""
        reader, writer = await asyncio.open_unix_connection(str(self.service.socket))
        try:
            writer.write(frame(msgspec.msgpack.encode({"version": 1, "process": process})))
            if not await reader.read(4) or not await reader.read(4096):
                return None
            writer.write(data)
            writer.write_eof()
            length = int.from_bytes(await asyncio.wait_for(reader.read(4), 15), "big")
            return msgspec.msgpack.decode(await reader.readexactly(length))["outcome"] if length else None
        except ConnectionError:
            return None
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


def frame(data: bytes) -> bytes:
    """A frame of the protocol."""
    return len(data).to_bytes(4, "big") + data


def order(agent: Agent, value: int = 1, prepared: Any = None, **fields: Any) -> dict[str, Any]:
    """A signing order as the api would send it."""
    told = {"to": ADDRESS, "value": str(value), "broadcast": False, "chainId": 31337, **fields}
    return {"type": "SignEvm", "agent": agent.id, "tx_id": str(uuid.uuid4()), "order": told, "prepared": prepared}


def approve(a: Attacker, **fields: Any) -> dict[str, Any]:
    """An approval of what waits for a person."""
    return {"type": "Approve", "approval_id": a.waiting["approvalId"], **fields}


def replace(a: Attacker) -> dict[str, Any]:
    """A policy without limits."""
    return {"type": "ReplacePolicies", "agent": a.victim.id, "policies": []}


def forged(a: Attacker, **claims: Any) -> dict[str, str]:
    """A token that says what it likes, signed with a key of his own."""
    said = jwt.decode(a.token["value"], options={"verify_signature": False}) | claims
    kid = jwt.get_unverified_header(a.token["value"])["kid"]
    return {"kind": "agent", "value": jwt.encode(said, Ed25519PrivateKey.generate(), "EdDSA", headers={"kid": kid})}


def unsigned(a: Attacker) -> dict[str, str]:
    """A token that asks to be believed without a signature."""
    said = jwt.decode(a.token["value"], options={"verify_signature": False})
    kid = jwt.get_unverified_header(a.token["value"])["kid"]
    return {"kind": "agent", "value": jwt.encode(said, None, "none", headers={"kid": kid})}


def huge(**fees: int) -> dict[str, Any]:
    """What a node never said."""
    return {"pending_nonce": 0, "gas_limit": 21_000, "max_fee": 10**9, "priority_fee": 1, **fees}


async def _expired(a: Attacker) -> Any:
    token = a.tenant.ok("POST", f"/agents/{a.victim.id}/token", {"expiresIn": "1s"})["token"]
    expires = jwt.decode(token, options={"verify_signature": False})["exp"]
    async with asyncio.timeout(10):
        while asyncio.get_running_loop().time() and __import__("time").time() <= expires:
            await asyncio.sleep(0.05)
    return await a.say(order(a.victim), {"kind": "agent", "value": token})

"""P7: whatever a database writer changes behind the signer's back is refused, not used; nothing is signed by it."""

import asyncio
import secrets
from collections.abc import Iterator
from typing import Any

import asyncpg
import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ops import places
from tests.fixtures.callers import Agent, Client, Tenant, new_tenant, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet

STRICT = rule("spending-limit", maxPerDay="100"), rule("auto-approve-threshold", threshold="50")
LOOSE = rule("spending-limit", maxPerDay="1000000"), rule("auto-approve-threshold", threshold="1000000")

RULES = {
    "rule changed": "UPDATE policy_rules SET config = replace(config, '100', '1000000') WHERE agent_id = {agent}",
    "rule disabled": "UPDATE policy_rules SET enabled = false WHERE agent_id = {agent} AND position = 1",
    "rule renamed": "UPDATE policy_rules SET id = 'other' WHERE agent_id = {agent} AND position = 1",
    "rule given another type": "UPDATE policy_rules SET type = 'time-window' WHERE agent_id = {agent} AND position = 1",
    "rule added": "INSERT INTO policy_rules SELECT tenant_id, agent_id, 9, 'added', type, enabled, config "
    "FROM policy_rules WHERE agent_id = {agent} AND position = 1",
    "rule deleted": "DELETE FROM policy_rules WHERE agent_id = {agent} AND position = 1",
    "rule deleted and counted": "DELETE FROM policy_rules WHERE agent_id = {agent} AND position = 1; "
    "UPDATE policy_heads SET count = 1 WHERE agent_id = {agent}",
    "rules reordered": "UPDATE policy_rules SET position = 3 - position + 10 WHERE agent_id = {agent}",
    "all rules deleted": "DELETE FROM policy_rules WHERE agent_id = {agent}",
    "rules of another agent": "DELETE FROM policy_rules WHERE agent_id = {agent}; UPDATE policy_rules "
    "SET agent_id = {agent} WHERE agent_id = {other}",
    "rules and head of another agent": "DELETE FROM policy_rules WHERE agent_id = {agent}; UPDATE policy_rules "
    "SET agent_id = {agent} WHERE agent_id = {other}; UPDATE policy_heads h SET version = o.version, count = o.count, "
    "mac = o.mac FROM policy_heads o WHERE h.agent_id = {agent} AND o.agent_id = {other}",
    "head deleted": "DELETE FROM policy_heads WHERE agent_id = {agent}",
    "head and rules deleted": "DELETE FROM policy_heads WHERE agent_id = {agent}; "
    "DELETE FROM policy_rules WHERE agent_id = {agent}",
    "head of another agent": "UPDATE policy_heads h SET mac = o.mac FROM policy_heads o "
    "WHERE h.agent_id = {agent} AND o.agent_id = {other}",
    "head flipped": "UPDATE policy_heads SET mac = set_byte(mac, 20, get_byte(mac, 20) # 1) WHERE agent_id = {agent}",
    "head cut short": "UPDATE policy_heads SET mac = substr(mac, 1, 4) WHERE agent_id = {agent}",
    "head of a key that never was": "UPDATE policy_heads SET mac = set_byte(mac, 3, 9) WHERE agent_id = {agent}",
    "version raised": "UPDATE policy_heads SET version = version + 1 WHERE agent_id = {agent}; "
    "UPDATE agents SET policy_version = policy_version + 1 WHERE id = {agent}",
    "version lowered": "UPDATE policy_heads SET version = 1 WHERE agent_id = {agent}; "
    "UPDATE agents SET policy_version = 1 WHERE id = {agent}",
}
_SWAP = (
    "UPDATE sealed s SET blob = o.blob FROM sealed o WHERE s.owner = {agent} AND s.purpose = 'evm' AND o.owner = {%s} "
    "AND o.purpose = '%s'"
)
_ADDRESS = (
    "UPDATE wallets w SET address = o.address FROM wallets o WHERE w.agent_id = {agent} AND o.agent_id = {other} "
    "AND w.family = 'evm' AND o.family = 'evm'"
)
KEYS = {
    "key flipped": "UPDATE sealed SET blob = set_byte(blob, 30, get_byte(blob, 30) # 1) WHERE owner = {agent}",
    "key cut short": "UPDATE sealed SET blob = substr(blob, 1, 10) WHERE owner = {agent}",
    "key of another master key": "UPDATE sealed SET blob = set_byte(blob, 4, 9) WHERE owner = {agent}",
    "key of another format": "UPDATE sealed SET blob = set_byte(blob, 0, 2) WHERE owner = {agent}",
    "key of another agent": _SWAP % ("other", "evm"),
    "key of another tenant's agent": _SWAP % ("foreign", "evm"),
    "key of another chain": _SWAP % ("agent", "solana"),
    "key deleted": "DELETE FROM sealed WHERE owner = {agent}",
    "key and address of another agent": _SWAP % ("other", "evm") + "; " + _ADDRESS,
    "address of another agent": _ADDRESS,
    "wallet deleted": "DELETE FROM wallets WHERE agent_id = {agent}",
}
CONFIG = {
    "judging changed": "UPDATE tenant_config SET judging = replace(judging, 'refuse', 'allow') "
    "WHERE tenant_id = {tenant}",
    "judging's version changed": "UPDATE tenant_config SET version = 7 WHERE tenant_id = {tenant}",
    "judging's seal deleted": "UPDATE tenant_config SET mac = '' WHERE tenant_id = {tenant}",
    "judging of another tenant": "UPDATE tenant_config c SET judging = o.judging, mac = o.mac, version = o.version "
    "FROM tenant_config o WHERE c.tenant_id = {tenant} AND o.tenant_id = {foreign_tenant}",
}
REFUSED = {**RULES, **KEYS, **CONFIG}
CODES = {**dict.fromkeys(RULES, "policy_tampered"), **dict.fromkeys(KEYS, "key_tampered")}


@pytest.fixture(scope="module")
def apart(postgres_home: places.Home, worker_id: str) -> Iterator[Service]:
    """A deployment whose rows this file may spoil."""
    with deploy(database_apart(postgres_home, f"{worker_id}_tampering")) as service:
        yield service


@pytest.fixture
def victim(apart: Service) -> Iterator[Tenant]:
    """A tenant with a configuration."""
    with new_tenant(apart) as tenant:
        _configure(tenant, "refuse")
        yield tenant


@pytest.fixture
def stranger(apart: Service) -> Iterator[Tenant]:
    """Another one, with a looser configuration."""
    with new_tenant(apart) as tenant:
        _configure(tenant, "allow")
        yield tenant


@pytest.mark.parametrize("what", REFUSED)
def test_tampered_rows_are_refused_and_nothing_is_signed(
    apart: Service, victim: Tenant, stranger: Tenant, what: str
) -> None:
    agent, other, foreign = victim.agent(*STRICT), victim.agent(*LOOSE), stranger.agent(*LOOSE)
    assert agent.sign(value=1).status_code == 200
    told = len(_logs(apart))

    names = {"agent": agent.id, "other": other.id, "foreign": foreign.id}
    tamper(apart, REFUSED[what], **names, tenant=victim.id, foreign_tenant=stranger.id)

    small, large = agent.sign(value=1), agent.sign(value=60)

    assert (small.status_code, small.json()["data"]["code"]) == (503, CODES.get(what, "policy_tampered"))
    assert large.status_code in (202, 503)
    assert count_signatures(apart, agent) == 1
    assert _errors(apart, told, agent)


def test_a_queued_order_that_was_swapped_cannot_be_approved(apart: Service, victim: Tenant) -> None:
    agent = victim.agent(*STRICT)
    item = agent.sign(value=60).json()["data"]
    other = agent.sign(value=90).json()["data"]

    tamper(
        apart,
        "UPDATE transactions t SET order_text = o.order_text, digest = o.digest, value = o.value FROM transactions o "
        "WHERE t.id = {queued}::uuid AND o.id = {other}::uuid; "
        "UPDATE approvals a SET digest = o.digest FROM approvals o "
        "WHERE a.tx_id = {queued}::uuid AND o.tx_id = {other}::uuid",
        queued=item["txId"],
        other=other["txId"],
    )
    answer = victim.post(f"/approvals/{item['approvalId']}/approve", json={})

    assert answer.status_code == 503, answer.text
    assert count_signatures(apart, agent) == 0


def test_an_order_that_nobody_queued_cannot_be_approved(apart: Service, victim: Tenant) -> None:
    agent = victim.agent(*STRICT)
    item = agent.sign(value=60).json()["data"]
    victim.ok("POST", f"/approvals/{item['approvalId']}/deny", {})

    tamper(
        apart,
        "UPDATE transactions SET status = 'pending_approval' WHERE id = {queued}::uuid; "
        "UPDATE approvals SET id = gen_random_uuid(), status = 'pending', resolved_at = NULL "
        "WHERE tx_id = {queued}::uuid",
        queued=item["txId"],
    )
    answer = victim.post(f"/vault/{agent.id}/approve/{item['txId']}", json={})

    assert answer.status_code == 503, answer.text
    assert count_signatures(apart, agent) == 0


def test_old_rules_put_back_with_their_head_are_noticed_also_after_a_restart(apart: Service, victim: Tenant) -> None:
    agent = victim.agent(*LOOSE)
    kept = asyncio.run(_rows(apart, "policy_heads", "policy_rules", agent=agent.id))
    version = asyncio.run(_rows(apart, "agents", agent=agent.id, column="id"))["agents"][0]["policy_version"]
    victim.ok("PUT", f"/agents/{agent.id}/policies", [*STRICT])

    asyncio.run(_put_back(apart, kept, agent.id, version))
    before = agent.sign(value=1)
    apart.kill("signer")
    apart.start("signer")
    after = agent.sign(value=1)

    assert (before.status_code, after.status_code) == (503, 503)
    assert count_signatures(apart, agent) == 0


@pytest.mark.parametrize("mac", ["'\\x00000001' || sha256('mine')", "''", "mac"])
def test_a_tenant_key_that_was_written_into_the_database_is_no_key(apart: Service, victim: Tenant, mac: str) -> None:
    forged, told = "ck_" + secrets.token_urlsafe(32), len(_logs(apart))

    tamper(
        apart,
        "INSERT INTO tenant_keys (tenant_id, key_hash, prefix, mac) "
        f"SELECT tenant_id, sha256({{key}}), 'forged', {mac} "
        "FROM tenant_keys WHERE tenant_id = {tenant}",
        key=forged,
        tenant=victim.id,
    )
    answer = _as(apart, "X-Service-Key", forged, "/agents", {"id": "mine", "name": "Mine"})

    assert answer.status_code == 401
    assert _warnings(apart, told)


def test_a_tenant_key_that_was_moved_to_another_tenant_is_no_key(apart: Service, victim: Tenant) -> None:
    with new_tenant(apart) as fresh:
        tamper(
            apart,
            "UPDATE tenant_keys SET tenant_id = {victim} WHERE tenant_id = {fresh}",
            victim=victim.id,
            fresh=fresh.id,
        )

        assert fresh.post("/agents", json={"id": "mine", "name": "Mine"}).status_code == 401


@pytest.mark.parametrize("mac", ["'\\x00000001' || sha256('mine')", "''", "mac"])
def test_a_platform_key_that_was_written_into_the_database_is_no_key(apart: Service, mac: str) -> None:
    forged, told = "pk_" + secrets.token_urlsafe(32), len(_logs(apart))

    tamper(
        apart,
        f"INSERT INTO platform_keys (key_hash, prefix, mac) SELECT sha256({{key}}), 'forged', {mac} "
        "FROM platform_keys WHERE from_file",
        key=forged,
    )
    answer = _as(apart, "X-Service-Platform-Key", forged, "/platform/tenants", {"id": "mine", "name": "Mine"})

    assert answer.status_code == 401
    assert _warnings(apart, told)


def test_a_token_key_that_was_written_into_the_database_signs_nothing(apart: Service, victim: Tenant) -> None:
    agent, mine = victim.agent(), Ed25519PrivateKey.generate()
    claims = jwt.decode(agent.headers["Authorization"].split()[1], options={"verify_signature": False})
    forged = jwt.encode(claims, mine, algorithm="EdDSA", headers={"kid": "mine"})

    tamper(
        apart,
        "INSERT INTO token_keys (kid, public_key, mac, created_at) "
        "SELECT 'mine', decode({public}, 'hex'), '\\x00', min(created_at) - interval '1 day' "
        "FROM token_keys; "
        "INSERT INTO sealed (tenant_id, owner_kind, owner, purpose, key_version, blob) "
        "SELECT tenant_id, owner_kind, 'mine', purpose, key_version, blob FROM sealed WHERE owner_kind = 'token_key'",
        public=mine.public_key().public_bytes_raw().hex(),
    )
    _restart(apart)
    agent.headers["Authorization"] = f"Bearer {forged}"
    answer = agent.sign()

    tamper(apart, "DELETE FROM sealed WHERE owner = 'mine'; DELETE FROM token_keys WHERE kid = 'mine'")
    assert answer.status_code == 401
    assert count_signatures(apart, agent) == 0


def test_a_token_of_another_incarnation_is_no_token(apart: Service, victim: Tenant) -> None:
    agent = victim.agent()

    tamper(apart, "UPDATE agents SET incarnation = gen_random_uuid() WHERE id = {agent}", agent=agent.id)

    assert agent.sign().status_code == 401
    assert count_signatures(apart, agent) == 0


def tamper(service: Service, statements: str, **names: str) -> None:
    """Do it as the owner of the database, where no grant and no row-level security stands in the way."""

    async def execute() -> None:
        async with owner_of(service.database) as owner:
            for statement in statements.split("; "):
                # A fragment of SQL of this file's own; the names are quoted as literals.
                quoted = {name: "'" + value.replace("'", "''") + "'" for name, value in names.items()}
                assert await owner.execute(statement.format(**quoted)) not in ("UPDATE 0", "DELETE 0", "INSERT 0 0")

    asyncio.run(execute())


def count_signatures(service: Service, agent: Agent) -> int:
    """Count an agent's signatures in the tables."""

    async def count() -> int:
        async with owner_of(service.database) as owner:
            return await owner.fetchval(
                "SELECT count(*) FROM transactions WHERE agent_id = $1 AND signature IS NOT NULL", agent.id
            )

    return asyncio.run(count())


def _configure(tenant: Tenant, uncovered: str) -> None:
    config = tenant.ok("GET", f"/tenants/{tenant.id}/config")
    config["approvalConfig"]["uncoveredEffects"] = uncovered
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", config)


def _restart(service: Service) -> None:
    for name in ("api", "signer"):
        service.kill(name)
    service.start("signer", "api")


def _logs(service: Service) -> str:
    """Return what the workers logged, in the order of time; they alone tell of what they refuse."""
    logs = ((service.home / "log" / f"{worker}.log").read_text() for worker in ("signer", "identity"))
    return "\n".join(sorted("".join(logs).splitlines()))


def _errors(service: Service, since: int, agent: Agent) -> list[str]:
    return [line for line in _logs(service)[since:].splitlines() if '"level":"error"' in line and agent.id in line]


def _warnings(service: Service, since: int) -> list[str]:
    return [
        line for line in _logs(service)[since:].splitlines() if '"level":"error"' in line or '"level":"warn' in line
    ]


def _as(service: Service, header: str, key: str, path: str, body: dict[str, Any]) -> httpx.Response:
    with Client(base_url=service.url, headers={header: key}, timeout=30) as client:
        return client.post(path, json=body)


async def _rows(
    service: Service, *tables: str, agent: str, column: str = "agent_id"
) -> dict[str, list[asyncpg.Record]]:
    async with owner_of(service.database) as owner:
        return {t: await owner.fetch(f"SELECT * FROM {t} WHERE {column} = $1", agent) for t in tables}


async def _put_back(service: Service, kept: dict[str, list[asyncpg.Record]], agent: str, version: int) -> None:
    async with owner_of(service.database) as owner:
        for table, rows in kept.items():
            await owner.execute(f"DELETE FROM {table} WHERE agent_id = $1", agent)
            await owner.copy_records_to_table(table, records=[tuple(row) for row in rows])
        await owner.execute("UPDATE agents SET policy_version = $2 WHERE id = $1", agent, version)


@pytest.mark.parametrize("family", ["evm", "solana"])
def test_an_address_that_is_not_the_wallets_is_shown_to_nobody(apart: Service, victim: Tenant, family: str) -> None:
    agent, other = victim.agent(), victim.agent()
    paths = [f"/agents/{agent.id}", "/agents", f"/agents/{agent.id}/account", f"/dashboard/{agent.id}"]
    assert {victim.get(path).status_code for path in paths} == {200}
    tamper(
        apart,
        "UPDATE wallets w SET address = o.address FROM wallets o WHERE w.agent_id = {agent} AND o.agent_id = {other} "
        f"AND w.family = '{family}' AND o.family = '{family}'",
        agent=agent.id,
        other=other.id,
    )

    answers = [victim.get(path) for path in paths]

    assert {(answer.status_code, answer.json()["data"]["code"]) for answer in answers} == {(503, "key_tampered")}
    assert victim.get(f"/agents/{other.id}").status_code == 200


def test_an_address_that_is_the_wallets_is_asked_about_once(apart: Service, victim: Tenant) -> None:
    agent = victim.agent()

    def questions() -> int:
        with greet(apart) as wire:
            return int(wire.ask("Status")["data"]["counters"].get("HaveKeys", 0))

    before = questions()
    for _ in range(10):
        assert victim.get(f"/agents/{agent.id}").status_code == 200

    assert questions() - before == 1

"""Fill a database through this tree's own processes and keep it: `scripts/keep-upgrade` runs it, no test run does.

It leans only on fixtures that each revision has, so that it can be copied into an older one.
"""

import asyncio
import os
import re
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import tests.fixtures.server
from ops import owners, places
from tests.fixtures.callers import platform_client, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.keepsakes import Keepsakes, keepsakes
from tests.fixtures.people import sign_in
from tests.fixtures.postgres import Database
from tests.fixtures.server import EVM_CHAIN, Service
from tests.outside.evm_node import EvmNode
from tests.outside.smtp_server import Mailbox
from tests.upgrades.kept import MASTER_KEY, ROOT, Kept, state, write

# What one tenant in a few minutes does not make: rows of a moment, and bounds of five hundred audit rows.
PASSING = {
    "room_trial": "VALUES ('filler')",
    "event_marks": "VALUES ('{tenant}', '{agent}', 'limit-warning', now())",
    "audit_spans": "VALUES ('another', 0, 1, 512, now(), now())",
    "sign_on_tests": "VALUES ('{tenant}', 'saml', '{{}}', now())",
    "used_signatures": "(tenant_id, key_name, signature_hash, idempotency_hash, expires_at)"
    " VALUES ('{tenant}', 'a key', '\\x01', '\\x02', now())",
}

# A heading over each statement, which says what the statement says: a tenth of what a dump comes to, compressed.
_HEADINGS = re.compile(rb"^--\n-- (?:Name|Data for Name): .*\n--\n\n+", re.MULTILINE)


def test_keep(
    postgres_home: places.Home,
    worker_id: str,
    evm_node: EvmNode,
    mailbox: Mailbox,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """Not a test: it is run by its name."""
    tests.fixtures.server.START_SECONDS = tests.fixtures.server.STOP_SECONDS = 300
    database = database_apart(postgres_home, f"{worker_id}_keep")
    key = tmp_path / "master.key"
    key.write_text(MASTER_KEY)
    key.chmod(0o600)
    world = {"SERVICE_MASTER_KEY_FILE": str(key), f"SERVICE_RPC_URL_{EVM_CHAIN}": evm_node.url}
    world["SERVICE_SMTP_URL"] = mailbox.url
    sign_on = find_spec("tests.fixtures.saml_sign_on") is not None
    dns = request.getfixturevalue("dns_server") if sign_on else None
    if dns is not None:
        world["SERVICE_DNS_SERVER"] = f"{dns.host}:{dns.port}"
    with deploy(database, "signer", "identity", "api", "scheduler", **world) as service, keepsakes(service) as kept:
        known = _more(service, kept, evm_node)
        if dns is not None:
            _newer(service, kept, dns)
        eventually(lambda: asyncio.run(_is_sealed(database)), seconds=120)
        service.kill("scheduler")
        # Nobody publishes it any more.
        assert kept.agent.sign(value=2).status_code == 200
    tables, empty = asyncio.run(_tables(database, kept))
    name = os.environ.get("KEEP_NAME") or f"{datetime.now(UTC):%Y-%m-%d}-{state()[:8]}"
    write(name, Kept(_revision(), state(), tables, empty, **known), _dump(database.owner_url))


def _more(service: Service, kept: Keepsakes, node: EvmNode) -> dict[str, Any]:
    """Make what the keepsakes lack, and what a test must know to use it all."""
    tenant, agent = kept.tenant, kept.agent
    node.fund(agent.evm_address)
    sent = agent.sign(value=3, broadcast=True, key="kept-once")
    assert sent.status_code == 200, sent.text
    with closing(sign_in(service)) as other:
        other.ok("POST", "/auth/mfa/totp/enroll", {})
        other.get("/auth/nonce")
        other.post("/auth/email/send", json={"email": "kept@example.com"})
        other.post("/auth/passkeys/login/options", json={})
        other.post("/auth/passkeys/register/options", json={})
        other.ok("POST", "/auth/device/code", {"tenantId": tenant.id})
    tenant.ok("POST", "/agents", {"id": "gone", "name": "Gone"}, **{"Idempotency-Key": "kept-gone"})
    tenant.ok("DELETE", "/agents/gone")
    signers = [kept.signer["id"]] + [
        kept.owner.ok(
            "POST",
            f"/agents/{agent.id}/signers",
            {"signerType": "service", "subjectType": "external", "permissions": ["sign_transaction"],
             "subjectId": f"member-{number}", "issueCredential": True},
        )["id"]
        for number in range(2)
    ]  # fmt: skip
    kept.owner.post(
        f"/agents/{agent.id}/key-quorums",
        json={"name": "two", "threshold": 2, "memberSignerIds": signers, "permissions": ["sign_transaction"]},
    )
    plain = tenant.agent(rule("spending-limit", maxPerDay="1000000"), rule("auto-approve-threshold", threshold="50"))
    assert plain.sign(value=5).status_code == 200
    waiting = plain.sign(value=70).json()["data"]["approvalId"]
    return {
        "tenant": tenant.id,
        "tenant_key": tenant.key,
        "agent": plain.id,
        "address": plain.evm_address,
        "waiting": waiting,
        "app": f"{tenant.id}/backend",
        "app_secret": kept.app_secret,
        "platform_key": service.platform_key,
    }


def _newer(service: Service, kept: Keepsakes, dns: Any) -> None:
    """Make what versions since 381e036 have besides: accounts, Bitcoin, invitations, sign-on."""
    # Earlier versions have none of these.
    from tests.fixtures.saml_sign_on import SamlTenant  # noqa: PLC0415
    from tests.fixtures.sign_on import redirect_params, verified_domain  # noqa: PLC0415
    from tests.outside.oidc_server import running_oidc_server  # noqa: PLC0415
    from tests.routes.accounts.makers import open_account  # noqa: PLC0415
    from tests.routes.platform.invited import invite  # noqa: PLC0415
    from tests.routes.vault.bitcoin import payment, sign_psbt  # noqa: PLC0415

    tenant, owner = kept.tenant, kept.owner
    assert sign_psbt(kept.payer, payment(kept.payer, 10_000)).status_code == 200
    open_account(tenant, kept.agent, id="mine")
    tenant.ok("POST", "/accounts/mine/aggregations", {"id": "q1"})
    invite(service, tenant)
    somebody = {"email": "external@example.com", "emailVerified": True, "tenantId": tenant.id, "externalId": "kept-1"}
    with platform_client(service) as platform:
        platform.ok("POST", "/platform/users", somebody)
    if find_spec("signer.charges") is not None:
        from tests.promises.budget_races import Buyer  # noqa: PLC0415

        buyer = Buyer(tenant, kept.agent, 2)
        buyer.ask(service, [buyer.call()])
    owner.step_up()
    if find_spec("identity.administration.channels") is not None:
        channel = owner.ok("POST", "/notification-channels", {"kind": "ntfy", "target": "http://127.0.0.1:9/a-topic"})
        owner.ok("POST", f"/notification-channels/{channel['id']}/test")
    saml = SamlTenant(service, owner, verified_domain(owner, dns))
    assert saml.put().is_success
    if find_spec("identity.sign_on.saml_keys") is not None:
        owner.ok("POST", f"/tenants/{tenant.id}/saml-sso/encryption-keys", {"formerDays": 30})
    with saml.flow() as flow:
        assert flow.exchange(redirect_params(flow.arrive())["code"]).status_code == 200
    with saml.flow() as flow:
        flow.provider_url()
    with running_oidc_server() as server:
        provider = {"id": "idp", "issuer": server.issuer, "clientId": server.client_id, "enabled": True}
        owner.ok("PUT", f"/tenants/{tenant.id}/oidc-providers", {"providers": [provider]})


def _revision() -> str:
    ended = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    return ended.stdout.strip()


async def _is_sealed(database: Database) -> bool:
    async with owner_of(database) as owner:
        found: bool = await owner.fetchval("SELECT NOT EXISTS (SELECT FROM audit_unsealed)")
        return found


async def _tables(database: Database, kept: Keepsakes) -> tuple[list[str], list[str]]:
    """Fill what only passes through; every table, and those in which nothing is all the same."""
    async with owner_of(database) as owner:
        rows = await owner.fetch(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1"
        )
        tables, empty = [row["relname"] for row in rows], []
        for table in tables:
            if not await owner.fetchval(f'SELECT EXISTS (SELECT FROM "{table}")'):
                if table in PASSING:
                    values = PASSING[table].format(tenant=kept.tenant.id, agent=kept.agent.id)
                    await owner.execute(f'INSERT INTO "{table}" {values}')
                else:
                    empty.append(table)
        return tables, empty


def _dump(url: str) -> bytes:
    ended = subprocess.run(
        [owners.program("pg_dump"), "--no-password"], env=owners.environment_for(url), capture_output=True, check=True
    )
    return _HEADINGS.sub(b"", ended.stdout)

"""P5: after a busy run no secret is to be found in any log, any table, or any process' listing."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.worker.sealing import Context, Sealer
from ops import places
from signer.master_key import MasterKeyFile
from tests.fixtures.callers import Agent, Tenant, new_tenant, platform_client, rule
from tests.fixtures.deployments import database_apart, deploy, owner_of
from tests.fixtures.server import Service
from tests.outside.sms_gateway import SmsGateway
from tests.outside.smtp_server import Mailbox
from tests.promises.searched import any_form, everything
from tests.promises.secrets_of_people import ADDRESS, PHONE, people_of


@pytest.fixture(scope="module")
def busy(
    postgres_home: places.Home, worker_id: str, mailbox: Mailbox, sms_gateway: SmsGateway
) -> Iterator[tuple[Service, dict[str, bytes]]]:
    """A deployment in which much went right and wrong, and the secrets that were on their way through it."""
    world = {"SERVICE_SMTP_URL": mailbox.url, "SERVICE_SMS_URL": sms_gateway.url}
    database = database_apart(postgres_home, f"{worker_id}_canary")
    with deploy(database, really=True, **world) as service, new_tenant(service) as tenant:
        agent = tenant.agent(rule("spending-limit", maxPerDay="100"), rule("auto-approve-threshold", threshold="5"))
        _be_busy(service, tenant, agent)
        of_people = people_of(service, tenant, mailbox, sms_gateway)
        yield service, asyncio.run(_secrets(service, tenant, agent)) | of_people


def test_no_secret_is_in_a_log(busy: tuple[Service, dict[str, bytes]]) -> None:
    service, secrets = busy
    said = service.logs().encode()

    assert len(said) > 1000
    assert [name for name, secret in secrets.items() if any_form(secret, said)] == []


async def test_no_secret_is_in_a_table(busy: tuple[Service, dict[str, bytes]]) -> None:
    service, secrets = busy
    async with owner_of(service.database) as owner:
        rows = await everything(owner)

    assert len(rows) > 30
    assert [name for name, secret in secrets.items() if any_form(secret, b"\n".join(rows))] == []


def test_no_secret_is_in_a_command_line_or_environment(busy: tuple[Service, dict[str, bytes]]) -> None:
    service, secrets = busy
    for process in service.processes.values():
        shown = Path(f"/proc/{process.pid}/cmdline").read_bytes() + Path(f"/proc/{process.pid}/environ").read_bytes()

        assert [name for name, secret in secrets.items() if any_form(secret, shown)] == []


async def test_no_code_that_was_sent_is_in_a_log_or_a_table(
    busy: tuple[Service, dict[str, bytes]], mailbox: Mailbox, sms_gateway: SmsGateway
) -> None:
    codes = [mailbox.code_for(ADDRESS), mailbox.code_for(ADDRESS, after=1), sms_gateway.code_for(PHONE)]
    async with owner_of(busy[0].database) as owner:
        text = busy[0].logs() + b"\n".join(await everything(owner)).decode()

    # Not the fraction of a second, nor a part of an id.
    assert [code for code in codes if re.search(rf"(?<![0-9A-Za-z.-]){code}(?![0-9A-Za-z-])", text)] == []
    assert ADDRESS not in busy[0].logs()
    assert PHONE not in busy[0].logs()


async def test_a_secret_in_a_table_or_a_log_would_be_found(busy: tuple[Service, dict[str, bytes]]) -> None:
    service, secrets = busy
    async with owner_of(service.database) as owner:
        for secret in secrets.values():
            async with owner.transaction():
                await owner.execute("UPDATE agents SET frozen_reason = $1", secret.hex())
                assert any_form(secret, b"\n".join(await everything(owner)))
                await owner.execute("UPDATE agents SET frozen_reason = NULL")


def _be_busy(service: Service, tenant: Tenant, agent: Agent) -> None:
    assert [agent.sign(value=value).status_code for value in (1, 6, 7, 101)] == [200, 202, 202, 403]
    items = tenant.ok("GET", "/approvals")
    tenant.ok("POST", f"/approvals/{items[0]['id']}/approve", {})
    tenant.ok("POST", f"/approvals/{items[1]['id']}/deny", {"reason": "no"})
    tenant.ok("PUT", f"/tenants/{tenant.id}/config", tenant.ok("GET", f"/tenants/{tenant.id}/config"))
    assert agent.sign(to="nonsense").status_code == 400
    assert agent.get("/agents", headers={"X-Service-Key": tenant.key}).status_code == 400
    assert tenant.get(f"/nothing/{tenant.key}").status_code == 404
    # Credentials in the wrong place, one after another.
    for header, value in (("X-Service-Platform-Key", tenant.key), ("Authorization", f"Bearer {tenant.key}")):
        with platform_client(service) as client:
            del client.headers["X-Service-Platform-Key"]
            assert client.get("/agents", headers={header: value}).status_code == 401
    service.kill("signer")
    service.start("signer")
    assert agent.sign(value=1).status_code == 200


async def _secrets(service: Service, tenant: Tenant, agent: Agent) -> dict[str, bytes]:
    keyring, _ = MasterKeyFile(service.home / "master.key", None).load(anything_sealed=True)
    sealer = Sealer(keyring)
    async with owner_of(service.database) as owner:
        incarnation = str(await owner.fetchval("SELECT incarnation FROM agents WHERE id = $1", agent.id))
        kid = await owner.fetchval("SELECT kid FROM token_keys")
        blobs = {row["purpose"]: row["blob"] for row in await owner.fetch("SELECT purpose, blob FROM sealed")}
    wallets = {
        purpose: sealer.open(blobs[purpose], Context(tenant.id, "agent", agent.id, purpose, incarnation))
        for purpose in ("evm", "solana")
    }
    return wallets | {
        "master key": keyring.versions[1],
        "token key": sealer.open(blobs["token-key"], Context("platform", "token_key", kid, "token-key")),
        "tenant key": tenant.key.encode(),
        "agent token": agent.headers["Authorization"].split()[1].encode(),
        "platform key": service.platform_key.encode(),
    }

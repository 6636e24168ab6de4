"""openapi-python-client makes a client of every operation without a warning, and it does the main job."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from api.routes import endpoints
from tests.fixtures.callers import ADDRESS, Tenant
from tests.generators import installed

pytestmark = pytest.mark.long

# What a newcomer writes with it: an agent, its policies, its token, orders with three outcomes, and the queue.
JOB = """
import sys

from custody_client import AuthenticatedClient
from custody_client.api.agents import create_agent, create_agent_token, create_agents, delete_agent, get_agent
from custody_client.api.agents import list_agents
from custody_client.api.approvals import approve_item, list_approvals
from custody_client.api.policies import list_policies, replace_policies
from custody_client.api.signing import sign_evm_transaction
from custody_client.api.transactions import get_transaction, list_transactions
from custody_client.models import (
    ApproveBody, AutoApproveThresholdConfig, AutoApproveThresholdRule, BatchBody, EvmOrder, NewAgentBody,
    PendingAnswer, PolicyRefusedAnswer, SpendingLimitConfig, SpendingLimitRule, TokenBody,
)

url, key, address = sys.argv[1:]
tenant = AuthenticatedClient(url, key, prefix="", auth_header_name="X-Service-Key", raise_on_unexpected_status=True)
with tenant:
    made = create_agent.sync(client=tenant, body=NewAgentBody(id="made:by.client", name="A client's agent")).data
    same = get_agent.sync("made:by.client", client=tenant)
    assert same.data == made, same
    rules = [
        SpendingLimitRule(type_="spending-limit", enabled=True, config=SpendingLimitConfig(max_per_transaction="100")),
        AutoApproveThresholdRule(
            type_="auto-approve-threshold", enabled=True, config=AutoApproveThresholdConfig(threshold="10")
        ),
    ]
    kept = replace_policies.sync(made.id, client=tenant, body=rules).data
    assert [rule.type_ for rule in list_policies.sync(made.id, client=tenant).data] == [rule.type_ for rule in kept]
    token = create_agent_token.sync(made.id, client=tenant, body=TokenBody(expires_in="1h")).data.token

    with AuthenticatedClient(url, token, raise_on_unexpected_status=True) as agent:
        def sign(value):
            order = EvmOrder(to=address, value=value, broadcast=False)
            return sign_evm_transaction.sync(made.id, client=agent, body=order, idempotency_key=f"order-of-{value}")

        signed, pending, refused = sign("5"), sign("50"), sign("500")
        assert signed.data.signed_transaction.startswith("0x")
        assert isinstance(pending, PendingAnswer) and not pending.ok
        assert isinstance(refused, PolicyRefusedAnswer) and refused.data.code == "policy_refused"
        assert sign("5") == signed

    (item,) = list_approvals.sync(client=tenant).data
    assert str(item.tx_id) == str(pending.data.tx_id)
    decided = approve_item.sync(item.id, client=tenant, body=ApproveBody(digest=item.digest)).data
    assert decided.status == "approved"
    assert get_transaction.sync(made.id, item.tx_id, client=tenant).data.status == "signed"
    assert list_transactions.sync(made.id, client=tenant, limit=2).data.total == 3

    batch = create_agents.sync(client=tenant, body=BatchBody(agents=[NewAgentBody(id="second", name="Second")])).data
    assert [one.id for one in batch.created] == ["second"] and batch.errors == []
    absent = get_agent.sync("nobody", client=tenant)
    assert absent.data.code == "agent_absent"
    assert delete_agent.sync(made.id, client=tenant).data.deleted == made.id
    answer = list_agents.sync_detailed(client=tenant)
    assert [one.id for one in answer.parsed.data] == ["second"] and answer.headers["X-Total-Count"] == "1"
print("done")
"""


@pytest.fixture(scope="module")
def generated_client(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder that the client is in, and what its generator said."""
    installed.install_python()
    folder = tmp_path_factory.mktemp("python")
    done = subprocess.run(
        [
            installed.PYTHON / "openapi-python-client",
            *("generate", "--path", plain, "--meta", "none", "--output-path", folder / "custody_client"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        # It formats with ruff, which is ours.
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout + done.stderr


def test_every_operation_is_generated_without_a_warning(generated_client: tuple[Path, str]) -> None:
    folder, said = generated_client

    assert [line for line in said.splitlines() if line.strip()] == [f"Generating {folder / 'custody_client'}"]
    functions = {file.stem for file in (folder / "custody_client" / "api").glob("*/*.py")} - {"__init__"}
    second = {f"{one.handler.__name__}_v1" for one in endpoints() if one.path.startswith("/v1/")}
    assert functions == {endpoint.handler.__name__ for endpoint in endpoints()} | second | {
        "get_contract",
        "get_plain_contract",
        "get_webhooks_contract",
    }


def test_the_generated_client_does_the_main_job(generated_client: tuple[Path, str], tenant: Tenant) -> None:
    folder, _ = generated_client
    (folder / "job.py").write_text(textwrap.dedent(JOB))

    done = subprocess.run(
        [installed.PYTHON / "python", "-W", "error", folder / "job.py", str(tenant.base_url), tenant.key, ADDRESS],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.stdout.strip() == "done", done.stdout + done.stderr

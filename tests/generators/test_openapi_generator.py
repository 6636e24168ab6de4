"""openapi-generator makes clients of the plain form: one in Python does the main jobs, one in TypeScript compiles."""

import json
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.fixtures.callers import ADDRESS, Tenant
from tests.fixtures.server import Service
from tests.generators import installed

pytestmark = pytest.mark.long
_SECONDS = 400
# Agent and policies, outcomes of orders, the queue, an account and its balance, a person of the operator.
JOB = """
import json
import sys

import custody_client as c
from custody_client.exceptions import ApiException

url, address, keys = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])


def caller(*, header=None, key=None, token=None):
    made = c.Configuration(host=url, api_key={header: key} if header else None, access_token=token)
    return c.ApiClient(made)


tenant = caller(header="tenant_key", key=keys["tenant"])
made = c.AgentsApi(tenant).create_agent(c.NewAgentBody(id="made:by.client", name="A client's agent")).data
assert c.AgentsApi(tenant).get_agent(made.id).data == made
rules = [
    c.SpendingLimitRule(type="spending-limit", enabled=True, config=c.SpendingLimitConfig(max_per_transaction="100")),
    c.AutoApproveThresholdRule(
        type="auto-approve-threshold", enabled=True, config=c.AutoApproveThresholdConfig(threshold="10")
    ),
]
kept = c.PoliciesApi(tenant).replace_policies(made.id, [c.PolicyRule(rule) for rule in rules]).data
assert [rule.actual_instance.type for rule in kept] == ["spending-limit", "auto-approve-threshold"]
token = c.AgentsApi(tenant).create_agent_token(made.id, token_body=c.TokenBody(expires_in="1h")).data.token

agent = caller(token=token)


def sign(value):
    order = c.EvmOrder(to=address, value=value, broadcast=False)
    try:
        return c.SigningApi(agent).sign_evm_transaction(made.id, order, idempotency_key=f"order-of-{value}").data
    except ApiException as refused:
        return refused.data.actual_instance.data


signed, pending, refused = sign("5"), sign("50"), sign("500")
assert signed.signed_transaction.startswith("0x") and sign("5") == signed
assert pending.status == "pending_approval"
assert refused.code == "policy_refused" and refused.results[0].type == "spending-limit", refused
(item,) = c.ApprovalsApi(tenant).list_approvals().data
assert item.tx_id == pending.tx_id
decided = c.ApprovalsApi(tenant).approve_item(item.id, approve_body=c.ApproveBody(digest=item.digest)).data
assert decided.status == "approved"
assert c.TransactionsApi(tenant).get_transaction(made.id, item.tx_id).data.status == "signed"

wanted = c.NewAccountBody(wallet_ids=[made.id])
account = c.AccountsApi(tenant).create_digital_asset_account(new_account_body=wanted).data
assert account.wallet_ids == [made.id], account
assert c.AccountsApi(tenant).get_digital_asset_account_balance(account.id).data is not None

platform = caller(header="platform_key", key=keys["platform"])
user = c.PlatformUsersApi(platform).create_user(c.NewUserBody(email=keys["email"])).data
assert user.is_new, user
try:
    c.AgentsApi(tenant).get_agent("nobody")
except ApiException as absent:
    assert absent.data.data.code.actual_instance == "agent_absent", absent.data
print("done")
"""


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    return done.stdout + done.stderr


def generated(plain: Path, language: str, folder: Path, *more: str) -> None:
    """Make a client of the plain form, without its tests and pages."""
    installed.install_python()
    parts = "apis,models,supportingFiles,apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"
    program = [installed.PYTHON / "openapi-generator-cli", "generate", "-g", language, "-i", plain, "-o", folder]
    run(*program, "--global-property", parts, *more, cwd=plain.parent)


def test_the_client_in_python_is_imported_and_does_the_main_jobs(
    plain: Path, tmp_path: Path, service: Service, tenant: Tenant
) -> None:
    generated(plain, "python", tmp_path, "--package-name", "custody_client")
    (tmp_path / "job.py").write_text(textwrap.dedent(JOB))
    # Every module of it: it imports most of them late.
    run(installed.PYTHON / "python", "-m", "compileall", "-q", "custody_client", cwd=tmp_path)
    keys = {"tenant": tenant.key, "platform": service.platform_key, "email": f"{tenant.id}@made.example"}

    said = run(installed.PYTHON / "python", "job.py", tenant.base_url, ADDRESS, json.dumps(keys), cwd=tmp_path)

    assert said.strip() == "done"


@pytest.mark.skipif(installed.missing() is not None, reason=installed.missing() or "")
def test_the_client_in_typescript_compiles_under_strict(plain: Path, tmp_path: Path) -> None:
    installed.install_node()
    generated(plain, "typescript-fetch", tmp_path)

    options = ("--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext")
    run(installed.NODE / "tsc", *options, "index.ts", cwd=tmp_path)

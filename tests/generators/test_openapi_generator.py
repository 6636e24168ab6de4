"""openapi-generator makes clients of the plain form: one in Python does the main jobs, one in TypeScript compiles."""

import json
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.fixtures.callers import ADDRESS, Tenant
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.generators import installed
from tests.outside.processes import PROJECT

pytestmark = pytest.mark.long
CUSTODY = PROJECT / ".venv" / "bin" / "custody"
_SECONDS = 400
# Agent and policies, outcomes of orders, the queue, an account and its balance, a person of the operator, a signer and
# what it authorises, and an intent of the tenant that its owner lets happen.
JOB = """
import json
import subprocess
import sys
from urllib.parse import urlsplit

import custody_client as c
from custody_client.exceptions import ApiException

url, address, keys = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
custody = keys["custody"]


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

owner = caller(token=keys["owner"])
public = subprocess.run([*custody, "new-key", "signer.pem"], capture_output=True, text=True, check=True).stdout.strip()
wanted = c.NewSigner(
    signer_type="service", subject_type="external", subject_id="worker-1", key_type="p256", public_key=public,
    permissions=["sign_transaction", "transfer"],
)
signer = c.SignersAndKeyQuorumsApi(owner).create_signer(made.id, wanted).data
assert (signer.key_type, signer.status, signer.credential_secret) == ("p256", "active", None), signer


class Authorised(c.ApiClient):
    "Sends what the signer signed: its signature is over the very bytes, so it is made where they are."

    def call_api(self, method, url, header_params=None, body=None, post_params=None, _request_timeout=None):
        command = [*custody, method, urlsplit(url).path, "--body", "-", "--output", "json"]
        command += ["--tenant", keys["tenant_id"], "--signer", str(signer.id), "--key", "signer.pem"]
        command += ["--idempotency-key", header_params["Idempotency-Key"]]
        said = subprocess.run(command, input=json.dumps(body), capture_output=True, text=True, check=True).stdout
        sent = {**header_params, **json.loads(said)}
        return super().call_api(method, url, sent, self.changed(body), post_params, _request_timeout)

    changed = staticmethod(lambda body: body)


authorised = Authorised(agent.configuration)
order = c.EvmOrder(to=address, value="6", broadcast=False)
signed = c.SigningApi(authorised).sign_evm_transaction(made.id, order, idempotency_key="by-a-signer-1").data
assert signed.signed_transaction.startswith("0x"), signed
authorised.changed = lambda body: {**body, "value": "7"}
try:
    signed = c.SigningApi(authorised).sign_evm_transaction(made.id, order, idempotency_key="by-a-signer-2")
    raise SystemExit(f"what was changed on its way was signed: {signed}")
except ApiException as forged:
    assert forged.status == 401, forged
del authorised.changed

payment = c.TransferOrder(to=address, value="7", broadcast=False)
try:
    moved = c.WalletActionsApi(agent).transfer_funds(made.id, payment, idempotency_key="by-no-signer-1")
    raise SystemExit(f"a transfer without a signer: {moved}")
except ApiException as alone:
    assert alone.status == 403, alone
moved = c.WalletActionsApi(authorised).transfer_funds(made.id, payment, idempotency_key="a-transfer-1").data
assert (moved.type, moved.status, moved.value) == ("transfer", "signed", "7"), moved
beside = c.ApiClient(c.Configuration(host=url, api_key={"agent_token_beside": token}, access_token=keys["owner"]))
assert c.WalletActionsApi(beside).get_action(made.id, moved.action_id).data.tx_hash == moved.tx_hash

payload = {"to": address, "value": "8", "chainId": moved.chain_id, "broadcast": False}
proposal = c.NewIntentBody(intent_type="transfer", agent_id=made.id, payload=payload)
intents = c.IntentsApi(tenant)
proposed = intents.create_intent(new_intent_body=proposal).data
assert (proposed.status, proposed.intent_type) == ("pending", "transfer"), proposed
yes = c.DecisionBody(digest=proposed.digest, reason="As agreed.")
allowed = c.IntentsApi(owner).authorize_intent(proposed.id, decision_body=yes).data
assert allowed.status == "authorized", allowed
executed = c.IntentsApi(owner).execute_intent(proposed.id).data
assert executed.status == "executed" and executed.execution_result["status"] == "signed", executed
assert intents.get_intent(proposed.id).data == executed
print("done")
"""


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
    return done.stdout + done.stderr


def generate(plain: Path, language: str, folder: Path, *more: str) -> None:
    """Make a client of the plain form, without its tests and pages."""
    installed.install_python()
    parts = "apis,models,supportingFiles,apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"
    program = [installed.PYTHON / "openapi-generator-cli", "generate", "-g", language, "-i", plain, "-o", folder]
    run(*program, "--global-property", parts, *more, cwd=plain.parent)


def test_the_client_in_python_is_imported_and_does_the_main_jobs(
    plain: Path, tmp_path: Path, service: Service, tenant: Tenant, as_owner: Person
) -> None:
    generate(plain, "python", tmp_path, "--package-name", "custody_client")
    (tmp_path / "job.py").write_text(textwrap.dedent(JOB))
    # Every module of it: it imports most of them late.
    run(installed.PYTHON / "python", "-m", "compileall", "-q", "custody_client", cwd=tmp_path)
    # Making the client takes minutes, and a second factor is recent for five.
    as_owner.step_up()
    keys = {
        "tenant": tenant.key,
        "tenant_id": tenant.id,
        "platform": service.platform_key,
        "owner": as_owner.session["token"],
        "email": f"{tenant.id}@made.example",
        "custody": [str(CUSTODY), "sign-request"],
    }

    said = run(installed.PYTHON / "python", "job.py", tenant.base_url, ADDRESS, json.dumps(keys), cwd=tmp_path)

    assert said.strip() == "done"


@pytest.mark.skipif(installed.missing() is not None, reason=installed.missing() or "")
def test_the_client_in_typescript_compiles_under_strict(plain: Path, tmp_path: Path) -> None:
    installed.install_node()
    generate(plain, "typescript-fetch", tmp_path)

    options = ("--strict", "--noEmit", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext")
    run(installed.NODE / "tsc", *options, "index.ts", cwd=tmp_path)

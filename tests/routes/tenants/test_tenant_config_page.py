"""docs/people.md: the table names every field of the configuration, and each does what the table says."""

import ast
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from custody.identity.joining import InvitationPolicy, WalletPolicy
from custody.identity.mfa import Action, DisableFor, MfaPolicy
from custody.policies.kinds import KINDS
from custody.tenants.types import FLAGS, ApprovalConfig, Approvers, TenantConfigBody
from tests.fixtures.authorised import Order
from tests.fixtures.callers import ADDRESS, Agent, Tenant, rule
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service
from tests.fixtures.signers import new_key, new_quorum, new_signer
from tests.routes.orders import solana_payment
from tests.routes.vault.transfers import transfer, with_signer

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/people.md").read_text().split("\n## A tenant's configuration\n")[1].split("\n## ")[0]
ROWS = {
    cells[0].strip("`"): dict(zip(("values", "default", "who", "effect"), cells[1:], strict=True))
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
}
MFA, APPROVALS = "authAbuseConfig.mfa", "approvalConfig"
# Where a deployment of another kind is needed, or a whole file tries it: the test that does.
ELSEWHERE = {
    f"{MFA}.disableFor.keyImport": "tests/routes/vault/test_imports.py"
    "::test_a_tenants_policy_forbids_imports_or_lets_its_key_begin_them",
    "authAbuseConfig.invitations.requireToken": "tests/routes/platform/test_invitations.py"
    "::test_without_a_token_the_address_decides_only_where_the_tenant_says_so",
    "authAbuseConfig.wallet.restrictToOneThirdPartyWallet": "tests/routes/auth/test_identities.py"
    "::test_a_tenant_may_restrict_people_to_one_wallet",
    "appClients": "tests/routes/tenants/test_app_clients.py",
}


def names(kind: type[msgspec.Struct], *but: str) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)} - set(but)


def of_types() -> set[str]:
    """Every field by its whole name, as the types have it."""
    mfa = names(MfaPolicy, "maxAgeFor", "requireFor", "disableFor")
    return {
        *names(TenantConfigBody, "tenantId", "policyExposure", "featureFlags", "approvalConfig", "authAbuseConfig"),
        "policyExposure.<type>",
        *(f"featureFlags.{flag}" for flag in FLAGS),
        *(f"{APPROVALS}.{name}" for name in names(ApprovalConfig, "approvers")),
        *(f"{APPROVALS}.approvers.{name}" for name in names(Approvers)),
        *(f"{MFA}.{name}" for name in mfa),
        *(f"{MFA}.{part}.<action>" for part in ("maxAgeFor", "requireFor")),
        *(f"{MFA}.disableFor.{name}" for name in names(DisableFor)),
        *(f"authAbuseConfig.invitations.{name}" for name in names(InvitationPolicy)),
        *(f"authAbuseConfig.wallet.{name}" for name in names(WalletPolicy)),
    }


def test_the_table_names_every_field_and_no_other() -> None:
    assert set(ROWS) == of_types()
    listed = PAGE.split("Actions of `requireFor` and `maxAgeFor`:")[1].split(". With both")[0]
    assert re.findall(r"`(\w+)`", listed) == list(get_args(Action))


def test_the_defaults_are_those_of_a_tenant_that_saved_nothing(tenant: Tenant) -> None:
    found = flat(tenant.ok("GET", f"/tenants/{tenant.id}/config"))
    said = {name: row["default"] for name, row in ROWS.items() if row["default"] not in ("none", "not listed")}

    shown = {name: str(found[name]).removeprefix("[]") for name in said if name in found}
    assert {name: value.lower() for name, value in shown.items()} == {
        name: value for name, value in said.items() if name in shown
    }
    assert set(said) - set(shown) == {f"{MFA}.{part}.<action>" for part in ("maxAgeFor", "requireFor")}


def flat(document: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Leaves by their whole names."""
    leaves: dict[str, Any] = {}
    for name, value in document.items():
        inner = flat(value, f"{before}{name}.") if isinstance(value, dict) else {}
        leaves |= inner or {f"{before}{name}": value}
    return leaves


def configure(caller: Tenant | Person, tenant: Tenant, **config: Any) -> dict[str, Any]:
    done: dict[str, Any] = caller.ok("PUT", f"/tenants/{tenant.id}/config", config)
    return done


# ---- what pages obey: stored and shown, and the service does as before


def still_works(tenant: Tenant, agent: Agent) -> dict[str, int]:
    """One call behind each flag and exposure; what it comes to."""
    asked = {
        "enableSolana": agent.post(f"/vault/{agent.id}/sign-solana", json=solana_payment(agent, 1)),
        "showApprovalQueue": tenant.get("/approvals"),
        "showTransactionHistory": tenant.get(f"/vault/{agent.id}/history"),
        "showSpendDashboard": tenant.get(f"/dashboard/{agent.id}"),
        "showSecretManager": tenant.get("/secrets"),
        "showPolicyControls": tenant.get(f"/agents/{agent.id}/policies"),
        "showChainSelector": tenant.get("/chains"),
        "showFundingQR": tenant.get(f"/agents/{agent.id}"),
        "allowAddressExport": tenant.get(f"/agents/{agent.id}"),
    }
    return {name: answer.status_code for name, answer in asked.items()}


def test_flags_are_shown_and_decide_nothing(tenant: Tenant) -> None:
    agent = tenant.agent()
    before = still_works(tenant, agent)
    off = configure(tenant, tenant, featureFlags=dict.fromkeys(FLAGS, False))["featureFlags"]

    assert set(before) == set(FLAGS)
    assert off == dict.fromkeys(FLAGS, False)
    assert still_works(tenant, agent) == before == dict.fromkeys(FLAGS, 200)


@pytest.mark.parametrize("flag", FLAGS)
def test_each_flag_is_its_own(tenant: Tenant, flag: str) -> None:
    stored = configure(tenant, tenant, featureFlags={flag: False})["featureFlags"]

    assert stored == dict.fromkeys(FLAGS, True) | {flag: False}
    assert ROWS[f"featureFlags.{flag}"]["who"] == "pages"


@pytest.mark.parametrize("exposure", ["visible", "enforced", "hidden"])
def test_a_rule_is_judged_whatever_its_exposure(tenant: Tenant, exposure: str) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerTx="5"))
    stored = configure(tenant, tenant, policyExposure=dict.fromkeys(KINDS, exposure))["policyExposure"]

    assert stored == dict.fromkeys(KINDS, exposure)
    assert agent.sign(value=6).status_code == 403
    assert [one["type"] for one in tenant.ok("GET", f"/agents/{agent.id}/policies")] == ["spending-limit"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("displayName", "Acme"),
        ("theme", {"primaryColor": "#102030"}),
        ("policyTemplates", [{"id": "a", "name": "A"}]),
        (
            "secretRoutePresets",
            [
                {
                    "id": "a",
                    "name": "A",
                    "hostPattern": "api.example.com",
                    "injectAs": "header",
                    "injectKey": "x",
                    "provisioning": "user",
                }
            ],
        ),
    ],
)
def test_the_rest_of_what_pages_obey_is_shown(tenant: Tenant, name: str, value: Any) -> None:
    stored = configure(tenant, tenant, **{name: value})[name]

    assert (
        msgspec.json.encode(value)[:20] in msgspec.json.encode(stored)
        or flat({"": value}).items() <= flat({"": stored}).items()
    )
    assert ROWS[name]["who"] == "pages"


# ---- what identity and the signer judge by


def expiry(tenant: Tenant, owner: Person) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    configure(tenant, tenant, approvalConfig={"autoExpireSeconds": 0})
    never = agent.sign().json()["data"]["txId"]
    configure(tenant, tenant, approvalConfig={"autoExpireSeconds": 600})
    soon = agent.sign().json()["data"]["txId"]
    ends = {one["txId"]: one["expiresAt"] for one in tenant.ok("GET", "/approvals")}

    assert ends[never] is None
    assert ends[soon] is not None


def approvers(tenant: Tenant, owner: Person) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    waiting = agent.sign().json()["data"]["approvalId"]

    assert owner.post(f"/approvals/{waiting}/approve", json={}).status_code == 200


def check_uncovered(tenant: Tenant, owner: Person) -> None:
    agent = tenant.agent(rule("spending-limit", maxPerTx="5"))
    found = {}
    for choice in ("queue", "allow", "refuse"):
        configure(tenant, tenant, approvalConfig={"uncoveredEffects": choice})
        found[choice] = agent.sign(ADDRESS, 1, data="0xdeadbeef").status_code

    assert found == {"queue": 202, "allow": 200, "refuse": 403}


def callback(tenant: Tenant, owner: Person) -> None:
    assert configure(tenant, tenant, approvalConfig={"webhookCallbackEnabled": True})["approvalConfig"][
        "webhookCallbackEnabled"
    ]


def mfa(owner: Person, tenant: Tenant, **policy: Any) -> None:
    configure(owner, tenant, authAbuseConfig={"mfa": policy})


def refusal_of(tenant: Tenant, service: Service) -> dict[str, Any]:
    """Return the answer to an admin without a second factor who reads the audit trail."""
    with closing(member(service, tenant, "admin")) as admin:
        found: dict[str, Any] = admin.get("/audit/events").json()["data"]
    return found


def age(tenant: Tenant, owner: Person, service: Service) -> None:
    mfa(owner, tenant, maxAgeSeconds=120)
    assert refusal_of(tenant, service)["maxAgeSeconds"] == 120


def age_of_one(tenant: Tenant, owner: Person, service: Service) -> None:
    mfa(owner, tenant, maxAgeSeconds=120, maxAgeFor={"audit": 45})
    assert refusal_of(tenant, service)["maxAgeSeconds"] == 45


def need(tenant: Tenant, owner: Person, service: Service) -> None:
    assert refusal_of(tenant, service)["code"] == "mfa_required"
    mfa(owner, tenant, requireFor={"audit": False})
    assert "pagination" in refusal_of(tenant, service)


def no_export(tenant: Tenant, owner: Person, service: Service) -> None:
    mfa(owner, tenant, disableFor={"keyExport": True})
    paths = owner.get("/openapi.json").json()["paths"]
    assert [path for path in paths if "export" in path and "vault" in path] == []


def one_signer(tenant: Tenant, owner: Person) -> None:
    agent = with_signer(owner, tenant.agent())
    assert transfer(agent).status_code == 200
    mfa(owner, tenant, allowDelegatedSignerAutomation=False)
    answer = transfer(agent)
    assert (answer.status_code, answer.json()["data"]["code"]) == (403, "automation_disabled")
    people_and_agents_sign(tenant, owner, agent)
    by_the_owner = owner.post(f"/vault/{agent.id}/actions/transfer", json=body())
    assert (by_the_owner.status_code, by_the_owner.json()["data"]["status"]) == (200, "signed")


def quorum(tenant: Tenant, owner: Person) -> None:
    agent = tenant.agent()
    key = new_key()
    name = new_signer(owner, agent, "one", key)["id"]
    made = new_quorum(owner, agent, [name], 1)["id"]
    first, second = (Order(tenant.id, agent) for _ in range(2))
    assert first.send(first.quorum_headers(made, (name, key))).status_code == 200
    mfa(owner, tenant, allowKeyQuorumAutomation=False)
    answer = second.send(second.quorum_headers(made, (name, key)))
    assert (answer.status_code, answer.json()["data"]["code"]) == (403, "automation_disabled")
    people_and_agents_sign(tenant, owner, agent)


def body() -> dict[str, Any]:
    return {"to": ADDRESS, "value": "1", "broadcast": False}


def people_and_agents_sign(tenant: Tenant, owner: Person, agent: Agent) -> None:
    """I23: the agent alone as before, and an owner or admin with a recent factor."""
    assert agent.sign().status_code == 200
    assert owner.post(f"/vault/{agent.id}/sign", json=body()).status_code == 200


TRIES: dict[str, Callable[..., None]] = {
    f"{APPROVALS}.autoExpireSeconds": expiry,
    f"{APPROVALS}.approvers.mode": approvers,
    f"{APPROVALS}.uncoveredEffects": check_uncovered,
    f"{APPROVALS}.webhookCallbackEnabled": callback,
    f"{MFA}.maxAgeSeconds": age,
    f"{MFA}.maxAgeFor.<action>": age_of_one,
    f"{MFA}.requireFor.<action>": need,
    f"{MFA}.disableFor.keyExport": no_export,
    f"{MFA}.allowDelegatedSignerAutomation": one_signer,
    f"{MFA}.allowKeyQuorumAutomation": quorum,
}


@pytest.mark.parametrize("name", TRIES)
def test_it_does_what_the_table_says(name: str, service: Service, tenant: Tenant, as_owner: Person) -> None:
    attempt = TRIES[name]
    wanted = {"service": service} if "service" in attempt.__annotations__ else {}

    attempt(tenant=tenant, owner=as_owner, **wanted)


def test_every_field_is_tried_here_or_where_it_is_said() -> None:
    shown = {name for name, row in ROWS.items() if row["who"] == "pages"}

    assert set(ROWS) == shown | set(TRIES) | set(ELSEWHERE)
    for place in ELSEWHERE.values():
        file, _, test = place.partition("::")
        tree = ast.parse((ROOT / file).read_text())
        found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert not test or test in found, place

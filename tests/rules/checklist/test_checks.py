"""Each item of the security checklist, from the facts that decide it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from api.areas.checklist import checks
from api.areas.checklist.run import sum_up
from api.areas.checklist.types import DomainFact, Facts, Judging
from custody.identity.app_clients import AppClient
from custody.identity.mfa import MfaPolicy
from custody.identity.saml_config import SamlConfig
from custody.identity.saml_groups import GroupMapping
from custody.kit.deployment import Deployment
from tests.fixtures.each import each
from tests.outside.saml_answers import key

NOW = datetime(2026, 6, 1, tzinfo=UTC)
GOOD = Facts(
    now=NOW,
    owners=1,
    newest_signing_key=NOW,
    oldest_tenant_key=NOW,
    oldest_app_secret=NOW,
    deployment=Deployment(
        public_url="https://custody.example.com",
        require_request_expiry=True,
        require_auth_signature=True,
        empty_policy="deny",
    ),
)


def ago(days: int) -> datetime:
    return NOW - timedelta(days=days)


def policy(**changed: Any) -> Judging:
    return Judging(mfa=MfaPolicy(**changed))


def client(url: str, **changed: Any) -> tuple[AppClient, ...]:
    return (AppClient(id="web-app", name="Web", allowed_origins=(url,), **changed),)


def domain(**changed: Any) -> tuple[DomainFact, ...]:
    return (DomainFact(domain="example.com", **changed),)


ENDS = datetime(2040, 1, 1, tzinfo=UTC)
SAML = SamlConfig(
    idp_entity_id="https://idp.example.com",
    idp_sso_url="https://idp.example.com/sso",
    idp_cert_pems=(key("rsa", ends=ENDS).certificate,),
    group_role_mappings=(GroupMapping(group="admins", role="admin"),),
)


def saml(**changed: Any) -> SamlConfig:
    return msgspec.structs.replace(SAML, **changed)


CASES: list[tuple[str, dict[str, Any], str]] = [
    ("mfa-policy", {"judging": policy(require_for={"audit": False})}, "warning"),
    ("mfa-policy", {"judging": policy(require_for={"tenantAdmin": False})}, "fail"),
    ("mfa-policy", {"judging": policy(require_for={"vaultSigning": False, "audit": False})}, "fail"),
    ("mfa-policy", {"judging": policy(require_for={"tenantAdmin": True})}, "pass"),
    ("mfa-policy", {"judging": policy(max_age_seconds=900)}, "pass"),
    ("mfa-policy", {"judging": policy(max_age_seconds=901)}, "warning"),
    ("mfa-policy", {"judging": policy(max_age_for={"audit": 3600})}, "warning"),
    ("owners", {"owners": 0, "admins": 1}, "warning"),
    ("second-factors", {"admins_without_factor": 1}, "fail"),
    ("request-signing-keys", {"newest_signing_key": None}, "warning"),
    ("request-signing-keys", {"newest_signing_key": ago(180)}, "pass"),
    ("request-signing-keys", {"newest_signing_key": ago(181)}, "warning"),
    ("request-hardening", {"deployment": Deployment(require_request_expiry=True)}, "warning"),
    ("request-hardening", {"deployment": Deployment(require_auth_signature=True)}, "warning"),
    ("empty-policy", {"deployment": Deployment(empty_policy="allow")}, "warning"),
    ("agent-rules", {"agents_without_hard_rule": 1}, "pass"),
    ("agent-rules", {"agents_without_hard_rule": 1, "deployment": Deployment(empty_policy="allow")}, "fail"),
    ("agent-rules", {"agents_without_hard_rule": 0, "deployment": Deployment(empty_policy="allow")}, "pass"),
    ("app-client-origins", {"app_clients": client("http://localhost:3000")}, "warning"),
    ("app-client-origins", {"app_clients": client("http://localhost:3000", environment="development")}, "pass"),
    ("app-client-origins", {"app_clients": client("http://localhost:3000", enabled=False)}, "pass"),
    ("app-client-origins", {"app_clients": client("https://app.example.com")}, "pass"),
    ("app-secrets", {"oldest_app_secret": None}, "pass"),
    ("app-secrets", {"oldest_app_secret": ago(90)}, "pass"),
    ("app-secrets", {"oldest_app_secret": ago(91)}, "warning"),
    ("approval-expiry", {"judging": Judging(auto_expire_seconds=0)}, "warning"),
    ("uncovered-effects", {"judging": Judging(uncovered_effects="allow")}, "fail"),
    ("uncovered-effects", {"judging": Judging(uncovered_effects="refuse")}, "pass"),
    ("tenant-key", {"oldest_tenant_key": ago(366)}, "warning"),
    ("approver-keys", {"loose_approver_keys": 1}, "warning"),
    ("sso-domains", {"sso_domains": domain(verified=True, missing_since=ago(3))}, "warning"),
    ("sso-domains", {"sso_domains": domain(verified=True)}, "pass"),
    ("sso-required", {"sso_domains": domain(sso_required=True, verified=True), "signs_on": True}, "pass"),
    ("sso-required", {"sso_domains": domain(sso_required=True, verified=True)}, "warning"),
    ("sso-required", {"sso_domains": domain(sso_required=True), "signs_on": True}, "warning"),
    ("sso-required", {"sso_domains": domain()}, "pass"),
    ("idp-certificates", {"saml": SAML}, "pass"),
    ("idp-certificates", {"saml": SAML, "now": ENDS - timedelta(days=29)}, "warning"),
    ("idp-certificates", {"saml": SAML, "now": ENDS - timedelta(days=31)}, "pass"),
    ("idp-newcomers", {"saml": saml(allow_jit_provisioning=True)}, "warning"),
    ("idp-newcomers", {"saml": saml(allow_jit_provisioning=False)}, "pass"),
    ("idp-newcomers", {"saml": saml(allow_jit_provisioning=True, enabled=False)}, "pass"),
    ("idp-keys", {"oidc_keys": {"idp": None}}, "warning"),
    ("idp-keys", {"oidc_keys": {"idp": ago(1)}}, "pass"),
    ("idp-keys", {"oidc_keys": {"idp": ago(2)}}, "warning"),
    ("public-url", {"deployment": Deployment(public_url="http://localhost:3200")}, "warning"),
    ("public-url", {"deployment": Deployment(public_url="http://custody.example.com")}, "fail"),
    ("secret-routes", {"deployment": Deployment(allow_broad_routes=True)}, "warning"),
    ("platform-scopes", {"deployment": Deployment(scoped_platform_keys=False)}, "warning"),
]


@each(("item", "changed", "status"), CASES)
def test_an_item_says_what_the_facts_come_to(item: str, changed: dict[str, Any], status: str) -> None:
    facts = msgspec.structs.replace(GOOD, **changed)

    found = {one.id: one for one in sum_up("t", facts).items}[item]

    assert found.status == status
    assert bool(found.remediation) is (status != "pass")


def test_a_tenant_in_which_all_is_well_passes_everything() -> None:
    found = sum_up("t", GOOD)

    assert {one.id: one.status for one in found.items} == {one.id: "pass" for one in found.items}
    assert (found.summary.passed, found.summary.warning, found.summary.fail) == (len(checks.CHECKS), 0, 0)


def test_each_item_has_a_name_of_its_own_and_can_go_wrong() -> None:
    ids = [one.id for one in sum_up("t", GOOD).items]

    assert len(set(ids)) == len(ids)
    assert {item for item, _, status in CASES if status != "pass"} == set(ids)


def test_the_summary_counts_the_items() -> None:
    found = sum_up("t", msgspec.structs.replace(GOOD, admins_without_factor=2, deployment=Deployment()))

    assert msgspec.to_builtins(found)["summary"] == {
        status: sum(one.status == status for one in found.items) for status in ("pass", "warning", "fail")
    }


SENTENCES: list[tuple[str, dict[str, Any], str, str]] = [
    ("second-factors", {"owners": 0}, "There is no owner or admin who could need one.", ""),
    ("second-factors", {"owners": 1}, "Every owner and admin has a second factor.", ""),
    (
        "second-factors",
        {"owners": 1, "admins": 2, "admins_without_factor": 1},
        "1 of 3 owners and admins has no second factor.",
        "Have each of them enrol one: a passkey, or an authenticator under /auth/mfa/totp.",
    ),
    (
        "second-factors",
        {"owners": 1, "admins": 2, "admins_without_factor": 2},
        "2 of 3 owners and admins have no second factor.",
        "Have each of them enrol one: a passkey, or an authenticator under /auth/mfa/totp.",
    ),
    (
        "request-signing-keys",
        {"newest_signing_key": None},
        "The tenant has no request-signing key.",
        "Make one, and sign requests with it (docs/api.md): POST /tenants/:id/request-signing-keys.",
    ),
    (
        "request-signing-keys",
        {"newest_signing_key": ago(181)},
        "The active key is 181 days old.",
        "Make a new one: POST /tenants/:id/request-signing-keys. The current key keeps working for seven days.",
    ),
    (
        "request-hardening",
        {"deployment": Deployment(require_request_expiry=True)},
        "A request that changes something is taken without a signature.",
        "Have your programs send both (docs/api.md), then have the operator set SERVICE_REQUIRE_AUTH_SIGNATURE=true.",
    ),
    ("agent-rules", {"agents_without_hard_rule": 0}, "Every agent has an enabled hard rule.", ""),
    ("agent-rules", {"agents_without_hard_rule": 1}, "1 agent has no enabled hard rule, so it signs nothing.", ""),
    (
        "agent-rules",
        {"agents_without_hard_rule": 2, "deployment": Deployment(empty_policy="allow")},
        "2 agents have no enabled hard rule, so nothing limits what they sign.",
        "Give each of them a hard rule, such as a spending limit: PUT /agents/:agentId/policies or its /template.",
    ),
    ("tenant-key", {"oldest_tenant_key": None}, "The tenant has no API key.", ""),
    ("app-secrets", {"oldest_app_secret": None}, "No app client has a secret.", ""),
    ("approval-expiry", {}, "An approval that nobody decides on expires after 1 day.", ""),
    (
        "approval-expiry",
        {"judging": Judging(auto_expire_seconds=5400)},
        "An approval that nobody decides on expires after 90 minutes.",
        "",
    ),
    (
        "sso-required",
        {"sso_domains": domain(sso_required=True, verified=True)},
        "ssoRequired has no effect yet for: example.com (no identity provider is enabled).",
        "Enable an identity provider: PUT /tenants/:id/saml-sso or /tenants/:id/oidc-providers.",
    ),
    (
        "sso-required",
        {"sso_domains": domain(sso_required=True), "signs_on": True},
        "ssoRequired has no effect yet for: example.com (not verified).",
        "Verify the domain: POST /tenants/:id/sso-domains/:domain/verify.",
    ),
    ("sso-required", {}, "No domain requires it.", ""),
    ("idp-keys", {}, "No OIDC provider is enabled.", ""),
]


@each(("item", "changed", "finding", "cure"), SENTENCES)
def test_an_item_says_what_is_so_and_a_cure_that_helps(
    item: str, changed: dict[str, Any], finding: str, cure: str
) -> None:
    facts = msgspec.structs.replace(GOOD, **changed)

    found = {one.id: one for one in sum_up("t", facts).items}[item]

    assert (found.description, found.remediation) == (finding, cure)

"""One function for each item of the security checklist: pure, from facts to what is said of them.

A warning is something to decide on, a failure something that an attacker could use.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from api.areas.checklist.sign_on_checks import idp_certificates, idp_keys, idp_newcomers
from api.areas.checklist.types import Facts, Item, Status
from custody.identity.domains import NotCounting, why_not_counting
from custody.identity.mfa import Action
from custody.kit import clock

LONGEST_FRESHNESS: Final = 900
SIGNING_KEY_DAYS: Final = 180
APP_SECRET_DAYS: Final = 90
TENANT_KEY_DAYS: Final = 365
# Who takes these over has everything else.
_WEIGHTY: Final[tuple[Action, ...]] = (
    "vaultSigning",
    "keyImport",
    "keyExport",
    "recoveryCodes",
    "tenantAdmin",
    "approvals",
)
_NOT_COUNTING: Final[dict[NotCounting, str]] = {
    "not_required": "not asked for",
    "domain_pending": "not verified",
    "no_provider": "no identity provider is enabled",
}
_COUNTS_THEN: Final[dict[NotCounting, str]] = {
    "domain_pending": "Verify the domain: POST /tenants/:id/sso-domains/:domain/verify.",
    "no_provider": "Enable an identity provider: PUT /tenants/:id/saml-sso or /tenants/:id/oidc-providers.",
}
_LOOPBACK: Final = {"localhost", "127.0.0.1", "::1"}


def mfa_policy(facts: Facts) -> Item:
    """Check whether second factors are asked for, and recent."""
    policy = facts.judging.mfa
    off = sorted(action for action, needed in policy.require_for.items() if not needed)
    longest = max([policy.max_age_seconds, *policy.max_age_for.values()])
    cure = "Set authAbuseConfig.mfa in PUT /tenants/:id/config."
    status: Status = "pass"
    found = f"Every sensitive action requires a second factor verified within the last {longest} seconds."
    if off:
        status = "fail" if set(off) & set(_WEIGHTY) else "warning"
        found = f"No recent second factor is required for: {', '.join(off)}."
    elif longest > LONGEST_FRESHNESS:
        status, found = "warning", f"A second factor counts as recent for up to {longest} seconds."
    return _item("mfa-policy", "MFA policy", status, found, cure)


def owners(facts: Facts) -> Item:
    """Check whether somebody is responsible."""
    found = f"{_count(facts.owners, 'owner')}, {_count(facts.admins, 'admin')}."
    cure = "Have the operator name an owner: POST /platform/tenants/:id/members."
    return _item("owners", "Owners", "pass" if facts.owners else "warning", found, cure)


def second_factors(facts: Facts) -> Item:
    """Check whether everybody who may administer could show a second factor."""
    without, everybody = facts.admins_without_factor, facts.owners + facts.admins
    found = f"{without} of {everybody} owners and admins {'has' if without == 1 else 'have'} no second factor."
    if not everybody:
        found = "There is no owner or admin who could need one."
    elif not without:
        found = "Every owner and admin has a second factor."
    cure = "Have each of them enrol one: a passkey, or an authenticator under /auth/mfa/totp."
    return _item("second-factors", "Second factors of owners and admins", "fail" if without else "pass", found, cure)


def request_signing_keys(facts: Facts) -> Item:
    """Check whether requests can be signed, with a key that is not old."""
    made = facts.newest_signing_key
    cure = "Make one, and sign requests with it (docs/api.md): POST /tenants/:id/request-signing-keys."
    if made is None:
        found = "The tenant has no request-signing key."
        return _item("request-signing-keys", "Request-signing keys", "warning", found, cure)
    status, age = _age(made, facts, SIGNING_KEY_DAYS)
    cure = "Make a new one: POST /tenants/:id/request-signing-keys. The current key keeps working for seven days."
    return _item("request-signing-keys", "Request-signing keys", status, f"The active key is {age}.", cure)


def hardening(facts: Facts) -> Item:
    """Check whether the deployment insists on times and signatures of requests."""
    lacking = {
        "SERVICE_REQUIRE_REQUEST_EXPIRY=true": "" if facts.deployment.require_request_expiry else "an expiry time",
        "SERVICE_REQUIRE_AUTH_SIGNATURE=true": "" if facts.deployment.require_auth_signature else "a signature",
    }
    off = {setting: what for setting, what in lacking.items() if what}
    found = (
        f"A request that changes something is taken without {' and without '.join(off.values())}."
        if off
        else "Every request that changes something must have an expiry time and a signature."
    )
    cure = f"Have your programs send both (docs/api.md), then have the operator set {' and '.join(off)}."
    return _item("request-hardening", "Request hardening", "warning" if off else "pass", found, cure)


def empty_policy(facts: Facts) -> Item:
    """Check whether an agent without rules signs everything."""
    allows = facts.deployment.empty_policy == "allow"
    found = f"An agent without a hard rule signs {'everything' if allows else 'nothing'}."
    cure = "Have the operator set SERVICE_EMPTY_POLICY=deny."
    return _item("empty-policy", "Agents without rules", "warning" if allows else "pass", found, cure)


def agents_without_rules(facts: Facts) -> Item:
    """Check whether there are such agents."""
    count = facts.agents_without_hard_rule
    allows = facts.deployment.empty_policy == "allow"
    found = "Every agent has an enabled hard rule."
    if count == 1:
        found = (
            f"1 agent has no enabled hard rule, so {'nothing limits what it signs' if allows else 'it signs nothing'}."
        )
    elif count:
        does = "nothing limits what they sign" if allows else "they sign nothing"
        found = f"{count} agents have no enabled hard rule, so {does}."
    cure = "Give each of them a hard rule, such as a spending limit: PUT /agents/:agentId/policies or its /template."
    return _item("agent-rules", "Hard rules of agents", "fail" if count and allows else "pass", found, cure)


def app_client_origins(facts: Facts) -> Item:
    """Check whether a production client lists addresses that are not https."""
    plain = sorted(
        client.id
        for client in facts.app_clients
        if client.enabled
        and client.environment == "production"
        and any(url.startswith("http://") for url in (*client.allowed_origins, *client.allowed_redirect_urls))
    )
    found = f"Production clients with http:// addresses: {', '.join(plain)}." if plain else "All begin with https://."
    cure = "Move addresses of this machine into a client of the environment development."
    return _item("app-client-origins", "Addresses of app clients", "warning" if plain else "pass", found, cure)


def app_secrets(facts: Facts) -> Item:
    """Check whether an app client's secret is old."""
    cure = "Rotate it: POST /tenants/:id/app-clients/:clientId/secrets. The old secret keeps working for 24 hours."
    made = facts.oldest_app_secret
    if made is None:
        return _item("app-secrets", "Secrets of app clients", "pass", "No app client has a secret.", cure)
    status, age = _age(made, facts, APP_SECRET_DAYS)
    return _item("app-secrets", "Secrets of app clients", status, f"The oldest secret is {age}.", cure)


def approvals_expire(facts: Facts) -> Item:
    """Check whether what nobody decides on ends by itself."""
    seconds = facts.judging.auto_expire_seconds
    found = (
        f"An approval that nobody decides on expires after {_span(seconds)}." if seconds else "Approvals never expire."
    )
    cure = "Set approvalConfig.autoExpireSeconds in PUT /tenants/:id/config."
    return _item("approval-expiry", "Expiry of approvals", "pass" if seconds else "warning", found, cure)


def uncovered_effects(facts: Facts) -> Item:
    """Check whether what no rule can judge is signed all the same."""
    word = facts.judging.uncovered_effects
    told = {"queue": "waits for a person", "allow": "is signed", "refuse": "is refused"}[word]
    cure = "Set approvalConfig.uncoveredEffects to queue or refuse in PUT /tenants/:id/config."
    status: Status = "fail" if word == "allow" else "pass"
    return _item("uncovered-effects", "What no rule covers", status, f"What no rule can judge {told}.", cure)


def tenant_key(facts: Facts) -> Item:
    """Check whether the tenant's active API key is old."""
    cure = "Replace it: POST /tenants/:id/api-keys. The current key keeps working for 24 hours."
    made = facts.oldest_tenant_key
    if made is None:
        return _item("tenant-key", "Age of the tenant key", "pass", "The tenant has no API key.", cure)
    status, age = _age(made, facts, TENANT_KEY_DAYS)
    return _item("tenant-key", "Age of the tenant key", status, f"The oldest active key is {age}.", cure)


def approver_keys(facts: Facts) -> Item:
    """Check whether votes are given by keys that any program on an approver's machine may ask."""
    count = facts.loose_approver_keys
    found = (
        f"Rules approval-quorum name {_count(count, 'key')} of localhost, which any program on the approver's "
        "machine may ask for a vote."
        if count
        else "No rule approval-quorum names a key of localhost."
    )
    cure = "Have each approver enrol a key in the console, then name that key in the rule (docs/signers.md)."
    return _item("approver-keys", "Keys of approvers", "warning" if count else "pass", found, cure)


def sso_domain_records(facts: Facts) -> Item:
    """Check whether the record of a domain is missing."""
    missing = [
        f"{one.domain} (since {clock.iso(one.missing_since)})"
        for one in facts.sso_domains
        if one.missing_since is not None
    ]
    found = f"The TXT record is missing for: {', '.join(missing)}." if missing else "No e-mail domain lacks its record."
    cure = "Publish `record` of GET /tenants/:id/sso-domains: after seven days the domain is pending."
    return _item("sso-domains", "Records of e-mail domains", "warning" if missing else "pass", found, cure)


def forced_sign_on(facts: Facts) -> Item:
    """Check whether sign-on is asked for, and does not count."""
    demanding = [one for one in facts.sso_domains if one.sso_required]
    idle = {
        one.domain: why
        for one in demanding
        if (why := why_not_counting(required=True, verified=one.verified, provided=facts.signs_on)) is not None
    }
    found = "Single sign-on is required wherever ssoRequired is set." if demanding else "No domain requires it."
    if idle:
        named = ", ".join(f"{domain} ({_NOT_COUNTING[why]})" for domain, why in idle.items())
        found = f"ssoRequired has no effect yet for: {named}."
    cure = " ".join(_COUNTS_THEN[why] for why in _COUNTS_THEN if why in idle.values())
    return _item("sso-required", "Forced single sign-on", "warning" if idle else "pass", found, cure)


def public_url(facts: Facts) -> Item:
    """Check whether people and programs come over https."""
    parts = urlsplit(facts.deployment.public_url)
    status: Status = "pass"
    if parts.scheme != "https":
        status = "warning" if parts.hostname in _LOOPBACK else "fail"
    found = f"The public address begins with {parts.scheme}://."
    return _item(
        "public-url",
        "Public address",
        status,
        found,
        "Have the operator serve it by https, and set SERVICE_PUBLIC_URL.",
    )


def secret_routes(facts: Facts) -> Item:
    """Check whether credential routes may send secrets to very many hosts."""
    broad = facts.deployment.allow_broad_routes
    found = f"Credential routes for whole top-level domains are {'allowed' if broad else 'refused'}."
    cure = "Have the operator unset SERVICE_ALLOW_BROAD_SECRET_ROUTES."
    return _item("secret-routes", "Wildcards of credential routes", "warning" if broad else "pass", found, cure)


def platform_scopes(facts: Facts) -> Item:
    """Check whether a platform key does only what its scopes say."""
    scoped = facts.deployment.scoped_platform_keys
    found = f"Scopes of platform keys are {'enforced' if scoped else 'ignored: each key may do everything'}."
    cure = "Have the operator set SERVICE_SCOPED_PLATFORM_KEYS=true."
    return _item("platform-scopes", "Scopes of platform keys", "pass" if scoped else "warning", found, cure)


CHECKS: Final[tuple[Callable[[Facts], Item], ...]] = (
    mfa_policy,
    owners,
    second_factors,
    request_signing_keys,
    hardening,
    empty_policy,
    agents_without_rules,
    app_client_origins,
    app_secrets,
    approvals_expire,
    uncovered_effects,
    tenant_key,
    approver_keys,
    sso_domain_records,
    forced_sign_on,
    public_url,
    secret_routes,
    platform_scopes,
    idp_certificates,
    idp_newcomers,
    idp_keys,
)


def _age(made: datetime, facts: Facts, most_days: int) -> tuple[Status, str]:
    """Check whether something is too old, and how old it is."""
    age = facts.now - made
    return "warning" if age > timedelta(days=most_days) else "pass", f"{_count(age.days, 'day')} old"


def _span(seconds: int) -> str:
    """Say a time in its largest whole unit."""
    for noun, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds % length == 0:
            return _count(seconds // length, noun)
    return _count(seconds, "second")


def _item(item: str, label: str, status: Status, description: str, cure: str) -> Item:
    return Item(item, label, status, description, "" if status == "pass" else cure)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

"""Rights of each role, on every route that takes a session: said here once more, route by route."""

from collections.abc import Iterator
from contextlib import closing

import httpx
import pytest

from api.http.endpoint import Endpoint
from api.routes import endpoints
from tests.fixtures.callers import Tenant, new_tenant, platform_client
from tests.fixtures.people import Person, member, sign_in
from tests.fixtures.server import Service

ROLES = ("owner", "admin", "developer", "billing", "viewer", "member")
ANYBODY, TEAM, BUILDERS, ADMINS = set(ROLES), set(ROLES[:-1]), set(ROLES[:3]), set(ROLES[:2])

# Roles, the action for which a second factor must be recent (None: for none), and the routes. Not read from the
# declarations: a route that is declared wrongly must fail here.
RULES: tuple[tuple[set[str], str | None, str], ...] = (
    (
        TEAM,
        None,
        """
        GET /agents
        GET /agents/{agentId}
        GET /agents/{agentId}/account
        GET /agents/{agentId}/balance
        GET /agents/{agentId}/tokens
        GET /agents/{agentId}/policies
        GET /agents/{agentId}/policies/votes
        GET /approver-keys
        GET /vault/{agentId}/pending
        GET /vault/{agentId}/history
        GET /vault/{agentId}/transactions
        GET /vault/{agentId}/transactions/{txId}
        GET /vault/{agentId}/transactions/{txId}/receipt
        GET /vault/{agentId}/bitcoin/address
        POST /vault/{agentId}/simulate
        POST /agents/{agentId}/policies/backtest
        GET /transactions
        GET /approvals
        GET /approvals/stats
        GET /approvals/{id}
        GET /intents
        GET /intents/{intentId}
        GET /accounts
        GET /accounts/{accountId}
        GET /accounts/{accountId}/balance
        GET /accounts/{accountId}/aggregations
        GET /accounts/{accountId}/aggregations/{aggregationId}
        GET /v1/accounts
        GET /v1/accounts/{accountId}
        GET /v1/accounts/{accountId}/balance
        GET /v1/accounts/{accountId}/aggregations
        GET /v1/accounts/{accountId}/aggregations/{aggregationId}
        GET /dashboard/{agentId}
        GET /secrets
        GET /events
        GET /secrets/{id}
        GET /secrets/routes
        GET /secrets/routes/{id}
        GET /tenants/{id}
        GET /tenants/{id}/config
    """,
    ),
    # What changes rules, names or quorums takes more; tests/routes/intents.
    (
        BUILDERS,
        None,
        """
        POST /intents
    """,
    ),
    (
        BUILDERS,
        "tenantAdmin",
        """
        POST /agents
        POST /agents/batch
        PATCH /agents/{agentId}
        POST /agents/{agentId}/token
        POST /secrets
        PUT /secrets/{id}
        POST /secrets/{id}/rotate
        DELETE /secrets/{id}
        POST /secrets/routes
        PUT /secrets/routes/{id}
        DELETE /secrets/routes/{id}
        POST /secrets/routes/explain
    """,
    ),
    (
        TEAM,
        "approvals",
        """
        POST /approver-keys
        DELETE /approver-keys/{keyId}
    """,
    ),
    (
        ADMINS,
        "keyImport",
        """
        POST /vault/{agentId}/import/init
        POST /vault/{agentId}/import/submit
        POST /user/me/wallet/import/init
        POST /user/me/wallet/import/submit
    """,
    ),
    (
        ADMINS,
        "signers",
        """
        POST /agents/{agentId}/signers
        DELETE /agents/{agentId}/signers/{signerId}
        GET /user/me/wallet/signers
        POST /user/me/wallet/signers
        DELETE /user/me/wallet/signers/{signerId}
        POST /agents/{agentId}/key-quorums
        DELETE /agents/{agentId}/key-quorums/{quorumId}
    """,
    ),
    (
        ADMINS,
        None,
        """
        GET /agents/{agentId}/signers
        PATCH /agents/{agentId}/signers/{signerId}
        GET /agents/{agentId}/key-quorums
        PATCH /agents/{agentId}/key-quorums/{quorumId}
    """,
    ),
    (
        ADMINS,
        "tenantAdmin",
        """
        DELETE /agents/{agentId}/tokens
        PUT /agents/{agentId}/policies
        POST /agents/{agentId}/policies/votes
        PUT /tenants/{id}/config
        PUT /tenants/{id}/app-clients
        POST /tenants/{id}/app-clients
        DELETE /tenants/{id}/app-clients/{clientId}
        PUT /tenants/{id}/oidc-providers
        PUT /tenants/{id}/saml-sso
        DELETE /tenants/{id}/saml-sso
        POST /tenants/{id}/sign-on/test
        GET /user/me/tenants/{tenantId}/users/wallet-policy/violations
        DELETE /user/me/tenants/{tenantId}/users/{userId}/wallet-policy/wallets/{accountId}
        POST /user/me/tenants/{tenantId}/users/wallet-policy/remediations
        GET /tenants/{id}/app-clients/{clientId}/secrets
        POST /tenants/{id}/app-clients/{clientId}/secrets
        DELETE /tenants/{id}/app-clients/{clientId}/secrets/{secretId}
        POST /tenants/{id}/sso-domains
        POST /tenants/{id}/sso-domains/{domain}/verify
        DELETE /tenants/{id}/sso-domains/{domain}
        GET /tenants/{id}/api-keys
        POST /tenants/{id}/api-keys
        DELETE /tenants/{id}/api-keys/{keyId}
        GET /tenants/{id}/request-signing-keys
        POST /tenants/{id}/request-signing-keys
        DELETE /tenants/{id}/request-signing-keys/{keyId}
        GET /tenants/{id}/security-checklist
        GET /user/me/tenants/{id}/users
        GET /tenants/{id}/idempotency-metrics
        GET /tenants/{id}/idempotency-metrics/export
        POST /accounts
        PATCH /accounts/{accountId}
        DELETE /accounts/{accountId}
        POST /accounts/{accountId}/aggregations
        PATCH /accounts/{accountId}/aggregations/{aggregationId}
        DELETE /accounts/{accountId}/aggregations/{aggregationId}
        POST /v1/accounts
        PATCH /v1/accounts/{accountId}
        DELETE /v1/accounts/{accountId}
        POST /v1/accounts/{accountId}/aggregations
        PATCH /v1/accounts/{accountId}/aggregations/{aggregationId}
        DELETE /v1/accounts/{accountId}/aggregations/{aggregationId}
    """,
    ),
    (
        ADMINS,
        "approvals",
        """
        POST /vault/{agentId}/approve/{txId}
        POST /vault/{agentId}/reject/{txId}
        POST /approvals/{id}/approve
        POST /approvals/{id}/deny
        POST /agents/{agentId}/freeze
        POST /agents/{agentId}/unfreeze
        POST /tenants/{id}/freeze
        POST /tenants/{id}/unfreeze
    """,
    ),
    (
        ADMINS,
        "intents",
        """
        POST /intents/{intentId}/authorize
        POST /intents/{intentId}/approve
        POST /intents/{intentId}/reject
        POST /intents/{intentId}/execute
        POST /intents/{intentId}/fail
        POST /intents/{intentId}/cancel
        POST /intents/{intentId}/expire
    """,
    ),
    (
        ADMINS,
        "audit",
        """
        GET /audit/events
        GET /audit/export
        GET /audit/checkpoints
    """,
    ),
    (
        ADMINS,
        "webhooks",
        """
        POST /webhooks
        GET /webhooks
        GET /webhooks/{id}
        PUT /webhooks/{id}
        DELETE /webhooks/{id}
        GET /webhooks/{id}/deliveries
        GET /webhooks/{id}/deliveries/export
        POST /webhooks/deliveries/{id}/retry
        POST /webhooks/deliveries/{id}/replay
        POST /webhooks/{id}/test
        POST /webhooks/{id}/roll-secret
    """,
    ),
    (
        ADMINS,
        "vaultSigning",
        """
        POST /vault/{agentId}/sign
        POST /vault/{agentId}/sign-typed-data
        POST /vault/{agentId}/sign-solana
        POST /vault/{agentId}/sign-message
        POST /vault/{agentId}/sign-bitcoin-psbt
        POST /user/me/wallet
        GET /user/me/wallets
        POST /vault/{agentId}/transactions/{txId}/replace
        POST /vault/{agentId}/actions/transfer
        POST /vault/{agentId}/actions/transfer/quote
        GET /vault/{agentId}/actions/{actionId}
    """,
    ),
    (
        ADMINS,
        None,
        """
        GET /tenants/{id}/app-clients
        GET /tenants/{id}/sso-domains
        GET /tenants/{id}/oidc-providers
        GET /tenants/{id}/saml-sso
        GET /tenants/{id}/usage
    """,
    ),
    # A person's own affairs. What a change of factors needs depends on the person, and is tried with the factors.
    (
        ANYBODY,
        None,
        """
        POST /tenants
        GET /me
        POST /user/me/tenants/{tenantId}/invitations/accept
        GET /auth/identities
        POST /auth/identities
        DELETE /auth/identities/{id}
        GET /auth/session
        GET /auth/sessions
        DELETE /auth/sessions/{id}
        POST /auth/session/tenant
        GET /auth/mfa
        POST /auth/mfa/totp/enroll
        POST /auth/mfa/totp/verify
        POST /auth/mfa/totp/step-up
        DELETE /auth/mfa/totp
        POST /auth/mfa/recovery-codes
        POST /auth/mfa/recovery-codes/step-up
        POST /auth/mfa/passkey/options
        POST /auth/mfa/passkey/step-up
        POST /auth/mfa/sms/enroll
        POST /auth/mfa/sms/verify
        POST /auth/mfa/sms/send
        POST /auth/mfa/sms/step-up
        POST /auth/passkeys/register/options
        POST /auth/passkeys/register/verify
        GET /auth/passkeys
        DELETE /auth/passkeys/{id}
        GET /auth/device/request
        POST /auth/device/verify
        POST /auth/logout
    """,
    ),
    # Retired: 410 for every caller.
    (
        ANYBODY,
        None,
        """
        PUT /tenants/{id}/webhook
        PUT /platform/tenants/{id}/policies
    """,
    ),
)
EXPECTED = {route.strip(): (roles, action) for roles, action, text in RULES for route in text.strip().splitlines()}
# It ends the session with which it is tried.
LAST = "POST /auth/logout"


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


TABLE = {name(endpoint): endpoint for endpoint in endpoints()}
FOR_PEOPLE = [endpoint for endpoint in TABLE.values() if "session" in endpoint.who.kinds]
IDS = {"agent": "absent", "client_id": "absent"}
CHANGES_FACTORS = {"POST /auth/mfa/recovery-codes", "DELETE /auth/mfa/totp"}
REFUSALS = {"wrong_role", "mfa_required", "wrong_kind", "session_revoked", "bad_credential", "bad_token"}


class Team:
    """A tenant with a member of each role, once with a second factor shown just now, once without any."""

    def __init__(self, service: Service, tenant: Tenant) -> None:
        self.tenant, self._service = tenant, service
        self.people = {(role, mfa): member(service, tenant, role, mfa=mfa) for role in ROLES for mfa in (False, True)}

    def tried(self, endpoint: Endpoint, role: str, *, mfa: bool) -> httpx.Response:
        """Call a route with a body that no route accepts: an admitted caller gets 400, and nothing happens."""
        path = endpoint.path.replace("<tenant_id>", self.tenant.id)
        for part in endpoint.path_names:
            path = path.replace(f"<{part}>", IDS.get(part, "00000000-0000-0000-0000-000000000000"))
        # A stream goes on for as long as somebody listens.
        path += "?follow=false" if endpoint.media == "text/event-stream" else ""
        body = {"surplus": 1} if endpoint.body is not None else None
        if name(endpoint) in CHANGES_FACTORS:
            # What was shown before no longer counts afterwards, so this is nobody whom another test still needs.
            with closing(member(self._service, self.tenant, role, mfa=mfa)) as somebody:
                return somebody.request(endpoint.method, path, json=body)
        return self.people[role, mfa].request(endpoint.method, path, json=body)


@pytest.fixture(scope="module")
def team(service: Service) -> Iterator[Team]:
    with new_tenant(service) as tenant:
        made = Team(service, tenant)
        yield made
        for person in made.people.values():
            person.close()


def said(answer: httpx.Response) -> str:
    """The code of a refusal; `admitted` where the caller may call the route, whatever its outcome."""
    code = "" if answer.is_success else answer.json()["data"]["code"]
    return code if code in REFUSALS else "admitted"


def due(role: str, mfa: bool, roles: set[str], action: str | None) -> str:
    if role not in roles:
        return "wrong_role"
    return "mfa_required" if action is not None and not mfa else "admitted"


def test_every_route_that_a_person_may_call_is_in_this_files_table() -> None:
    assert {name(endpoint) for endpoint in FOR_PEOPLE} == set(EXPECTED)


@pytest.mark.parametrize("endpoint", [one for one in FOR_PEOPLE if name(one) != LAST], ids=name)
def test_each_role_may_do_what_it_should_and_no_more(team: Team, endpoint: Endpoint) -> None:
    roles, action = EXPECTED[name(endpoint)]
    cases = [(role, mfa) for role in ROLES for mfa in (False, True)]

    found = {case: team.tried(endpoint, case[0], mfa=case[1]) for case in cases}

    assert {case: said(answer) for case, answer in found.items()} == {case: due(*case, roles, action) for case in cases}
    assert {answer.status_code for answer in found.values() if said(answer) != "admitted"} <= {403}
    wanting = [answer.json()["data"] for answer in found.values() if said(answer) == "mfa_required"]
    assert all((one["action"], one["maxAgeSeconds"], one["methods"]) == (action, 300, []) for one in wanting)


@pytest.mark.parametrize("endpoint", [one for one in TABLE.values() if "session" not in one.who.kinds], ids=name)
def test_routes_closed_to_people_are_closed_to_owners(team: Team, endpoint: Endpoint) -> None:
    answer = team.tried(endpoint, "owner", mfa=True)

    if "public" in endpoint.who.kinds:
        assert answer.headers.get("content-type") != "application/json" or said(answer) == "admitted"
    else:
        assert (answer.status_code, answer.json()["data"]["code"]) == (403, "wrong_kind")


def test_a_missing_factor_is_said_with_what_one_has(service: Service, tenant: Tenant, as_owner: Person) -> None:
    with closing(sign_in(service, as_owner.wallet, tenant=tenant.id)) as later:
        answer = later.post("/agents", json={"id": "one", "name": "One"})

    assert answer.json()["data"] == {
        "code": "mfa_required",
        "action": "tenantAdmin",
        "methods": ["recovery", "totp"],
        "maxAgeSeconds": 300,
    }


# ---- a role that changes while its session lives


def change_role(service: Service, tenant: Tenant, person: Person, role: str) -> None:
    with platform_client(service) as platform:
        platform.ok(
            "POST", f"/platform/tenants/{tenant.id}/members", {"userId": person.id, "role": role, "force": True}
        )


@pytest.mark.parametrize("role", ["viewer", "billing", "member", "developer"])
def test_a_lower_role_takes_effect_at_once(service: Service, tenant: Tenant, as_owner: Person, role: str) -> None:
    rules = {"method": "PUT", "url": "/agents/one/policies", "json": []}
    tenant.ok("POST", "/agents", {"id": "one", "name": "One"})
    assert as_owner.request(**rules).status_code == 200

    change_role(service, tenant, as_owner, role)

    assert as_owner.request(**rules).json()["data"] == {"code": "wrong_role"}
    assert as_owner.ok("GET", "/auth/session")["tenant"]["role"] == role
    assert as_owner.refresh().json()["data"]["tenant"]["role"] == role


def test_a_higher_role_takes_effect_at_once(service: Service, tenant: Tenant) -> None:
    with closing(member(service, tenant, "viewer", mfa=True)) as person:
        assert said(person.post("/agents", json={"id": "one", "name": "One"})) == "wrong_role"

        change_role(service, tenant, person, "developer")

        assert person.post("/agents", json={"id": "one", "name": "One"}).status_code == 201


def test_a_removed_member_is_out_at_once(service: Service, tenant: Tenant, as_owner: Person) -> None:
    assert as_owner.get("/agents").status_code == 200

    with platform_client(service) as platform:
        platform.ok("DELETE", f"/platform/tenants/{tenant.id}/members/{as_owner.id}", {"force": True})

    answers = [as_owner.get("/agents"), as_owner.post("/agents", json={"id": "one", "name": "One"})]
    assert [(answer.status_code, said(answer)) for answer in answers] == [(401, "session_revoked")] * 2

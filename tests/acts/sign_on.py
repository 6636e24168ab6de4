"""Signing on at identity providers, and how a tenant sets that up."""

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from tests.acts.act import ADMINS, ANYBODY, PUBLIC, SESSION, Act, Journey
from tests.fixtures.people import member
from tests.routes.auth.hosted import CLIENT, REDIRECT, Application, put_client
from tests.table import sign_on_journeys

if TYPE_CHECKING:
    from tests.table.world import World


def _new_domain(world: "World") -> Journey:
    path = f"/tenants/{world.tenant.id}/sso-domains"
    # A tenant has few of them.
    for one in world.owner.ok("GET", path):
        world.owner.delete(f"{path}/{one['domain']}")
    return Journey(world.owner, {"tenant_id": world.tenant.id}, {"domain": f"d-{secrets.token_hex(6)}.example"})


def _domain(world: "World") -> Journey:
    journey = _new_domain(world)
    made = world.owner.ok("POST", f"/tenants/{world.tenant.id}/sso-domains", journey.body)
    world.dns_server.txt(made["record"]["name"], made["record"]["value"])
    return Journey(journey.client, {**journey.path, "domain": made["domain"]})


def _step(make: Callable[["World"], sign_on_journeys.Step]) -> Callable[["World"], Journey]:
    return lambda world: Journey(*make(world))


def _with_saml(world: "World") -> Journey:
    sign_on_journeys.saved_saml(world)
    return Journey(world.owner, {"tenant_id": world.tenant.id})


# Nobody is there, so nobody is asked for what is left out.
OIDC_PROVIDER = {
    "id": "idp",
    "issuer": "http://127.0.0.1:1",
    "clientId": "custody",
    "jwksUri": "http://127.0.0.1:1/keys",
    "authorizationUrl": "http://127.0.0.1:1/authorize",
    "tokenUrl": "http://127.0.0.1:1/token",
}


def _application(world: "World") -> Application:
    put_client(world.owner)
    return Application(world.service, world.tenant.id)


def _look(world: "World") -> Journey:
    _application(world)
    query = {"tenant_id": world.tenant.id, "client_id": CLIENT, "redirect_uri": REDIRECT}
    return Journey(world.nobody, query=urlencode(query))


def _sign_in_code(world: "World") -> Journey:
    application = _application(world)
    return Journey(member(world.service, world.tenant, "member"), body=application.body())


ACTS = (
    Act("GET /sign-in", PUBLIC),
    Act(
        "GET /auth/sign-in",
        PUBLIC,
        command="LookAtSignIn",
        nothing={"tenant": "absent", "client": "absent", "redirect_uri": ""},
        journey=_look,
    ),
    Act(
        "POST /auth/sign-in/code",
        SESSION,
        ANYBODY,
        command="GrantCode",
        nothing={"client": "absent", "redirect_uri": "https://app.example.com/", "code_challenge": "x" * 43},
        journey=_sign_in_code,
    ),
    Act("GET /tenants/{id}/oidc-providers", SESSION, ADMINS),
    Act(
        "PUT /tenants/{id}/oidc-providers",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="PutOidcProviders",
        nothing={"providers": []},
        body=lambda world: {"providers": [OIDC_PROVIDER]},
    ),
    Act("GET /tenants/{id}/sso-domains", SESSION, ADMINS),
    Act(
        "POST /tenants/{id}/sso-domains",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="PutSsoDomain",
        nothing={"domain": "example", "sso_required": False},
        journey=_new_domain,
    ),
    Act(
        "POST /tenants/{id}/sso-domains/{domain}/verify",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="VerifySsoDomain",
        nothing={"domain": "absent.example.com", "found": []},
        journey=_domain,
    ),
    Act(
        "DELETE /tenants/{id}/sso-domains/{domain}",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="DeleteSsoDomain",
        nothing={"domain": "absent.example.com"},
        journey=_domain,
    ),
    Act(
        "POST /auth/sso/discover",
        PUBLIC,
        command="DiscoverSignOn",
        nothing={"email": "a@example.com"},
        body=lambda world: {"email": "somebody@example.com"},
    ),
    Act(
        "GET /auth/oauth/{provider}/authorize",
        PUBLIC,
        command="BeginSignIn",
        nothing={"kind": "oauth", "provider": "google", "browser": "x" * 43},
        journey=_step(sign_on_journeys.begin_oauth),
    ),
    Act(
        "GET /auth/oauth/{provider}/callback",
        PUBLIC,
        command="OpenSignIn",
        nothing={"kind": "oauth", "provider": "google", "tenant": None, "state": "x", "browser": "x"},
        journey=_step(sign_on_journeys.finish_oauth),
    ),
    Act(
        "POST /auth/oauth/{provider}/token",
        PUBLIC,
        command="ExchangeCode",
        nothing={"code": "x", "code_verifier": "x"},
        journey=_step(sign_on_journeys.exchange_of_google),
    ),
    Act("POST /auth/oauth/exchange", PUBLIC, command="ExchangeCode", journey=_step(sign_on_journeys.exchange)),
    Act(
        "GET /auth/oidc/{provider}/authorize", PUBLIC, command="BeginSignIn", journey=_step(sign_on_journeys.begin_oidc)
    ),
    Act(
        "GET /auth/oidc/{provider}/callback", PUBLIC, command="OpenSignIn", journey=_step(sign_on_journeys.finish_oidc)
    ),
    Act("GET /auth/saml/{tenantId}/login", PUBLIC, command="BeginSignIn", journey=_step(sign_on_journeys.begin_saml)),
    Act(
        "GET /auth/saml/{tenantId}/metadata",
        PUBLIC,
        journey=lambda world: Journey(world.nobody, {"sign_on_tenant": world.tenant.id}),
    ),
    Act(
        "POST /auth/saml/{tenantId}/acs",
        PUBLIC,
        command="FinishSaml",
        nothing={"tenant": "t", "relay_state": "x", "browser": "x", "response": "x"},
        journey=_step(sign_on_journeys.finish_saml),
    ),
    Act("GET /tenants/{id}/saml-sso", SESSION, ADMINS),
    Act(
        "PUT /tenants/{id}/saml-sso",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="PutSaml",
        nothing={"config": {}},
        journey=lambda world: Journey(world.owner, {"tenant_id": world.tenant.id}, sign_on_journeys.saml_config(world)),
    ),
    Act(
        "DELETE /tenants/{id}/saml-sso",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="DeleteSaml",
        nothing={},
        journey=_with_saml,
    ),
    Act(
        "POST /tenants/{id}/saml-sso/encryption-keys",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="MakeSamlKey",
        nothing={"former_days": 30},
        journey=lambda world: Journey(world.owner, {"tenant_id": world.tenant.id}, {"formerDays": 0}),
    ),
    Act(
        "POST /tenants/{id}/sign-on/test",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="TestSignOn",
        nothing={"provider": "absent"},
        journey=lambda world: msgspec.structs.replace(_with_saml(world), body={"provider": "saml"}),
    ),
    Act(
        (),
        PUBLIC,
        command="DomainSeen",
        nothing={"tenant": "t", "domain": "example.com", "found": []},
        senders="scheduler",
    ),
    Act((), PUBLIC, command="FinishOAuth", nothing={"state": "x"}),
    Act(
        (),
        PUBLIC,
        command="PutProviderKeys",
        nothing={"tenant": None, "provider": "google", "jwks_uri": "https://idp.example.com/keys"},
        senders="scheduler",
    ),
)

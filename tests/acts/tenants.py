"""Acts on a tenant: its configuration, keys and app clients."""

import uuid
from typing import TYPE_CHECKING

from tests.acts.act import (
    ABSENT,
    ADMINS,
    ANYBODY,
    DECIDERS,
    EVERY,
    OPERATOR_OR_SESSION,
    PUBLIC,
    SESSION,
    SIDE,
    TEAM,
    Act,
    Journey,
)
from tests.acts.makers import next_api_key, older_api_key
from tests.fixtures.callers import fresh

if TYPE_CHECKING:
    from tests.table.world import World

APP_CLIENT = {"id": "keeper", "name": "A client"}


def _new_app_client(world: "World") -> Journey:
    path = f"/tenants/{world.tenant.id}/app-clients"
    # A tenant has few of them.
    world.owner.delete(f"{path}/{APP_CLIENT['id']}")
    return Journey(world.owner, {"tenant_id": world.tenant.id}, APP_CLIENT)


def _app_client(world: "World") -> Journey:
    journey = _new_app_client(world)
    world.owner.ok("POST", f"/tenants/{world.tenant.id}/app-clients", APP_CLIENT)
    return Journey(journey.client, {**journey.path, "client_id": APP_CLIENT["id"]})


def _app_secret(world: "World") -> Journey:
    journey = _app_client(world)
    made = world.owner.ok("POST", f"/tenants/{world.tenant.id}/app-clients/{APP_CLIENT['id']}/secrets", {})
    return Journey(journey.client, {**journey.path, "app_secret_id": made["id"]})


def _no_signing_key(world: "World") -> Journey:
    path = f"/tenants/{world.tenant.id}/request-signing-keys"
    for key in world.owner.ok("GET", path):
        world.owner.delete(f"{path}/{key['id']}")
    return Journey(world.owner, {"tenant_id": world.tenant.id})


def _signing_key(world: "World") -> Journey:
    journey = _no_signing_key(world)
    made = world.owner.ok("POST", f"/tenants/{world.tenant.id}/request-signing-keys", {})
    return Journey(journey.client, {**journey.path, "key_id": made["id"]})


ACTS = (
    Act(
        "POST /tenants",
        OPERATOR_OR_SESSION,
        ANYBODY,
        command="CreateTenant",
        nothing={"id": "whoever-is-first", "name": "x"},
        body=lambda world: {"id": fresh(), "name": "A tenant", "apiKeyHash": uuid.uuid4().hex * 2},
    ),
    Act("GET /tenants/{id}", SIDE, TEAM),
    Act("GET /tenants/{id}/config", SIDE, TEAM),
    Act("GET /tenants/{id}/usage", DECIDERS, ADMINS),
    Act(
        "PUT /tenants/{id}/config",
        DECIDERS,
        ADMINS,
        "tenantAdmin",
        command="PutConfig",
        nothing={"document": "{}", "judging": {}},
        body=lambda world: {"displayName": "Shown"},
    ),
    Act("GET /tenants/{id}/tokens", SIDE, TEAM, command="ReadTokens", nothing={}),
    Act(
        "PUT /tenants/{id}/tokens",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="PutTokens",
        nothing={"tokens": []},
        body=lambda world: {"tokens": [{"asset": f"evm:1:0x{'11' * 20}", "symbol": "USDC", "decimals": 6}]},
    ),
    Act("PUT /tenants/{id}/webhook", EVERY, ANYBODY, unaudited="retired: always 410 and no write"),
    Act("GET /tenants/{id}/app-clients", SESSION, ADMINS),
    Act(
        "PUT /tenants/{id}/app-clients",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="PutAppClients",
        nothing={"clients": [], "mode": "create"},
        journey=_new_app_client,
    ),
    Act(
        "POST /tenants/{id}/app-clients",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="PutAppClients",
        journey=_new_app_client,
    ),
    Act(
        "DELETE /tenants/{id}/app-clients/{clientId}",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="DeleteAppClient",
        nothing={"client": "absent"},
        journey=_app_client,
    ),
    Act("GET /tenants/{id}/app-clients/{clientId}/secrets", SESSION, ADMINS, "tenantAdmin", journey=_app_client),
    Act(
        "POST /tenants/{id}/app-clients/{clientId}/secrets",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="CreateAppSecret",
        nothing={"client": "absent"},
        journey=_app_client,
    ),
    Act(
        "DELETE /tenants/{id}/app-clients/{clientId}/secrets/{secretId}",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="RevokeAppSecret",
        nothing={"client": "absent", "secret": ABSENT},
        journey=_app_secret,
    ),
    Act("GET /tenants/{id}/request-signing-keys", SESSION, ADMINS, "tenantAdmin"),
    Act(
        "POST /tenants/{id}/request-signing-keys",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="CreateSigningKey",
        nothing={},
        journey=_no_signing_key,
    ),
    Act(
        "DELETE /tenants/{id}/request-signing-keys/{keyId}",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="RevokeSigningKey",
        nothing={"key": ABSENT},
        journey=_signing_key,
    ),
    Act("GET /tenants/{id}/security-checklist", SESSION, ADMINS, "tenantAdmin"),
    Act("GET /tenants/{id}/idempotency-metrics", SESSION, ADMINS, "tenantAdmin"),
    Act("GET /tenants/{id}/idempotency-metrics/export", SESSION, ADMINS, "tenantAdmin"),
    Act("GET /tenants/{id}/api-keys", SESSION, ADMINS, "tenantAdmin"),
    Act(
        "POST /tenants/{id}/api-keys",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="CreateApiKey",
        nothing={},
        journey=next_api_key,
    ),
    Act(
        "DELETE /tenants/{id}/api-keys/{keyId}",
        SESSION,
        ADMINS,
        "tenantAdmin",
        command="RevokeApiKey",
        nothing={"key": ABSENT},
        journey=older_api_key,
    ),
    Act(
        (),
        EVERY,
        ANYBODY,
        command="CheckRequestSignature",
        nothing={
            "method": "POST",
            "path": "/",
            "timestamp": None,
            "expires_at": None,
            "idempotency_key": "x" * 8,
            "body_sha256": "0" * 64,
            "signature": "v1=00",
        },
    ),
    Act((), PUBLIC, command="LookUpOrigin", nothing={"origin": "https://app.example.com"}),
)

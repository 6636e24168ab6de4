"""The APIs that clients are tried with, and the credential route that each needs."""

from typing import Any

import msgspec

from tests.clients.apis import forges, models, registries, stores, talking, web
from tests.clients.apis.api import Api, secret_of
from tests.outside.store import KEY_ID, REGION, SECRET

APIS: tuple[Api, ...] = (
    web.web,
    models.openai,
    models.azure,
    models.anthropic,
    models.google,
    forges.github,
    forges.gitlab,
    stores.s3,
    stores.azure,
    stores.gcs,
    stores.hub,
    registries.npm,
    registries.npm_public,
    registries.pypi,
    registries.pypi_public,
    registries.git,
    talking.mcp,
    talking.ws,
)
BEARER = {"injectAs": "header", "injectKey": "Authorization", "injectFormat": "Bearer {value}"}


def _key(name: str) -> dict[str, Any]:
    return {"injectAs": "header", "injectKey": name, "injectFormat": "{value}"}


def _basic(user: str) -> dict[str, Any]:
    return {"injectAs": "basic", "injectKey": "Authorization", "injectFormat": user + ":{value}"}


NONE: dict[str, Any] = {"injectAs": "none"}
ROUTES: dict[str, dict[str, Any]] = {
    "web": BEARER,
    "openai": BEARER,
    "azure-openai": _key("api-key"),
    "anthropic": _key("x-api-key"),
    "google": _key("x-goog-api-key"),
    "github": BEARER,
    "gitlab": _key("PRIVATE-TOKEN"),
    "s3": {"injectAs": "awsSigV4", "injectKey": f"{REGION}/s3", "injectFormat": "{value}"},
    "azure-blob": {"injectAs": "query", "injectKey": "sig", "injectFormat": "{value}"},
    "gcs": BEARER,
    "hub": BEARER,
    "npm": BEARER,
    "npm-public": NONE,
    "pypi": _basic("u"),
    "pypi-public": NONE,
    "git": _basic("x-access-token"),
    "mcp": BEARER,
    "ws": BEARER,
    # Served by `programs/grpc_api.py`.
    "grpc": BEARER,
}


def value_of(api: str) -> str:
    """The value of the secret that the API's route puts in."""
    key = {"accessKeyId": KEY_ID, "secretAccessKey": SECRET}
    return msgspec.json.encode(key).decode() if api == "s3" else secret_of(api)

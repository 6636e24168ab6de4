"""Alive, ready, the contract, and the public keys. Spec 1/4.5, decisions 1, 7."""

from typing import Any

import msgspec

from api.http.endpoint import Routes
from api.http.who import public
from custody.health import ready as readiness
from custody.health.ready import Ready
from custody.ports import Ports

health = Routes("", tag="Health")
routes = Routes("", tag="System")


class Alive(msgspec.Struct, frozen=True):
    """This process answers."""

    status: str


class Jwks(msgspec.Struct, frozen=True):
    """A JWK set (RFC 7517)."""

    keys: list[dict[str, str]]


@health.get("/health", who=public, returns={200: Alive})
async def alive() -> Any:
    """Say that this process answers."""
    return Alive("ok")


@health.get("/ready", who=public, returns={200: Ready, 503: Ready})
async def ready(ports: Ports) -> Any:
    """Say whether everything that is needed to sign is there."""
    return await readiness.ready(ports)


@routes.get("/.well-known/jwks.json", who=public, returns={200: Jwks}, raw_answer=True)
async def jwks(ports: Ports) -> Any:
    """Get the public keys that verify our tokens."""
    return Jwks(await readiness.public_keys(ports))

"""Alive, ready, the contract, and the public keys."""

from typing import Annotated, Literal

import msgspec

from api.areas.health import ready as readiness
from api.areas.health.ready import Ready
from api.http.endpoint import Routes
from api.http.who import public
from custody.kit.answer_kinds import NotReady
from custody.kit.described import described
from custody.ports import Ports
from custody.version import VERSION, commit

health = Routes("", tag="Health")
routes = Routes("", tag="System")


class Alive(msgspec.Struct, frozen=True):
    """This process responds."""

    status: Annotated[Literal["ok"], described("Always `ok`.")]
    version: Annotated[str, described("The version of the service.")]
    commit: Annotated[str, described("The commit it was built from, in hex; `unknown` where nobody said.")]


class Jwks(msgspec.Struct, frozen=True):
    """A JWK set (RFC 7517)."""

    keys: Annotated[list[dict[str, str]], described("The public keys as JWKs; choose by `kid`.")]


@health.get("/health", who=public, unlimited=True)
async def check_health() -> Alive:
    """Check that this process responds."""
    return Alive("ok", VERSION, commit())


@health.get("/ready", who=public, unlimited=True)
async def check_readiness(ports: Ports) -> Ready | NotReady[Ready]:
    """Check whether everything needed for signing is available."""
    return await readiness.ready(ports)


@routes.get("/.well-known/jwks.json", who=public, raw_answer=True)
async def get_public_keys(ports: Ports) -> Jwks:
    """Get the public keys that verify the tokens, receipts and checkpoints of this service."""
    return Jwks(await readiness.public_keys(ports))

"""Changes by a tenant and an operator while the proxy runs, whether or not the proxy is told of them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.fixtures.deployments import owner_of
from tests.fixtures.proxied import Keyless, Proxied

NOTIFIERS = ("tell_of_tenant", "tell_of_part")
Change = Callable[[Keyless, dict[str, Any]], None]


def sql(statement: str) -> Change:
    """A change that no route makes yet."""

    async def run(keyless: Keyless) -> None:
        async with owner_of(keyless.proxied.database) as owner:
            await owner.execute(statement, keyless.tenant.id)

    return lambda keyless, _route: asyncio.run(run(keyless))


def rest(method: str, path: str, body: Any = None) -> Change:
    """A change over REST."""

    def run(keyless: Keyless, route: dict[str, Any]) -> None:
        names = {"secret": keyless.secret["id"], "agent": keyless.agent.id, "route": route["id"]}
        keyless.tenant.ok(method, path.format(**names), body)

    return run


# After these the agent may not ask for anything; what it gets from then on.
ENDINGS: dict[str, tuple[Change, int, str]] = {
    "the tokens are revoked": (rest("DELETE", "/agents/{agent}/tokens"), 401, "bad_token"),
    "the agent is deleted": (rest("DELETE", "/agents/{agent}"), 401, "bad_token"),
    "the agent is frozen": (sql("UPDATE agents SET frozen_at = now() WHERE tenant_id = $1"), 403, "frozen"),
    "the tenant is frozen": (sql("UPDATE tenants SET frozen_at = now() WHERE id = $1"), 403, "frozen"),
}


@pytest.fixture(params=["told", "not told"])
async def is_told(request: pytest.FixtureRequest, proxy_world: Proxied) -> AsyncIterator[bool]:
    """Run with and without the database's notices of changes to the proxy."""
    if request.param == "told":
        yield True
        return
    async with owner_of(proxy_world.database) as owner:
        kept = [await owner.fetchval("SELECT pg_get_functiondef($1::regproc)", name) for name in NOTIFIERS]
        for name in NOTIFIERS:
            await owner.execute(
                f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
            )
        yield False
        for definition in kept:
            await owner.execute(definition)

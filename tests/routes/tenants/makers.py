"""App clients with a credential, and a look at who waits in the database."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg

from tests.fixtures.callers import Client
from tests.fixtures.eventually import soon
from tests.fixtures.people import Person
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.fixtures.signer_socket import greet

# More than the signer has connections.
CROWD = 12
WAIT_SECONDS = 10


def client_body(client_id: str = "web-app", **changed: Any) -> dict[str, Any]:
    """An app client as it is sent."""
    return {"id": client_id, "name": "A web app", "allowedOrigins": ["https://app.example.com"], **changed}


def keep_client(admin: Person, client_id: str = "web-app", **changed: Any) -> dict[str, Any]:
    """Make an app client."""
    return admin.ok("POST", f"/tenants/{admin.tenant}/app-clients", client_body(client_id, **changed))


def keep_secret(admin: Person, client_id: str = "web-app") -> dict[str, Any]:
    """Make a secret of an app client."""
    return admin.ok("POST", f"/tenants/{admin.tenant}/app-clients/{client_id}/secrets")


@contextmanager
def as_app(admin: Person, app_id: str, secret: str) -> Iterator[Client]:
    """A server integration with the secret of an app client."""
    basic = base64.b64encode(f"{app_id}:{secret}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}", "X-Service-App-Id": app_id}
    with Client(base_url=admin.base_url, headers=headers, timeout=30) as client:
        yield client


@asynccontextmanager
async def holding(database: Database, statement: str, *values: Any) -> AsyncIterator[asyncpg.Connection]:
    """A transaction that holds what a statement locks; it ends, and lets everybody go on, with the block."""
    connection = await asyncpg.connect(database.owner_url)
    try:
        async with connection.transaction():
            await connection.execute(statement, *values)
            yield connection
    finally:
        await connection.close()


async def somebody_waits(owner: asyncpg.Connection, for_statement: str) -> None:
    """Return once a statement of a worker waits for a lock."""
    waits = (
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() "
        "AND usename IN ('custody_signer', 'custody_identity') AND wait_event_type = 'Lock' "
        "AND query LIKE '%' || $1 || '%')"
    )
    await soon(lambda: owner.fetchval(waits, for_statement), seconds=WAIT_SECONDS)


@asynccontextmanager
async def crowd(service: Service, *acts: Callable[[], Any]) -> AsyncIterator[list[asyncio.Future[Any]]]:
    """Acts that all wait in the signer; the block must let them continue before it ends."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(len(acts)) as pool, greet(service) as wire:
        running = [loop.run_in_executor(pool, act) for act in acts]
        # The question itself is one of those it works on.
        await soon(lambda: wire.ask("Status")["data"]["waiting"] > len(acts), seconds=WAIT_SECONDS)
        yield running

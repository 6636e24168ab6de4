"""Every list ends its pages at 4 MiB, however large its rows are, and is read whole by what each page says.

Generated from the contract, so that a new list is tried without anybody thinking of it: without a way to make its
longest rows (`largest_rows.py`) this fails.
"""

import asyncio
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import asyncpg
import httpx
import msgspec
import pytest

from api.http import openapi
from api.http.endpoint import Endpoint
from api.routes import endpoints
from custody.kit.paging import MAX_PAGE_BYTES
from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually
from tests.fixtures.postgres import Database
from tests.fixtures.server import Service
from tests.outside.dns_server import DnsServer
from tests.outside.evm_node import EvmNode
from tests.outside.oauth_providers import OAuthProviders
from tests.outside.oidc_server import running_oidc_server
from tests.outside.sms_gateway import SmsGateway
from tests.outside.smtp_server import Mailbox
from tests.table.largest_rows import LONGEST, UNPAGED, rows_of, segments
from tests.table.mounts import each_once, is_list
from tests.table.world import SignOnWorld, World, queue_order

_PATHS = openapi.document(endpoints(), "http://localhost:3200")["paths"]
_BY_NAME = {f"{endpoint.method} {endpoint.contract_path}": endpoint for endpoint in endpoints()}


LISTS = [pytest.param(endpoint, id=endpoint.contract_path) for endpoint in each_once() if is_list(endpoint)]


# Lists whose rows are made up in a way that the signer takes for another database, and signs no more for their tenant.
CONTRADICTED = {"/audit/checkpoints"}


@pytest.fixture(scope="module")
def new_world(
    service: Service,
    mailbox: Mailbox,
    sms_gateway: SmsGateway,
    dns_server: DnsServer,
    oauth: OAuthProviders,
    evm_node: EvmNode,
) -> Iterator[Callable[[], World]]:
    """Makes worlds of their own."""
    with running_oidc_server() as oidc, ExitStack() as stack:

        def make() -> World:
            world = World(service, mailbox, sms_gateway, SignOnWorld(dns_server, oauth, oidc), evm_node)
            stack.callback(world.close)
            return world

        yield make


@pytest.fixture(scope="module")
def crowded_world(new_world: Callable[[], World]) -> World:
    """A world of its own, whose lists grow long."""
    return new_world()


@pytest.fixture(scope="module")
def done_statements(crowded_world: World, database: Database) -> Iterator[set[str]]:
    """The statements whose rows are there: some lists have the same ones."""
    yield set()
    asyncio.run(_end(crowded_world, database))


async def _end(world: World, database: Database) -> None:
    async with owner_of(database) as owner:
        for statement in {one for longest in LONGEST.values() for one in longest.ended}:
            await owner.execute(_fill(world, [], statement))


def seed(world: World, name: str) -> None:
    """Make one of what a list has."""
    if name == "many agents":
        for part in range(7):
            many = [{"id": f"many-{part}-{n}", "name": "One of many"} for n in range(100)]
            world.tenant.ok("POST", "/agents/batch", {"agents": many})
    elif name == "an order that waits":
        queue_order(world.cautious)
    elif name == "an account":
        world.tenant.ok("POST", "/accounts", {"id": f"first-{uuid.uuid4().hex[:8]}", "walletIds": [world.agent.id]})
    else:
        endpoint = _BY_NAME[name]
        call = world.call(endpoint)
        answer = call.send(world.caller(endpoint))
        assert answer.is_success, answer.text


def walk(client: httpx.Client, path: str, query: dict[str, Any]) -> Iterator[httpx.Response]:
    """Every page of a list, by nothing but what the page before says."""
    onwards: dict[str, Any] = {}
    while True:
        answer = client.get(path, params={**query, **onwards})
        assert answer.status_code == 200, answer.text[:300]
        yield answer
        if cursor := answer.headers.get("X-Next-Cursor"):
            onwards = {"cursor": cursor}
        elif offset := answer.headers.get("X-Next-Offset"):
            assert int(offset) > onwards.get("offset", 0)
            onwards = {"offset": int(offset)}
        else:
            return


def longest_query(endpoint: Endpoint) -> dict[str, Any]:
    """The largest page that the contract lets a caller ask for, with all there is of each row."""
    shapes = {
        one["name"]: one["schema"] for one in _PATHS[endpoint.contract_path]["get"]["parameters"] if "name" in one
    }
    limit = 200 if "format" in shapes else shapes["limit"]["maximum"]
    return {"limit": limit} | ({"include": "data"} if "include" in shapes else {})


@pytest.mark.parametrize("endpoint", LISTS)
async def test_pages_end_at_4_mib_and_every_row_is_reached(
    crowded_world: World,
    new_world: Callable[[], World],
    done_statements: set[str],
    owner: asyncpg.Connection,
    endpoint: Endpoint,
) -> None:
    longest = LONGEST[endpoint.contract_path]
    if endpoint.contract_path in CONTRADICTED:
        crowded_world = new_world()
    for name in longest.seeds:
        seed(crowded_world, name)
    call, client = crowded_world.call(endpoint), crowded_world.caller(endpoint)
    path, _, asked = call.path.partition("?")
    if endpoint.contract_path in CONTRADICTED:
        # Of a log that nothing was sealed of nothing is shown.
        assert eventually(lambda: client.get(path).json()["data"], bool)
    filled = partial(_fill, crowded_world, segments(path))
    try:
        for statement in map(filled, longest.made):
            if statement not in done_statements:
                await owner.execute(statement)
                done_statements.add(statement)
        count = await owner.fetchval(filled(longest.rows))
        query = dict(pair.split("=") for pair in asked.split("&") if pair) | longest_query(endpoint)

        pages = list(walk(client, path, query))
    finally:
        for statement in longest.undone:
            await owner.execute(filled(statement))
            done_statements.difference_update(map(filled, longest.made))

    assert max(len(page.content) for page in pages) <= MAX_PAGE_BYTES
    rows = [msgspec.json.encode(row) for page in pages for row in rows_of(page.json()["data"])]
    assert len(set(rows)) == len(rows) >= count > 0


def _fill(world: World, path: list[str], statement: str) -> str:
    """A statement with the ids that it is about: they are ours, and need no quoting."""
    return (
        statement.replace("$1", f"'{world.tenant.id}'")
        .replace("$2", f"'{{{','.join(path)}}}'::text[]")
        .replace("$3", f"'{world.owner.id}'")
    )


def test_lists_without_pages_are_short_by_a_bound_of_their_own() -> None:
    unpaged = {
        endpoint.contract_path
        for endpoint in endpoints()
        if endpoint.method == "GET" and not is_list(endpoint) and not endpoint.raw_answer and _is_array(endpoint)
    }

    assert unpaged == set(UNPAGED)


def _is_array(endpoint: Endpoint) -> bool:
    return any(getattr(kind, "__origin__", None) is list for kind in endpoint.returns.values())

"""Walking through a list by its cursors: nothing twice, nothing left out, whatever is added meanwhile."""

import asyncio
import base64
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import asyncpg
import httpx
import msgspec
import pytest

from tests.fixtures.callers import Agent, Client, Tenant, rule
from tests.fixtures.deployments import owner_of
from tests.fixtures.people import Person
from tests.fixtures.postgres import Database

ROWS = 7
_DELIVERY = (
    "INSERT INTO deliveries (tenant_id, endpoint_id, event, url, status, attempts, max_attempts, delivered_at) "
    "VALUES ($1, $2, 'tx.signed', 'https://example.com/', 'delivered', 1, 6, now())"
)


class List(msgspec.Struct):
    """One list that can be walked through: who reads it, how it grows, what else it can be asked."""

    client: httpx.Client
    path: str
    add: Callable[[], object]
    other_filter: dict[str, str]
    table: str

    def page(self, **query: Any) -> httpx.Response:
        """One page."""
        return self.client.get(self.path, params=query)

    def walk(self, limit: int, between: Callable[[], object] = lambda: None) -> list[dict[str, Any]]:
        """Every row, page by page."""
        rows: list[dict[str, Any]] = []
        query: dict[str, Any] = {"limit": limit}
        while True:
            answer = self.page(**query)
            assert answer.status_code == 200, answer.text
            rows += rows_of(answer)
            cursor = next_of(answer)
            assert answer.headers.get("X-Next-Cursor") == cursor
            if cursor is None:
                return rows
            assert len(rows_of(answer)) == limit
            query["cursor"] = cursor
            between()


def rows_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """The rows of a page, wherever its answer has them."""
    data = answer.json()["data"]
    found: list[dict[str, Any]] = data if isinstance(data, list) else data.get("transactions", data.get("data"))
    return found


def next_of(answer: httpx.Response) -> str | None:
    """The cursor of the next page."""
    body = answer.json()
    place = body if isinstance(body["data"], list) else body["data"].get("pagination", body["data"])
    found: str | None = place["nextCursor"]
    return found


@pytest.fixture
def cautious(tenant: Tenant) -> Agent:
    """An agent whose every payment waits."""
    return tenant.agent(rule("auto-approve-threshold", threshold="0"))


def add_delivery(database: Database, tenant: Tenant, endpoint: str) -> None:
    """One more delivery to an endpoint."""

    async def insert() -> None:
        async with owner_of(database) as owner:
            await owner.execute(_DELIVERY, tenant.id, endpoint)

    asyncio.run(insert())


@pytest.fixture
def endpoint(as_owner: Person) -> str:
    """A webhook to which nothing goes by itself."""
    fields = {"url": "https://hooks.example.com/", "events": ["policy.violation"]}
    return str(as_owner.ok("POST", "/webhooks", fields)["id"])


@pytest.fixture(params=["transactions", "history", "approvals", "audit", "deliveries"])
def a_list(request: pytest.FixtureRequest, tenant: Tenant, database: Database) -> List:
    """A list of seven rows, or a few more where making somebody who reads it was written down too."""
    if request.param in ("transactions", "history"):
        agent = tenant.agent()
        made = List(agent, f"/vault/{agent.id}/{request.param}", agent.sign, {"status": "failed"}, "transactions")
    elif request.param == "approvals":
        made = List(tenant, "/approvals", request.getfixturevalue("cautious").sign, {"status": "all"}, "approvals")
    elif request.param == "audit":
        agent, person = tenant.agent(), request.getfixturevalue("as_owner")
        made = List(person, "/audit/events", agent.sign, {"actionPrefix": "agent."}, "audit")
    else:
        person, webhook = request.getfixturevalue("as_owner"), request.getfixturevalue("endpoint")
        path, add = f"/webhooks/{webhook}/deliveries", partial(add_delivery, database, tenant, webhook)
        made = List(person, path, add, {"status": "failed"}, "deliveries")
    for _ in range(ROWS):
        made.add()
    return made


def test_rows_added_meanwhile_shift_nothing(a_list: List) -> None:
    before = rows_of(a_list.page(limit=200))

    rows = a_list.walk(2, between=a_list.add)

    assert len(before) >= ROWS
    assert [row["id"] for row in rows] == [row["id"] for row in before]
    # Offsets are as they ever were.
    assert len(rows_of(a_list.page(limit=200))) > len(before)


async def test_rows_of_one_moment_are_all_found(a_list: List, owner: asyncpg.Connection, tenant: Tenant) -> None:
    if a_list.table == "audit":
        return  # each has a number of its own
    column = "requested_at" if a_list.table == "approvals" else "created_at"
    await owner.execute(
        f"UPDATE {a_list.table} SET {column} = '2026-01-01T00:00:00.123456Z' WHERE tenant_id = $1", tenant.id
    )

    rows = a_list.walk(2)

    assert [row["id"] for row in rows] == [row["id"] for row in rows_of(a_list.page(limit=200))]
    assert len(rows) == ROWS


def test_a_page_of_a_walk_says_where_it_is(a_list: List) -> None:
    first = a_list.page(limit=2)
    a_list.add()
    second = a_list.page(limit=3, cursor=next_of(first))

    if a_list.table == "audit":
        page = second.json()["data"]["pagination"]
        assert (page["page"], page["limit"], page["totalIsEstimate"]) == (1, 3, False)
        return
    # What was counted when the walk began: nobody counts a million rows for each page.
    if "X-Total-Count" in first.headers:
        assert first.headers["X-Total-Count"] == second.headers["X-Total-Count"] == str(ROWS)
    else:
        page = second.json()["data"]
        assert (page["total"], page["offset"], page["limit"]) == (ROWS, 2, 3)


def test_the_last_page_says_so_even_if_it_is_full(a_list: List) -> None:
    count = len(rows_of(a_list.page(limit=200)))

    assert next_of(a_list.page(limit=count)) is None
    assert next_of(a_list.page(limit=count - 1)) is not None
    assert next_of(a_list.page(limit=200)) is None


def test_a_cursor_serves_its_own_list_and_filters_alone(a_list: List, tenant: Tenant) -> None:
    cursor = next_of(a_list.page(limit=1))

    answers = [tenant.get(f"/vault/{tenant.agent().id}/history", params={"cursor": cursor})]
    if not a_list.path.endswith("history"):
        answers.append(a_list.page(cursor=cursor, **a_list.other_filter))
    for answer in answers:
        assert (answer.status_code, answer.json()["data"]) == (400, {"code": "other_cursor", "fields": ["cursor"]})
        assert "repeat the filters it was given for, or leave cursor out" in answer.json()["error"]
    assert a_list.page(cursor=cursor, limit=3).status_code == 200


def test_a_cursor_of_another_tenant_is_of_another_list(tenant: Tenant, other_tenant: Tenant) -> None:
    agents = [one.agent(agent_id="same-name") for one in (tenant, other_tenant)]
    for agent in agents:
        assert [agent.sign().status_code for _ in range(2)] == [200, 200]
    cursor = agents[0].get("/vault/same-name/history?limit=1").json()["nextCursor"]

    answers = [agent.get(f"/vault/same-name/history?cursor={cursor}") for agent in agents]

    assert [answer.status_code for answer in answers] == [200, 400]


def test_a_cursor_and_an_offset_contradict_each_other(a_list: List) -> None:
    cursor = next_of(a_list.page(limit=1))
    other = {"page": 2} if a_list.table == "audit" else {"offset": 1}

    answer = a_list.page(cursor=cursor, **other)

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "cursor_and_page")


def changes_of(cursor: str) -> Iterator[str]:
    """The cursor with many of its bytes changed, and with its numbers at their ends."""
    content = base64.urlsafe_b64decode(cursor)
    for at in range(0, len(content), 3):
        yield encode(content[:at] + bytes([content[at] ^ 0x81]) + content[at + 1 :])
    yield encode(content[:16] + b"\xff" * 32)
    yield encode(content[:24] + b"\x7f" + b"\xff" * 23)
    yield encode(content[:16] + b"\x00" * 32)


def encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode()


def test_a_changed_cursor_is_refused_or_is_another_place_of_the_same_list(a_list: List) -> None:
    known = {row["id"] for row in rows_of(a_list.page(limit=200))}
    cursor = next_of(a_list.page(limit=1))
    assert cursor is not None

    for one in changes_of(cursor):
        answer = a_list.page(cursor=one)

        if answer.status_code == 200:
            assert {row["id"] for row in rows_of(answer)} <= known
        else:
            assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["cursor"])
            assert answer.json()["data"]["code"] in ("bad_cursor", "other_cursor")


@pytest.mark.parametrize(
    "cursor", ["", "0", "x" * 63, "x" * 65, "=" * 64, "x" * 62 + "==", "+" * 64, "x" * 5_000, str(uuid.UUID(int=7))]
)
def test_a_malformed_cursor_is_refused_before_it_is_read(tenant: Tenant, cursor: str) -> None:
    answer = tenant.get("/approvals", params={"cursor": cursor})

    assert (answer.status_code, answer.json()["data"]) == (400, {"code": "bad_query", "fields": ["cursor"]})


def test_an_agent_that_is_gone_is_absent_in_the_middle_of_a_walk_too(tenant: Tenant) -> None:
    agent = tenant.agent()
    assert [agent.sign().status_code for _ in range(2)] == [200, 200]
    path = f"/vault/{agent.id}/history"
    cursor = tenant.get(f"{path}?limit=1").json()["nextCursor"]
    tenant.ok("DELETE", f"/agents/{agent.id}")

    assert tenant.get(f"{path}?cursor={cursor}").status_code == 404


def test_a_walk_may_begin_at_an_offset(a_list: List) -> None:
    rows = rows_of(a_list.page(limit=200))
    asked = {"page": 2} if a_list.table == "audit" else {"offset": 2}

    second = a_list.page(limit=2, **asked)
    third = a_list.page(limit=200, cursor=next_of(second))

    assert rows_of(second) + rows_of(third) == rows[2:]


def test_a_file_of_deliveries_goes_on_at_the_cursor(
    as_owner: Client, endpoint: str, tenant: Tenant, database: Database
) -> None:
    for _ in range(3):
        add_delivery(database, tenant, endpoint)
    path = f"/webhooks/{endpoint}/deliveries"
    first = as_owner.get(f"{path}/export?limit=2")

    rest = as_owner.get(f"{path}/export?cursor={first.headers['X-Next-Cursor']}")

    assert first.headers["content-disposition"].startswith('attachment; filename="deliveries-2')
    lines = first.text.splitlines() + rest.text.splitlines()[1:]
    assert [line.split(",")[0].strip('"') for line in lines[1:]] == [row["id"] for row in as_owner.ok("GET", path)]
    assert "X-Next-Cursor" not in rest.headers

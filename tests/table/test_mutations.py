"""Laws of every route that changes something: it is audited, and it can be repeated safely."""

import asyncio
import json
import uuid

import asyncpg
import httpx

from api.http.endpoint import Endpoint
from custody.protocol.command import declaration_of
from tests.acts.table import BY_ROUTE
from tests.fixtures.callers import AsyncClient
from tests.fixtures.each import each
from tests.table.mounts import each_once
from tests.table.world import Call, World

MUTATING = [endpoint for endpoint in each_once() if endpoint.hardened]
# Routes that change nothing.
UNAUDITED = {route for route, act in BY_ROUTE.items() if act.unaudited}


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


WRITING = [endpoint for endpoint in MUTATING if name(endpoint) not in UNAUDITED]


def send_keyed(world: World, endpoint: Endpoint, key: str, call: Call, surplus: str = "") -> httpx.Response:
    """Send a call under a key; `surplus` makes the raw body, or the query where there is none, another one."""
    headers = {"Idempotency-Key": key.encode(), "Content-Type": "application/json"}
    caller = world.caller(endpoint)
    if call.json is None:
        return call.send(caller, headers=headers, path=call.path + (f"?{surplus.strip() or 'x'}" if surplus else ""))
    return call.send(caller, headers=headers, content=json.dumps(call.json).encode() + surplus.encode())


@each("endpoint", MUTATING, ids=name)
async def test_a_mutation_leaves_an_audit_row(world: World, endpoint: Endpoint, owner: asyncpg.Connection) -> None:
    request_id = str(uuid.uuid4())

    answer = world.call(endpoint).send(world.caller(endpoint), headers={"X-Request-Id": request_id})

    rows = await owner.fetch("SELECT * FROM audit WHERE request_id = $1", request_id)
    assert answer.status_code == next(iter(endpoint.returns)), answer.text
    assert bool(rows) == (name(endpoint) not in UNAUDITED)
    workers = {"custody_signer", "custody_identity"}
    assert {row["written_by"] for row in rows} <= ({"custody_api"} if endpoint.tag == "Accounts" else workers)
    assert {row["ip_address"] for row in rows} <= {"127.0.0.1"}
    assert all(row["user_agent"].startswith("python-httpx/") for row in rows)
    if endpoint.who.asks is not None:
        # What functions of the database record, no check of the worker sees.
        assert {row["action"] for row in rows} <= declaration_of(endpoint.who.asks).audit


@each("endpoint", MUTATING, ids=name)
async def test_a_refused_caller_leaves_no_audit_row(
    world: World, endpoint: Endpoint, owner: asyncpg.Connection
) -> None:
    request_id = str(uuid.uuid4())

    answer = world.refusable(endpoint).send(world.nobody, headers={"X-Request-Id": request_id})

    assert answer.status_code == 401
    assert await owner.fetchval("SELECT count(*) FROM audit WHERE request_id = $1", request_id) == 0


@each("endpoint", WRITING, ids=name)
def test_the_same_key_again_gives_the_same_answer(world: World, endpoint: Endpoint) -> None:
    call, key = world.call(endpoint), str(uuid.uuid4())

    first = send_keyed(world, endpoint, key, call)
    second = send_keyed(world, endpoint, key, call)

    assert first.status_code == next(iter(endpoint.returns)), first.text
    assert "Idempotency-Replayed" not in first.headers
    if endpoint.shows_secret:
        assert (second.status_code, second.json()["data"]["code"]) == (409, "idempotency_secret_shown")
    else:
        assert (second.status_code, second.json()) == (first.status_code, first.json())
        assert second.headers["Idempotency-Replayed"] == "true"


@each("endpoint", WRITING, ids=name)
def test_the_same_key_for_another_request_is_409(world: World, endpoint: Endpoint) -> None:
    call, key = world.call(endpoint), str(uuid.uuid4())
    first = send_keyed(world, endpoint, key, call)

    second = send_keyed(world, endpoint, key, call, surplus=" ")

    assert first.is_success
    assert (second.status_code, second.json()["data"]["code"]) == (409, "idempotency_mismatch")


@each("endpoint", WRITING, ids=name)
@each("key", ["short", "x" * 256, "eight\tch", "eight  é"])
def test_a_bad_key_is_400(world: World, endpoint: Endpoint, key: str) -> None:
    answer = send_keyed(world, endpoint, key, world.refusable(endpoint))

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "bad_idempotency_key")


@each("endpoint", WRITING, ids=name)
async def test_the_same_key_at_once_acts_once(world: World, endpoint: Endpoint, owner: asyncpg.Connection) -> None:
    call, caller, request_id = world.call(endpoint), world.caller(endpoint), str(uuid.uuid4())
    headers = {**caller.headers, "Idempotency-Key": request_id, "X-Request-Id": request_id}
    async with AsyncClient(base_url=caller.base_url, headers=headers, timeout=30) as client:
        sent = [client.request(call.method, call.path, json=call.json) for _ in range(6)]
        answers = await asyncio.gather(*sent)

    good = next(iter(endpoint.returns))
    assert good in {answer.status_code for answer in answers} <= {good, 409}, [answer.text for answer in answers]
    refused = {answer.json()["data"]["code"] for answer in answers if answer.status_code == 409}
    assert refused <= {"idempotency_in_flight", "idempotency_secret_shown"}
    acted = await owner.fetch("SELECT tenant_id, action FROM audit WHERE request_id = $1", request_id)
    assert len({(row["tenant_id"], row["action"]) for row in acted}) == len(acted)


@each("endpoint", [one for one in WRITING if one.body is not None], ids=name)
def test_a_refused_request_does_not_use_up_its_key(world: World, endpoint: Endpoint) -> None:
    call, key = world.call(endpoint), str(uuid.uuid4())

    refused = send_keyed(world, endpoint, key, call, surplus="}")

    assert refused.status_code == 400
    assert send_keyed(world, endpoint, key, call).status_code == next(iter(endpoint.returns))


def test_two_keys_are_none(world: World) -> None:
    keys = [("Idempotency-Key", str(uuid.uuid4())) for _ in range(2)]

    answer = world.tenant.post("/agents", json={"id": f"a-{uuid.uuid4().hex}", "name": "A"}, headers=keys)

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "bad_idempotency_key")

"""Priced calls: charged before they leave, and of a metered one what its answer leaves comes back."""

import gzip
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.fixtures.callers import rule
from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import soon
from tests.fixtures.proxied import Keyless
from tests.proxy.written import rows

PRICES = {"form": "openai", "input": 3_000_000, "output": 5_000_000}
CHAT = {"model": "m", "messages": [{"role": "user", "content": "one two three"}]}


def give_budget(keyless: Keyless, micro_usd: int) -> None:
    """Have the agent be one that may spend so much a day."""
    keyless.agent = keyless.tenant.agent(rule("spending-limit", maxPerDay=str(micro_usd), asset="usd"))
    keyless.token = str(keyless.agent.headers["Authorization"]).split()[1]


async def spending(keyless: Keyless) -> int:
    """The dollars that count for it, by the table."""
    async with owner_of(keyless.proxied.database) as owner:
        found = await owner.fetchval(
            "SELECT sum(amount) FROM spend WHERE tenant_id = $1 AND agent_id = $2 AND asset = 'usd'",
            keyless.tenant.id,
            keyless.agent.id,
        )
    return int(found or 0)


def told_by(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of an answer of the proxy."""
    return answer.status_code, answer.json()["data"]["code"]


async def test_calls_leave_until_the_budget_is_used_up(keyless: Keyless) -> None:
    give_budget(keyless, 5)
    keyless.route(costMicroUsd=2)
    keyless.route(pathPattern="/status", priority=1)
    client = keyless.gateway()

    answers = [client.get("/echo"), client.post("/v1/count", content=b"12345"), client.get("/echo")]

    assert [answer.status_code for answer in answers] == [200, 200, 403]
    assert told_by(answers[2]) == (403, "budget_exceeded")
    assert 0 < int(answers[2].headers["Retry-After"]) <= 3601
    assert len(keyless.upstream.requests()) == 2
    assert await spending(keyless) == 4
    # On the same connections, nothing is left behind.
    assert client.get("/status?code=204").status_code == 204
    found = [row["metadata"] for row in await rows(keyless, 4)]
    assert sorted(one.get("chargedMicroUsd", 0) for one in found) == [0, 0, 2, 2]
    assert len({one["chargeId"] for one in found if "chargeId" in one}) == 2


async def test_requests_that_do_not_leave_cost_nothing(keyless: Keyless) -> None:
    give_budget(keyless, 100)
    keyless.route(costMicroUsd=2, method="POST")
    keyless.route("store", costMicroUsd=2, enabled=False)
    client = keyless.gateway()
    before = keyless.upstream.connections()

    answers = [client.get("/echo"), keyless.gateway("store").get("/echo")]
    answers.append(client.post("/echo", headers={"Authorization": "Bearer nonsense"}))

    assert [answer.status_code for answer in answers] == [403, 403, 401]
    assert keyless.upstream.connections() == before
    assert await spending(keyless) == 0


async def test_a_free_call_takes_nothing_of_the_budget(keyless: Keyless) -> None:
    give_budget(keyless, 1)
    keyless.route()

    answers = [keyless.gateway().get("/echo") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200] * 3
    assert await spending(keyless) == 0


async def test_a_frozen_agents_priced_call_stays(keyless: Keyless) -> None:
    give_budget(keyless, 10)
    keyless.route(costMicroUsd=2)
    client = keyless.gateway()
    client.get("/echo")
    keyless.tenant.ok("POST", f"/agents/{keyless.agent.id}/freeze", {"reason": "stop"})

    assert told_by(client.get("/echo")) == (403, "frozen")
    assert await spending(keyless) == 2


@pytest.mark.parametrize(
    ("form", "path", "stream", "used"),
    [
        ("openai", "/v1/chat/completions", False, 3 + 5),
        # A stream says it only where the client asks for that.
        ("openai", "/v1/chat/completions", True, 100),
        ("anthropic", "/v1/messages", False, 3 + 5),
        ("anthropic", "/v1/messages", True, 3 + 2 * 5),
    ],
)
async def test_a_metered_call_costs_what_its_answer_says(
    keyless: Keyless, form: str, path: str, stream: bool, used: int
) -> None:
    give_budget(keyless, 1000)
    keyless.route(maxMicroUsd=100, usage=PRICES | {"form": form})

    answer = keyless.gateway().post(path, json=CHAT | {"stream": stream})

    assert answer.status_code == 200
    for word in ("one", "two", "three"):
        assert word in answer.text
    (row,) = await rows(keyless, 1)
    assert row["metadata"]["chargedMicroUsd"] == 100
    assert await soon(lambda: spending(keyless), used)


def call_another(keyless: Keyless) -> None:
    """Make a call that comes to 8: what one before it comes to is known by then, or it never will be.

    It is charged another sum than that one, or on its way the sum of both would be as if nothing had come back.
    """
    keyless.route(pathPattern="/v1/*", priority=1, maxMicroUsd=50, usage=PRICES)
    keyless.gateway().post("/v1/chat/completions", json=CHAT)


def _answer(body: bytes, *headers: bytes, length: int | None = None) -> bytes:
    lines = [b"HTTP/1.1 200 OK", b"Content-Length: %d" % (len(body) if length is None else length), *headers]
    return b"\r\n".join([*lines, b"", b""])


USED = b'{"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "said": "%s"}' % (b"x" * 5000)
JSON = b"Content-Type: application/json"


@pytest.mark.parametrize(
    ("body", "headers", "used"),
    [
        (USED, (JSON,), 8),
        (gzip.compress(USED), (JSON, b"Content-Encoding: gzip"), 8),
        (USED.replace(b"1", b"-5", 1), (JSON,), 100),
        (USED.replace(b"1", b"1" + b"0" * 30, 1), (JSON,), 100),
        (USED.replace(b"1", b"50", 1), (JSON,), 100),
        (USED.replace(b"usage", b"other"), (JSON,), 100),
    ],
    ids=["plain", "gzip", "negative", "huge", "dearer", "missing"],
)
async def test_nothing_beyond_the_charge_comes_back_and_the_bytes_stay(
    keyless: Keyless, body: bytes, headers: tuple[bytes, ...], used: int
) -> None:
    give_budget(keyless, 300)
    keyless.route(maxMicroUsd=100, usage=PRICES)
    with keyless.proxy.connect() as wire:
        wire.say(keyless.pour(_answer(body, *headers), body, times=1))

        answer = wire.hear()

    assert answer is not None
    assert answer.body == (gzip.decompress(body) if b"Content-Encoding: gzip" in headers else body)
    call_another(keyless)
    assert await soon(lambda: spending(keyless), used + 8)


async def test_of_an_answer_that_is_too_long_to_look_into_the_whole_charge_stays(keyless: Keyless) -> None:
    give_budget(keyless, 300)
    keyless.route(maxMicroUsd=100, usage=PRICES)
    block, times = b" " * 1024, 1024
    with keyless.proxy.connect() as wire:
        head = _answer(USED, JSON, length=len(block) * times + len(USED))
        wire.say(keyless.pour(head, block, USED, times=times))

        answer = wire.hear()

    assert answer is not None
    assert answer.body == block * times + USED
    call_another(keyless)
    assert await soon(lambda: spending(keyless), 108)


async def test_an_answer_that_breaks_off_stays_charged(keyless: Keyless) -> None:
    give_budget(keyless, 300)
    keyless.route(maxMicroUsd=100, usage=PRICES)
    with keyless.proxy.connect() as wire:
        wire.say(keyless.pour(_answer(USED, JSON, length=len(USED) + 1), USED, times=1))
        assert wire.hear_bytes(1000)

    call_another(keyless)
    assert await soon(lambda: spending(keyless), 108)


async def test_two_proxies_have_one_sum(keyless: Keyless) -> None:
    give_budget(keyless, 20)
    keyless.route(costMicroUsd=1)
    with keyless.proxied.another_proxy() as other, ThreadPoolExecutor(16) as pool:
        clients = [keyless.gateway(proxy=proxy) for proxy in (keyless.proxy, other)]

        codes = list(pool.map(lambda number: clients[number % 2].get("/echo").status_code, range(40)))

    assert (codes.count(200), codes.count(403)) == (20, 20)
    assert len(keyless.upstream.requests()) == 20
    assert await spending(keyless) == 20


async def test_a_proxy_that_dies_between_charge_and_call_leaves_the_charge(keyless: Keyless) -> None:
    give_budget(keyless, 20)
    keyless.route(costMicroUsd=7)
    with keyless.proxied.another_proxy(ends=-signal.SIGKILL) as other:
        with other.connect() as wire:
            async with owner_of(keyless.proxied.database) as owner, owner.transaction():
                # A lock on the agent's row keeps its charge waiting.
                await owner.execute("SELECT FROM agents WHERE id = $1 FOR UPDATE", keyless.agent.id)
                wire.say(keyless.head("/up/echo"))
                await soon(lambda: _waits_for_row(keyless))
                other.process.kill()

        assert await soon(lambda: spending(keyless), 7)
    assert keyless.upstream.requests() == []


async def _waits_for_row(keyless: Keyless) -> bool:
    async with owner_of(keyless.proxied.database) as owner:
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%sign_write%'"
        return bool(await owner.fetchval(waiting))

"""The cost of finding one person among a thousand and among a million: in the database, and over HTTP.

`python -m bench.lookups [MOST]`
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import asyncpg
import httpx

from bench.deployment import Deployment

FEW, MANY = 1_000, 1_000_000
TIMES = 400
# People with an address, a wallet, a contract wallet, a number, an account at the tenant's provider and an external id.
_PEOPLE = """
WITH made AS (
  INSERT INTO users (id, name, profile_email, created_at)
  SELECT md5('user' || g)::uuid, 'Person ' || g, 'shown' || g || '@example.com', now() FROM generate_series($1::integer, $2::integer) g
  RETURNING id, substring(name FROM 8) AS g)
INSERT INTO memberships (tenant_id, user_id, role, mac, created_at)
SELECT 'bench', id, 'member', decode('01000000', 'hex'), now() - g::integer * interval '1 second' FROM made
"""
_IDENTITIES = """
INSERT INTO identities (kind, subject, user_id, tenant_id, mac, created_at)
SELECT k.kind, k.subject, md5('user' || g)::uuid, k.tenant, decode('01000000', 'hex'), now()
  FROM generate_series($1::integer, $2::integer) g, LATERAL (VALUES
    ('email', 'p' || g || '@example.com', NULL),
    ('wallet', '0x' || lpad(to_hex(g), 40, '0'), NULL),
    ('contract', '1:0xc' || lpad(to_hex(g), 39, '0'), NULL),
    ('oidc', '["bench","okta","https://idp.example","sub' || g || '"]', 'bench')) k (kind, subject, tenant)
"""
_FACTORS = """
INSERT INTO factors (user_id, kind, subject, mac, confirmed_at)
SELECT md5('user' || g)::uuid, 'sms', '+4179' || lpad(g::text, 7, '0'), decode('01000000', 'hex'), now()
  FROM generate_series($1::integer, $2::integer) g
"""
_EXTERNAL_IDS = """
INSERT INTO wallet_external_ids (tenant_id, external_id, user_id, mac, created_at)
SELECT 'bench', 'order:' || g, md5('user' || g)::uuid, decode('01000000', 'hex'), now()
  FROM generate_series($1::integer, $2::integer) g
"""
_FIND = "SELECT * FROM find_platform_users($1, $2, $3, $4)"
# A question about the person of a number: tenant, selector, value, head; and the same as a query.
Asked = Callable[[int], tuple[str | None, str, str, str | None]]
QUESTIONS: dict[str, tuple[Asked, Callable[[int], str]]] = {
    "email": (lambda n: (None, "email", f"p{n}@example.com", None), lambda n: f"email=p{n}@example.com"),
    "email shown in the tenant": (
        lambda n: ("bench", "email", f"shown{n}@example.com", None),
        lambda n: f"email=shown{n}@example.com&tenantId=bench",
    ),
    "phone": (lambda n: (None, "phone", f"+4179{n:07d}", None), lambda n: f"phone=%2B4179{n:07d}"),
    "walletAddress": (lambda n: (None, "wallet", f"0x{n:040x}", None), lambda n: f"walletAddress=0x{n:040x}"),
    "smartWalletId": (
        lambda n: (None, "contract", f"0xc{n:039x}", None),
        lambda n: f"smartWalletId=0xc{n:039x}",
    ),
    "walletExternalId": (
        lambda n: ("bench", "external_id", f"order:{n}", None),
        lambda n: f"walletExternalId=order:{n}&tenantId=bench",
    ),
    "provider": (
        lambda n: ("bench", "account", f',"sub{n}"]'[::-1] + "%", '["bench","okta",'),
        lambda n: f"provider=oidc:okta&providerAccountId=sub{n}&tenantId=bench",
    ),
}


def measure(most: int) -> None:
    """One line for each way to find a person: medians at few and at many, and how many times as long it takes."""
    with Deployment() as deployment:
        key = (deployment.home.path / "platform.key").read_text().strip()
        with httpx.Client(base_url=f"http://127.0.0.1:{deployment.port}", timeout=60) as client:
            client.headers["X-Service-Platform-Key"] = key
            asyncio.run(_measure(deployment, client, most))


async def _measure(deployment: Deployment, client: httpx.Client, most: int) -> None:
    connection = await asyncpg.connect(deployment.owner_url, command_timeout=3600)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in QUESTIONS}
    pages: list[float] = []
    there = 0
    for people in (FEW, most):
        await _give(connection, there + 1, people)
        there = people
        for name, (asked, query) in QUESTIONS.items():
            found[name].append((await _in_database(connection, asked, people), _over_http(client, query, people)))
        pages.append(_page(client))
    await connection.close()
    for name, ((few, few_http), (many, many_http)) in found.items():
        print(
            f"{name:26} in the database {few:6.3f} ms of {FEW:,}, {many:6.3f} ms of {most:,}: {many / few:4.2f} times; "
            f"over HTTP {few_http:5.2f} and {many_http:5.2f} ms: {many_http / few_http:4.2f} times",
            flush=True,
        )
    print(
        f"{'a page of 50 members':26} over HTTP {pages[0]:6.2f} ms of {FEW:,}, {pages[1]:6.2f} ms of {most:,}",
        flush=True,
    )


async def _give(connection: Any, first: int, last: int) -> None:
    began = time.perf_counter()
    for statement in (_PEOPLE, _IDENTITIES, _FACTORS, _EXTERNAL_IDS):
        await connection.execute(statement, first, last)
    await connection.execute("VACUUM ANALYZE users, memberships, identities, factors, wallet_external_ids")
    print(f"{last:,} people made in {time.perf_counter() - began:.0f} s", flush=True)


async def _in_database(connection: Any, asked: Asked, people: int) -> float:
    statement, taken = await connection.prepare(_FIND), []
    for number in _numbers(people):
        began = time.perf_counter()
        rows = await statement.fetch(*asked(number))
        taken.append(time.perf_counter() - began)
        assert len(rows) == 1, (asked(number), rows)
    return statistics.median(taken) * 1000


def _over_http(client: httpx.Client, query: Callable[[int], str], people: int) -> float:
    taken = []
    for number in _numbers(people):
        began = time.perf_counter()
        answer = client.get(f"/platform/users/lookup?{quote(query(number), safe='=&:@%[]')}")
        taken.append(time.perf_counter() - began)
        assert answer.status_code == 200, answer.text
    return statistics.median(taken) * 1000


def _page(client: httpx.Client) -> float:
    taken = []
    for _ in range(9):
        began = time.perf_counter()
        assert client.get("/platform/tenants/bench/users?limit=50").status_code == 200
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1000


def _numbers(people: int) -> list[int]:
    """Spread over all of them, never one twice."""
    return [1 + place * people // TIMES for place in range(TIMES)]


if __name__ == "__main__":
    measure(int(sys.argv[1]) if len(sys.argv) > 1 else MANY)

"""`GET /audit/events`, `/export`, `/checkpoints`: every filter, every bound, and who may ask."""

import csv
import io
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import asyncpg
import msgspec
import pytest

from custody.kit import clock
from tests.audit.sealed import Log
from tests.fixtures.callers import Client, Tenant, new_tenant, platform_client, rule
from tests.fixtures.deployments import owner_of
from tests.fixtures.people import Person, member
from tests.fixtures.server import Service

FIELDS = {
    "id",
    "seq",
    "actor_type",
    "actor_id",
    "action",
    "resource_type",
    "resource_id",
    "metadata",
    "ip_address",
    "user_agent",
    "request_id",
    "created_at",
}


@pytest.fixture(scope="module")
def reader(service: Service) -> Iterator[Person]:
    """The owner of a tenant in which an agent signed once, was refused once, and got strange rows besides."""
    with new_tenant(service) as tenant, closing(member(service, tenant, "owner", mfa=True)) as person:
        agent = tenant.agent(rule("spending-limit", maxPerDay="10"), agent_id="buyer_1")
        assert (
            agent.post(
                "/vault/buyer_1/sign",
                json={"to": "0x" + "11" * 20, "value": "1", "broadcast": False},
                headers={"X-Request-Id": "the-signed-one"},
            ).status_code
            == 200
        )
        assert agent.sign(value=11).status_code == 403
        yield person


def events(reader: Client, **query: Any) -> list[dict[str, Any]]:
    """The rows that a search finds."""
    found: list[dict[str, Any]] = reader.get("/audit/events", params=query).json()["data"]["data"]
    return found


def actions(reader: Client, **query: Any) -> list[str]:
    """Their actions."""
    return [row["action"] for row in events(reader, **query)]


ALL = [
    "tx.refused",
    "tx.signed",
    "agent.token_minted",
    "policy.replaced",
    "agent.created",
    "membership.added",
    "tenant.created",
]


def test_rows_come_newest_first_with_every_field(reader: Person) -> None:
    answer = reader.get("/audit/events").json()["data"]

    assert [row["action"] for row in answer["data"]] == ALL
    assert [row["seq"] for row in answer["data"]] == sorted((row["seq"] for row in answer["data"]), reverse=True)
    assert all(set(row) == FIELDS for row in answer["data"])
    assert answer["pagination"] == {
        "page": 1,
        "limit": 50,
        "total": 7,
        "totalPages": 1,
        "totalIsEstimate": False,
        "totalPagesIsEstimate": False,
        "nextCursor": None,
    }
    signed = answer["data"][1]
    assert (signed["actor_type"], signed["actor_id"]) == ("agent", "buyer_1")
    assert (signed["resource_type"], signed["request_id"], signed["ip_address"]) == (
        "transaction",
        "the-signed-one",
        "127.0.0.1",
    )
    assert answer["data"][2]["actor_id"].startswith("tenant-key:")
    assert answer["data"][-1]["actor_id"].startswith("platform-key:")
    assert {row["actor_type"] for row in answer["data"][2:]} == {"system"}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"action": "tx.signed"}, ["tx.signed"]),
        ({"action": "tx."}, []),
        ({"actionPrefix": "tx."}, ["tx.refused", "tx.signed"]),
        ({"actionPrefix": "agent.token_"}, ["agent.token_minted"]),
        ({"actionPrefix": "agent_token"}, []),
        ({"actorType": "agent"}, ["tx.refused", "tx.signed"]),
        ({"actorId": "buyer_1", "action": "tx.signed"}, ["tx.signed"]),
        ({"actorId": "buyer"}, []),
        ({"resourceType": "agent"}, ["agent.token_minted", "policy.replaced", "agent.created"]),
        ({"resourceId": "buyer_1", "actionPrefix": "policy"}, ["policy.replaced"]),
        ({"requestId": "the-signed-one"}, ["tx.signed"]),
        ({"metadata.kind": "evm"}, ["tx.refused", "tx.signed"]),
        ({"metadata.policyVersion": "2", "action": "tx.signed"}, ["tx.signed"]),
        ({"metadata.kind": "ev"}, []),
        ({"metadata.role": "owner"}, ["membership.added"]),
        ({"metadata.kind": "evm", "metadata.absent": "evm"}, []),
        ({"metadata.kind.deeper": "evm"}, []),
        ({"dateFrom": "2020-01-01T00:00:00Z"}, ALL),
        ({"dateFrom": "2020-01-01"}, ALL),
        ({"dateTo": "2020-01-01"}, []),
        ({"dateFrom": "2020-01-01", "dateTo": "2999-12-31"}, ALL),
        ({"dateTo": "2020-01-01T00:00:00+14:00"}, []),
        ({"dateFrom": "2020-01-01T00:00:00Z", "dateTo": "2019-01-01T00:00:00Z"}, []),
        ({"limit": 2, "page": 2}, ALL[2:4]),
        ({"page": 5000}, []),
        ({"unknown": "ignored"}, ALL),
    ],
    ids=lambda part: "&".join(f"{k}={v}" for k, v in part.items()) if isinstance(part, dict) else "",
)
def test_a_filter_finds_what_it_names(reader: Person, query: dict[str, Any], wanted: list[str]) -> None:
    assert actions(reader, **query) == wanted


def test_bounds_include_the_times_that_rows_show(reader: Person) -> None:
    for row in events(reader):
        assert row in events(reader, dateFrom=row["created_at"], dateTo=row["created_at"])


BAD: dict[str, dict[str, Any]] = {
    "an action with a space": {"action": "tx signed"},
    "an action of 129": {"action": "a" * 129},
    "an empty action": {"action": ""},
    "a prefix with a percent sign": {"actionPrefix": "tx%"},
    "a newline": {"action": "tx.signed\n"},
    "another actor type": {"actorType": "robot"},
    "a NUL": {"actorId": "a\x00"},
    "page 0": {"page": 0},
    "page 5001": {"page": 5001},
    "no page": {"page": "x"},
    "limit 0": {"limit": 0},
    "limit 201": {"limit": 201},
    "__proto__": {"metadata.__proto__": "1"},
    "__proto__ inside": {"metadata.a.__proto__.b": "1"},
    "prototype": {"metadata.prototype": "1"},
    "constructor": {"metadata.a.constructor": "1"},
    "six segments": {"metadata.a.b.c.d.e.f": "1"},
    "an empty segment": {"metadata.a..b": "1"},
    "no path": {"metadata.": "1"},
    "a quote in the path": {"metadata.a'b": "1"},
    "an umlaut in the path": {"metadata.ä": "1"},
    "six filters": {f"metadata.a{number}": "1" for number in range(6)},
    "a value of 300": {"metadata.a": "x" * 300},
    "an empty value": {"metadata.a": ""},
    "a NUL in the value": {"metadata.a": "\x00"},
    "no date": {"dateFrom": "yesterday, about the time of lunch"},
    "no zone": {"dateTo": "2026-01-01T00:00:00.000"},
    "February 30": {"dateTo": "2026-02-30T00:00:00Z"},
    "the end of time": {"dateTo": "9999-12-31T23:59:59Z"},
    "before time": {"dateFrom": "0001-01-01T00:00:00+14:00"},
}


@pytest.mark.parametrize("query", BAD.values(), ids=BAD)
def test_an_invalid_search_is_refused_with_its_field(reader: Person, query: dict[str, Any]) -> None:
    for path in ("/audit/events", "/audit/export"):
        if path == "/audit/export" and query.keys() & {"page", "limit"}:
            continue
        answer = reader.get(path, params=query)

        assert answer.status_code == 400, answer.text
        assert answer.json()["data"]["fields"][0].split(".")[0] in {name.split(".")[0] for name in query}


@pytest.mark.parametrize("value", ["five", "5", "1.50", "true", 'a "quoted" one', "zwölf ✓", "back\\slash", "a/b"])
async def test_metadata_is_compared_as_text_whatever_it_is(
    tenant: Tenant, as_owner: Person, owner: asyncpg.Connection, value: str
) -> None:
    plain = value if value in {"5", "1.50", "true"} else msgspec.json.encode(value).decode()
    await _append(owner, tenant.id, f'{{"deep":{{"er":{plain}}},"other":"{"x" * 8}"}}')

    found = events(as_owner, **{"metadata.deep.er": value})

    assert [row["action"] for row in found] == ["test.made"]
    assert events(as_owner, **{"metadata.deep": value}) == []


async def test_a_row_that_jsonb_cannot_hold_is_shown_and_harms_no_search(
    tenant: Tenant, as_owner: Person, owner: asyncpg.Connection
) -> None:
    await _append(owner, tenant.id, '{"path":"/a\\u0000b","kind":"odd"}')

    assert actions(as_owner, limit=1) == ["test.made"]
    assert events(as_owner, **{"metadata.kind": "odd"}) == []


async def _append(owner: asyncpg.Connection, tenant: str, metadata: str) -> None:
    async with owner.transaction():
        await owner.execute("SELECT set_config('custody.tenant', $1, true)", tenant)
        await owner.execute("SELECT audit_append('system', 'me', 'test.made', 'thing', 'one', $1, '{}')", metadata)


@pytest.mark.parametrize("path", ["/audit/events", "/audit/export", "/audit/checkpoints"])
def test_no_key_reads_the_trail(service: Service, tenant: Tenant, path: str) -> None:
    with platform_client(service) as platform:
        answers = [tenant.get(path), platform.get(path), tenant.agent().get(path)]

    assert [(answer.status_code, answer.json()["data"]["code"]) for answer in answers] == [(403, "wrong_kind")] * 3


def test_nothing_of_another_tenant_is_found(reader: Person, as_owner: Person) -> None:
    assert actions(as_owner, requestId="the-signed-one") == []
    assert "buyer_1" not in as_owner.get("/audit/export").text


def test_a_recreated_tenant_sees_nothing_of_the_former_one(service: Service) -> None:
    with new_tenant(service) as first, closing(member(service, first, "owner", mfa=True)) as person:
        first.agent(agent_id="of-the-first")
        assert "of-the-first" in person.get("/audit/export").text
        with platform_client(service) as platform:
            platform.ok("DELETE", f"/platform/tenants/{first.id}")
            platform.ok("POST", "/platform/tenants", {"id": first.id, "name": "Anew"})
        with closing(member(service, first.id, "owner", mfa=True)) as later:
            assert actions(later) == ["membership.added", "tenant.created"]
            exported = later.get("/audit/export").text.splitlines()
            assert "of-the-first" not in later.get("/audit/export?format=csv").text

    rows, last = [msgspec.json.decode(line) for line in exported[:-1]], msgspec.json.decode(exported[-1])
    assert [row["row"]["action"] for row in rows] == ["tenant.created", "membership.added"]
    # The log itself goes on: the earlier rows are in it as hashes.
    assert rows[0]["index"] == last["begin"] > 2
    assert len(last["proof"]) > 0


# Half a span, one and a bit, and three: found by its bounds, by its own time, or both.
@pytest.mark.parametrize("rows", [200, 600, 1700])
async def test_a_time_finds_its_rows_wherever_in_the_log_they_are(log: Log, rows: int) -> None:
    async with owner_of(log.service.database) as owner, owner.transaction():
        await owner.execute("SELECT set_config('custody.tenant', $1, true)", log.tenant.id)
        # As a proxy writes late: every fifth row is of half an hour before those around it.
        await owner.execute(
            "INSERT INTO audit (tenant_id, written_by, actor_type, actor_id, action, resource_type, resource_id,"
            " metadata, created_at) SELECT $1, 'x', 'system', 'x', 'test.made', 'thing', n::text, '{}', '2020-01-01Z'"
            "::timestamptz + (n - CASE WHEN n % 5 = 0 THEN 1800 ELSE 0 END) * interval '1 second'"
            " FROM generate_series(1, $2::integer) n",
            log.tenant.id,
            rows,
        )
    log.seal()
    log.act()
    times = {n: n - (1800 if n % 5 == 0 else 0) for n in range(1, rows + 1)}

    for low, high in ((-1800, -1700), (10, 40), (rows - 30, rows), (-9999, -1799 + rows // 2), (rows + 1, rows + 9)):
        span = {"dateFrom": _second(low), "dateTo": _second(high)}
        exported = log.owner.get("/audit/export", params=span | {"format": "csv", "action": "test.made"}).text
        found = {int(row["resource_id"]) for row in csv.DictReader(io.StringIO(exported))}
        assert found == {n for n, at in times.items() if low <= at <= high}
    assert "tx.signed" in actions(log.owner, dateFrom=_second(rows + 1))
    log.seal()
    proven = log.export(dateFrom=_second(-1800), dateTo=_second(-1700))
    assert (len(proven.splitlines()) - 1, log.problem(proven)) == (len([n for n in times if times[n] <= -1700]), None)


def _second(number: int) -> str:
    return clock.iso(clock.of_unix(1_577_836_800 + number))


# ---- export


def test_csv_has_every_column_and_no_formula(reader: Person) -> None:
    answer = reader.get("/audit/export", params={"format": "csv", "actionPrefix": "tx."})

    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["action"] for row in rows] == ["tx.refused", "tx.signed"]
    assert set(rows[0]) == FIELDS - {"id"} | {"tenant_id", "written_by", "unreadable"}


@pytest.mark.parametrize(
    ("accept", "query", "media", "ending"),
    [
        ("text/csv", "", "text/csv", "csv"),
        ("text/csv", "?format=ndjson", "application/x-ndjson", "ndjson"),
        ("application/x-ndjson;q=0.1, text/csv;q=0.2", "", "text/csv", "csv"),
        ("*/*", "", "application/x-ndjson", "ndjson"),
        ("application/json", "?format=csv", "text/csv", "csv"),
    ],
)
def test_a_file_has_the_form_that_is_asked_for_and_a_name(
    reader: Person, accept: str, query: str, media: str, ending: str
) -> None:
    answer = reader.get(f"/audit/export{query}", headers={"Accept": accept})

    assert (answer.status_code, answer.headers["content-type"]) == (200, f"{media}; charset=utf-8")
    name = rf'attachment; filename="audit-\d{{4}}-\d\d-\d\d\.{ending}"'
    assert re.fullmatch(name, answer.headers["content-disposition"])


async def test_a_cell_that_a_spreadsheet_would_run_is_text(service: Service, tenant: Tenant, as_owner: Person) -> None:
    as_owner.post("/agents", json={"id": "one", "name": "One"}, headers={"User-Agent": "=cmd|' /C calc'!A0"})

    rows = list(csv.DictReader(io.StringIO(as_owner.get("/audit/export?format=csv").text)))

    assert rows[0]["user_agent"] == "'=cmd|' /C calc'!A0"


def test_an_export_waits_for_what_was_just_written(tenant: Tenant, as_owner: Person) -> None:
    tenant.agent(agent_id="just-now")

    assert "just-now" in as_owner.get("/audit/export").text


@pytest.mark.parametrize(
    "query", ["format=xml", "cursor=-1", "cursor=x", "cursor=1%0A", "since=0", "since=x", "since=4611686018427387904"]
)
def test_a_bad_export_is_refused(reader: Person, query: str) -> None:
    assert reader.get(f"/audit/export?{query}").status_code == 400


def test_a_cursor_behind_the_end_of_the_log_is_refused(log: Log) -> None:
    size = len(log.export().splitlines()) - 1

    assert log.owner.get(f"/audit/export?cursor={size}").status_code == 200
    answer = log.owner.get(f"/audit/export?cursor={size + 1}")
    assert (answer.status_code, answer.json()["data"]["fields"]) == (400, ["cursor"])


async def test_a_log_of_which_nothing_is_sealed_exports_nothing(apart: Service) -> None:
    with new_tenant(apart) as tenant, closing(member(apart, tenant, "owner", mfa=True)) as person:
        answer = person.get("/audit/export")

    assert (answer.status_code, answer.json()["data"]["code"]) == (409, "not_sealed_yet")


async def test_more_rows_than_fit_go_on_at_the_cursor(
    service: Service, tenant: Tenant, as_owner: Person, owner: asyncpg.Connection
) -> None:
    async with owner.transaction():
        await owner.execute("SELECT set_config('custody.tenant', $1, true)", tenant.id)
        await owner.execute(
            "SELECT audit_append('system', 'me', 'test.made', 'thing', n::text, '{}', '{}') "
            "FROM generate_series(1, 10010) AS n"
        )
    asked = {"format": "csv", "action": "test.made"}
    begun = as_owner.get("/audit/export", params=asked)
    rest = as_owner.get("/audit/export", params=asked | {"cursor": begun.headers["x-next-cursor"]})

    ids = [row["resource_id"] for text in (begun.text, rest.text) for row in csv.DictReader(io.StringIO(text))]
    assert ids == [str(number) for number in range(10010, 0, -1)]
    assert "x-next-cursor" not in rest.headers
    page = as_owner.get("/audit/events", params={"action": "test.made", "limit": 200}).json()["data"]["pagination"]
    # Such files of a tenant take turns, or are refused while one is read; a page near the front comes all the same.
    with ThreadPoolExecutor(4) as four:
        came = [one.status_code for one in four.map(lambda _: as_owner.get("/audit/export", params=asked), range(4))]
    assert 200 in came
    assert set(came) <= {200, 429}
    assert actions(as_owner, action="test.made", limit=1) == ["test.made"]
    # Rows are counted up to a thousand behind the page, and the answer says that there are more.
    assert page.pop("nextCursor")
    assert page == {
        "page": 1,
        "limit": 200,
        "total": 1200,
        "totalPages": 6,
        "totalIsEstimate": True,
        "totalPagesIsEstimate": True,
    }
    # All rows of a tenant are known without counting them.
    page = as_owner.get("/audit/events", params={"limit": 1}).json()["data"]["pagination"]
    all_of_it = await owner.fetchval("SELECT count(*) FROM audit WHERE tenant_id = $1", tenant.id)
    assert (page["total"], page["totalIsEstimate"]) == (all_of_it, False)
    # Ten thousand pages of one row are more than `page` reaches.
    assert (page["totalPages"], page["totalPagesIsEstimate"]) == (5000, True)


# ---- checkpoints


def test_checkpoints_are_listed_newest_first(reader: Person) -> None:
    reader.get("/audit/export")
    answer = reader.get("/audit/checkpoints")

    newest = answer.json()["data"][0]
    assert set(newest) == {"size", "root", "checkpoint", "createdAt"}
    assert newest["checkpoint"].split("\n")[1:3] == [str(newest["size"]), newest["root"]]
    assert int(answer.headers["x-total-count"]) == len(answer.json()["data"])

"""Hostile bodies and paths, tried on every route that takes them. Decisions 1 (strictness)."""

import json
from typing import Any

import pytest

from api.http.endpoint import Endpoint
from api.routes import endpoints
from tests.table.world import World

TABLE = endpoints()
WITH_BODY = [endpoint for endpoint in TABLE if endpoint.body is not None]
LISTS = [endpoint for endpoint in TABLE if endpoint.query and "limit" in endpoint.query.__struct_fields__]
WITH_PATH = [endpoint for endpoint in TABLE if endpoint.path_names]
JSON = {"Content-Type": "application/json"}
MEBIBYTE = 1024 * 1024
NOBODY = "00000000-0000-0000-0000-000000000000"


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


def refused(world: World, endpoint: Endpoint, content: bytes, content_type: str = "application/json") -> Any:
    """Send raw bytes as one who may call; give status and data."""
    answer = world.call(endpoint).sent(world.caller(endpoint), content=content, headers={"Content-Type": content_type})
    assert answer.json()["ok"] is False, answer.text
    return answer.status_code, answer.json()["data"]


@pytest.mark.parametrize("endpoint", WITH_BODY, ids=name)
def test_an_unknown_field_is_400_and_named(world: World, endpoint: Endpoint) -> None:
    body = world.call(endpoint).json
    if isinstance(body, list):
        body = [{"type": "rate-limit", "enabled": True, "config": {"maxTxPerHour": 1}, "surplus": 1}]
    else:
        body = {**body, "surplus": 1}

    status, data = refused(world, endpoint, json.dumps(body).encode())

    assert (status, data["code"], data["fields"]) == (400, "bad_body", ["surplus"])


@pytest.mark.parametrize("endpoint", WITH_BODY, ids=name)
def test_a_key_given_twice_is_400_and_named(world: World, endpoint: Endpoint) -> None:
    status, data = refused(world, endpoint, b'{"id":"a","deep":[{"twin":1,"twin":1}]}')

    assert (status, data["code"], data["fields"]) == (400, "duplicate_key", ["twin"])


@pytest.mark.parametrize("endpoint", WITH_BODY, ids=name)
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"{", id="open"),
        pytest.param(b"{} {}", id="two"),
        pytest.param(b'{"a":"\xff"}', id="not utf-8"),
        pytest.param(b'{"a":NaN}', id="NaN"),
        pytest.param(b"[" * 100_000, id="deep list"),
        pytest.param(b'"\\ud800"', id="surrogate"),
        *(pytest.param(content, id=says, marks=pytest.mark.long) for says, content in (
            ("word", b"nothing"), ("nul", b"\x00"), ("deep object", b'{"a":' * 5_000), ("BOM", b"\xef\xbb\xbf{}"),
            ("surrogate key", b'{"\\ud800": 1}'), ("long number", b"1" * 5_000),
        )),
    ],
)  # fmt: skip
def test_what_is_no_json_is_400(world: World, endpoint: Endpoint, content: bytes) -> None:
    status, data = refused(world, endpoint, content)

    assert status == 400
    assert data["code"] in ("malformed_json", "bad_body")


@pytest.mark.parametrize("endpoint", WITH_BODY, ids=name)
@pytest.mark.parametrize("content", [b"null", b"1", b'"text"', b"true"])
def test_a_body_of_another_shape_is_400(world: World, endpoint: Endpoint, content: bytes) -> None:
    assert refused(world, endpoint, content)[0] == 400


@pytest.mark.parametrize("endpoint", WITH_BODY, ids=name)
@pytest.mark.parametrize("content_type", ["text/plain", "", "application/x-www-form-urlencoded", "application/jsonx"])
def test_another_content_type_is_415(world: World, endpoint: Endpoint, content_type: str) -> None:
    assert refused(world, endpoint, b"{}", content_type) == (415, {"code": "wrong_content_type"})


@pytest.mark.parametrize("endpoint", WITH_BODY, ids=name)
@pytest.mark.parametrize("size", [MEBIBYTE + 1, 2 * MEBIBYTE])
def test_a_body_over_one_mebibyte_is_413(world: World, endpoint: Endpoint, size: int) -> None:
    assert refused(world, endpoint, b" " * size) == (413, {"code": "body_too_large"})


def test_a_body_of_just_one_mebibyte_is_read(world: World) -> None:
    body = b'{"id":"of-a-size","name":"x"' + b" " * (MEBIBYTE - 29) + b"}"
    assert len(body) == MEBIBYTE

    assert world.tenant.post("/agents", content=body, headers=JSON).status_code == 201


@pytest.mark.parametrize("endpoint", WITH_BODY, ids=name)
def test_a_charset_beside_the_content_type_is_taken(world: World, endpoint: Endpoint) -> None:
    call = world.call(endpoint)
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}

    answer = call.sent(world.caller(endpoint), content=json.dumps(call.json).encode(), headers=headers)

    assert answer.status_code in endpoint.returns, answer.text


@pytest.mark.parametrize("endpoint", WITH_PATH, ids=name)
@pytest.mark.parametrize("suffix", ["%0A", "%20", "%00", "%ff", "'", "%2f", "x" * 200])
def test_a_malformed_id_in_the_path_is_400(world: World, endpoint: Endpoint, suffix: str) -> None:
    for place in endpoint.path_names:
        path = endpoint.path.replace(f"<{place}>", "bad" + suffix)
        for other in endpoint.path_names:
            path = path.replace(
                f"<{other}>", {"agent": world.agent.id, "tenant_id": world.tenant.id}.get(other, NOBODY)
            )

        answer = world.call(endpoint).sent(world.caller(endpoint), path=path)

        # A slash makes another path, which may be none at all.
        assert answer.status_code in ((400, 404) if suffix == "%2f" else (400,)), (path, answer.text)
        assert answer.json()["ok"] is False


OUT_OF_RANGE = (
    "limit=0", "limit=-1", "limit=1.5", "limit=x", "offset=-1", "page=0", "limit=100000", "limit=", "limit=1&limit=2",
)  # fmt: skip


@pytest.mark.parametrize(
    ("endpoint", "query"),
    [
        pytest.param(endpoint, query, id=f"{query}-{name(endpoint)}")
        for endpoint in LISTS for query in OUT_OF_RANGE
        if query.partition("=")[0] in endpoint.query.__struct_fields__
    ],
)  # fmt: skip
def test_a_page_out_of_range_is_400(world: World, endpoint: Endpoint, query: str) -> None:
    call = world.call(endpoint)

    answer = call.sent(world.caller(endpoint), path=f"{call.path}?{query}")

    assert answer.status_code == 400, answer.text
    assert answer.json()["data"]["fields"] == [query.partition("=")[0]]


@pytest.mark.parametrize("endpoint", TABLE, ids=name)
def test_an_unknown_query_parameter_is_ignored(world: World, endpoint: Endpoint) -> None:
    call = world.call(endpoint)

    answer = call.sent(world.caller(endpoint), path=f"{call.path}{'&' if '?' in call.path else '?'}surplus=1&surplus=2")

    assert answer.status_code in endpoint.returns, answer.text

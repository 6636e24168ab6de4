"""Hostile bodies and paths, tried on every route that takes them."""

import json
import math
from typing import Any

import pytest
from msgspec.inspect import (
    BoolType,
    DictType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    Metadata,
    NoneType,
    StrType,
    StructType,
    Type,
    UnionType,
    VarTupleType,
    type_info,
)

from api.http.bodies import MAX_BODY, MAX_THROWN_AWAY
from api.http.endpoint import SPELLED, Endpoint
from api.routes import endpoints
from tests.fixtures.each import each
from tests.table.sentences import in_plain_words
from tests.table.world import World

TABLE = endpoints()
WITH_BODY = [endpoint for endpoint in TABLE if endpoint.body is not None and not endpoint.form_only]
WITHOUT_FIELDS = [endpoint for endpoint in TABLE if endpoint.body is None and endpoint.reads_body]
LISTS = [endpoint for endpoint in TABLE if endpoint.query and "limit" in endpoint.query.__struct_fields__]
WITH_PATH = [endpoint for endpoint in TABLE if endpoint.path_names]
JSON = {"Content-Type": "application/json"}
NOBODY = "00000000-0000-0000-0000-000000000000"


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


def refusal_of(world: World, endpoint: Endpoint, content: bytes, content_type: str = "application/json") -> Any:
    """Send raw bytes as one who may call; give status and data."""
    call = world.refusable(endpoint)
    answer = call.send(world.caller(endpoint), content=content, headers={"Content-Type": content_type})
    assert answer.json()["ok"] is False, answer.text
    assert in_plain_words(answer.json()["error"])
    return answer.status_code, answer.json()["data"]


@each("endpoint", WITH_BODY, ids=name)
def test_an_unknown_field_is_400_and_named(world: World, endpoint: Endpoint) -> None:
    body = world.refusable(endpoint).json
    if isinstance(body, list):
        body = [{"type": "rate-limit", "enabled": True, "config": {"maxTxPerHour": 1}, "surplus": 1}]
    else:
        body = {**body, "surplus": 1}

    status, data = refusal_of(world, endpoint, json.dumps(body).encode())

    assert (status, data["code"], data["fields"]) == (400, "bad_body", ["surplus"])


@each("endpoint", WITHOUT_FIELDS, ids=name)
def test_nothing_is_said_in_vain_to_a_change_that_takes_no_fields(world: World, endpoint: Endpoint) -> None:
    said = [refusal_of(world, endpoint, content) for content in (b'{"surplus":1}', b"{", b"null")]
    form = refusal_of(world, endpoint, b"surplus=1", "application/x-www-form-urlencoded")

    assert [(status, data["code"]) for status, data in said] == [
        (400, "bad_body"),
        (400, "malformed_json"),
        (400, "bad_body"),
    ]
    assert said[0][1]["fields"] == ["surplus"]
    assert form[0] == 415


@each("endpoint", WITH_BODY, ids=name)
def test_a_field_of_another_kind_is_400_in_plain_words(world: World, endpoint: Endpoint) -> None:
    for field in getattr(endpoint.body, "__struct_encode_fields__", ()):
        content = json.dumps({**world.refusable(endpoint).json, field: [[5]]}).encode()
        if (name(endpoint), field) == ("POST /agents/batch", "agents"):
            # Each is answered for itself.
            answer = world.call(endpoint).send(world.caller(endpoint), content=content, headers=JSON).json()
            assert in_plain_words(answer["data"]["errors"][0]["error"])
        else:
            assert refusal_of(world, endpoint, content)[0] in (400, 410)


def twice(endpoint: Endpoint, body: Any) -> tuple[bytes, str]:
    """A body that decodes, with one of its keys given twice."""
    if isinstance(body, list):
        return b'[{"type":"rate-limit","enabled":true,"config":{"maxTxPerHour":1,"maxTxPerHour":1}}]', "maxTxPerHour"
    if not body:
        known = "reason" if "reason" in endpoint.body.__struct_fields__ else endpoint.body.__struct_encode_fields__[0]
        body = {known: None if known != "expiresIn" else "24h"}
    key, value = next(iter(body.items()))
    return json.dumps(body).encode()[:-1] + b"," + json.dumps({key: value}).encode()[1:], key


@each("endpoint", WITH_BODY, ids=name)
def test_a_key_given_twice_is_400_and_named(world: World, endpoint: Endpoint) -> None:
    content, key = twice(endpoint, world.refusable(endpoint).json)

    status, data = refusal_of(world, endpoint, content)

    assert (status, data["code"], data["fields"]) == (400, "duplicate_key", [key])


@each("endpoint", WITH_BODY, ids=name)
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"{", id="open"),
        pytest.param(b"{} {}", id="two"),
        pytest.param(b'{"a":"\xff"}', id="not utf-8"),
        pytest.param(b'{"a":NaN}', id="NaN"),
        pytest.param(b"[" * 10_000, id="deep list"),
        pytest.param(b'"\\ud800"', id="surrogate"),
        *(
            pytest.param(content, id=says, marks=pytest.mark.long)
            for says, content in (
                ("word", b"nothing"),
                ("nul", b"\x00"),
                ("deep object", b'{"a":' * 3_000),
                ("BOM", b"\xef\xbb\xbf{}"),
                ("surrogate key", b'{"\\ud800": 1}'),
                ("long number", b"1" * 5_000),
            )
        ),
    ],
)
def test_malformed_json_is_400(world: World, endpoint: Endpoint, content: bytes) -> None:
    status, data = refusal_of(world, endpoint, content)

    assert status == 400
    assert data["code"] in ("malformed_json", "bad_body")


@each("endpoint", WITH_BODY, ids=name)
@each("content", [b"null", b"1", b'"text"', b"true"])
def test_a_body_of_another_shape_is_400(world: World, endpoint: Endpoint, content: bytes) -> None:
    assert refusal_of(world, endpoint, content)[0] == 400


@each(
    ("endpoint", "content_type"),
    [
        pytest.param(endpoint, kind, id=f"{kind}-{name(endpoint)}")
        for endpoint in WITH_BODY
        for kind in ("text/plain", "", "application/x-www-form-urlencoded", "application/jsonx")
        if not (endpoint.form_too and "form" in kind)
    ],
)
def test_another_content_type_is_415(world: World, endpoint: Endpoint, content_type: str) -> None:
    assert refusal_of(world, endpoint, b"{}", content_type) == (415, {"code": "wrong_content_type"})


@each("endpoint", WITH_BODY, ids=name)
def test_a_body_longer_than_its_route_takes_is_413(world: World, endpoint: Endpoint) -> None:
    assert refusal_of(world, endpoint, b" " * (endpoint.max_body + 1)) == (413, {"code": "body_too_large"})


def test_a_body_of_just_the_length_that_its_route_takes_is_read(world: World) -> None:
    body = b'{"id":"of-a-size","name":"x"' + b" " * (MAX_BODY - 29) + b"}"
    assert len(body) == MAX_BODY

    assert world.tenant.post("/agents", content=body, headers=JSON).status_code == 201


@each("endpoint", WITH_BODY, ids=name)
def test_every_legal_body_fits(endpoint: Endpoint) -> None:
    """Every character of a text may be escaped. What has no bound of its own says beside the route what it takes."""
    largest = largest_of(type_info(endpoint.body))

    assert largest <= endpoint.max_body or name(endpoint) in BY_HAND
    # More would not fit into a frame to the signer, and what is refused is thrown away up to here.
    assert endpoint.max_body < MAX_THROWN_AWAY
    # A caller without a credential sends little.
    assert "public" not in endpoint.who.kinds or endpoint.max_body <= 36 * 1024


# Texts that are longer only if they are escaped where they need not be, and documents without a bound of their own.
BY_HAND = {
    "POST /notification-channels",
    "PATCH /notification-channels/{id}",
    "POST /user/me/push-subscriptions",
    "POST /auth/verify",
    "POST /auth/identities",
    "POST /auth/mfa/passkey/step-up",
    "POST /auth/mfa/passkey/item",
    "POST /auth/passkeys/register/verify",
    "POST /auth/passkeys/login/verify",
    "POST /agents/batch",
    "PUT /agents/{agentId}/policies",
    "POST /policy-sets",
    "PUT /policy-sets/{id}",
    "PUT /agents/{agentId}/policies/template",
    "PUT /policy-sets/{id}/template",
    "POST /policy-templates/preview",
    "POST /secrets/routes/preset",
    "POST /auth/sign-in/code",
    "PUT /tenants/{id}/tokens",
    "PUT /tenants/{id}/oidc-providers",
    "PUT /tenants/{id}/saml-sso",
    "POST /agents/{agentId}/policies/backtest",
    "POST /agents/{agentId}/policies/votes",
    "POST /vault/{agentId}/sign",
    "POST /vault/{agentId}/sign-typed-data",
    "POST /vault/{agentId}/sign-message",
    "POST /vault/{agentId}/x402",
    "POST /vault/{agentId}/sign-bitcoin-psbt",
    "POST /vault/{agentId}/simulate",
    "POST /agents/{agentId}/signers",
    "POST /user/me/wallet/sign",
    "POST /user/me/wallet/sign-typed-data",
    "POST /user/me/wallet/sign-message",
    "POST /user/me/wallet/signers",
    "PATCH /agents/{agentId}/signers/{signerId}",
    "POST /agents/{agentId}/key-quorums",
    "PATCH /agents/{agentId}/key-quorums/{quorumId}",
    "PATCH /platform/users/{userId}",
    "PUT /secrets/routes/{id}",
    "POST /secrets/routes/explain",
    "POST /intents",
    "POST /intents/{intentId}/fail",
    "POST /vault/{agentId}/actions/send-calls",
    "POST /platform/users",
    "POST /platform/users/wallet/external-id/connect-or-create",
    *(
        f"{method} {at}"
        for at in ("/accounts", "/v1/accounts")
        for method, at in (
            ("POST", at),
            ("PATCH", f"{at}/{{accountId}}"),
            ("POST", f"{at}/{{accountId}}/aggregations"),
            ("PATCH", f"{at}/{{accountId}}/aggregations/{{aggregationId}}"),
        )
    ),
    "PUT /tenants/{id}/config",
    "POST /tenants/{id}/app-clients",
    "PUT /tenants/{id}/app-clients",
}


def largest_of(shape: Type) -> float:
    """The length of the longest JSON of a type."""
    match shape:
        case StrType():
            return math.inf if shape.max_length is None else 2 + 6 * shape.max_length
        case IntType() | FloatType() | BoolType() | NoneType():
            return 25
        case LiteralType():
            return 2 + max(len(str(value)) for value in shape.values)
        case UnionType():
            return max(largest_of(part) for part in shape.types)
        case StructType():
            return 40 + sum(len(field.encode_name) + 4 + largest_of(field.type) for field in shape.fields)
        case ListType() | VarTupleType() if shape.max_length is not None:
            return 2 + shape.max_length * (1 + largest_of(shape.item_type))
        case DictType() if shape.max_length is not None:
            return 2 + shape.max_length * (2 + largest_of(shape.key_type) + largest_of(shape.value_type))
        case Metadata():
            return largest_of(shape.type)
        case _:
            return math.inf


@each("endpoint", WITH_BODY, ids=name)
def test_a_charset_beside_the_content_type_is_taken(world: World, endpoint: Endpoint) -> None:
    call = world.call(endpoint)
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}

    answer = call.send(world.caller(endpoint), content=json.dumps(call.json).encode(), headers=headers)

    assert answer.status_code in endpoint.returns, answer.text


@each("endpoint", WITH_PATH, ids=name)
@each("suffix", ["%0A", "%20", "%00", "%ff", "'", "%2f", "x" * 200])
def test_a_malformed_id_in_the_path_is_400(world: World, endpoint: Endpoint, suffix: str) -> None:
    for place in endpoint.path_names:
        path = endpoint.path.replace(f"<{place}>", "bad" + suffix)
        for other in endpoint.path_names:
            path = path.replace(
                f"<{other}>",
                {"agent": world.agent.id, "tenant_id": world.tenant.id, "own_tenant_id": world.tenant.id}.get(
                    other, NOBODY
                ),
            )

        answer = world.refusable(endpoint).send(world.caller(endpoint), path=path)

        # A slash makes another path, which may be none at all.
        assert answer.status_code in ((400, 404) if suffix == "%2f" else (400,)), (path, answer.text)
        assert answer.json()["ok"] is False
        assert in_plain_words(answer.json()["error"])
        assert f"{place} in the path" not in answer.json()["error"] or SPELLED[place] == place


OUT_OF_RANGE = (
    "limit=0",
    "limit=-1",
    "limit=1.5",
    "limit=x",
    "offset=-1",
    "page=0",
    "limit=100000",
    "limit=",
    "limit=1&limit=2",
)


@each(
    ("endpoint", "query"),
    [
        pytest.param(endpoint, query, id=f"{query}-{name(endpoint)}")
        for endpoint in LISTS
        for query in OUT_OF_RANGE
        if query.partition("=")[0] in endpoint.query.__struct_fields__
    ],
)
def test_a_page_out_of_range_is_400(world: World, endpoint: Endpoint, query: str) -> None:
    call = world.refusable(endpoint)

    answer = call.send(world.caller(endpoint), path=f"{call.path}{'&' if '?' in call.path else '?'}{query}")

    assert answer.status_code == 400, answer.text
    assert answer.json()["data"]["fields"] == [query.partition("=")[0]]
    assert in_plain_words(answer.json()["error"])


@each("endpoint", TABLE, ids=name)
def test_an_unknown_query_parameter_is_ignored(world: World, endpoint: Endpoint) -> None:
    call = world.call(endpoint)

    answer = call.send(world.caller(endpoint), path=f"{call.path}{'&' if '?' in call.path else '?'}surplus=1&surplus=2")

    assert answer.status_code in endpoint.returns, answer.text

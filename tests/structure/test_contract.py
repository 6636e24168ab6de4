"""Words every route and type must have in the contract, so that foreign generators make clients that people read."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from api.http import openapi
from api.http.contract import texts
from api.http.contract.codes import problems_of
from api.http.contract.events import PAYLOADS
from api.http.contract.headers import HEADERS
from api.http.contract.schemas import UUID, named_in
from api.http.endpoint import Endpoint, Routes
from api.http.errors import STATUS
from api.http.who import asking, public
from api.routes import endpoints
from custody.kit import errors
from custody.kit.errors import Unavailable
from custody.protocol.command import declaration_of, refuses
from custody.protocol.signer.agents import DeleteAgent
from custody.protocol.signer.order_refusals import AgentAbsent
from custody.webhooks.names import TEST
from tests.fixtures.held_contract import breach, of_body, place_of
from tests.fixtures.listed_codes import find_unlisted
from tests.outside.processes import PROJECT
from tests.table.largest_rows import LONGEST
from tests.table.mounts import each_once, is_list

TABLE = endpoints()
SERVED = openapi.documents(TABLE, "http://localhost:3200")
CONTRACT, PLAIN, EVENTS = (SERVED[path] for path in (openapi.CONTRACT, openapi.PLAIN, openapi.EVENTS))
SCHEMAS = CONTRACT["components"]["schemas"]
OPERATIONS = {
    f"{method.upper()} {path}": operation
    for path, operations in CONTRACT["paths"].items()
    for method, operation in operations.items()
}
NAME = re.compile(r"[a-z]+([A-Z][a-z0-9]*)+")
SENTENCE = re.compile(r"[A-Z0-9`].*[.!?`]", re.DOTALL)


def nodes(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of a part of the contract, with the way to it."""
    if isinstance(node, dict):
        yield path, node
        for name, part in node.items():
            yield from nodes(part, f"{path}/{name}")
    elif isinstance(node, list):
        for index, part in enumerate(node):
            yield from nodes(part, f"{path}/{index}")


def properties(document: dict[str, Any] = CONTRACT) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, node in nodes(document):
        if isinstance(fields := node.get("properties"), dict) and not path.endswith("/properties"):
            for name, field in fields.items():
                yield f"{path}/{name}", field


def test_an_operation_is_called_as_its_handler_a_verb_and_what_it_is_done_to() -> None:
    ids = [operation["operationId"] for operation in OPERATIONS.values()]

    assert [name for name, count in Counter(ids).items() if count > 1] == []
    assert [name for name in ids if not NAME.fullmatch(name)] == []
    assert {openapi.operation_id(endpoint) for endpoint in TABLE} | {name for name, *_ in texts.SELF.values()} == set(
        ids
    )


def test_every_operation_parameter_property_and_schema_is_described_in_a_sentence() -> None:
    said = {
        **{name: operation["description"] for name, operation in OPERATIONS.items()},
        **{
            f"{name} {parameter['name']}": parameter["description"]
            for name, operation in OPERATIONS.items()
            for parameter in operation.get("parameters", ())
            if "$ref" not in parameter
        },
        **{path: field.get("description", "") for path, field in (*properties(), *properties(EVENTS))},
        **{name: schema.get("description", "") for name, schema in SCHEMAS.items()},
        **{tag["name"]: tag["description"] for tag in CONTRACT["tags"]},
    }

    assert [f"{where}: {text!r}" for where, text in said.items() if not SENTENCE.fullmatch(text)] == []


def test_the_device_flow_keeps_the_names_of_its_standards() -> None:
    # RFC 8628 and RFC 6749 have underscores.
    plain = PLAIN["components"]["schemas"]
    assert set(plain["DeviceDecisionBody"]["properties"]) == {"action", "user_code"}
    assert plain["DeviceDecisionBody"]["required"] == ["action", "user_code"]
    for name in ("DeviceSession", "DeviceSessionAnswer"):
        assert {"access_token", "token_type", "refresh_token", "expires_in"} <= set(SCHEMAS[name]["required"]), name


def groups(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
    """Find what becomes the fields of one type, or the arguments of one function, of a client: by their names."""
    for path, node in nodes(document):
        if isinstance(fields := node.get("properties"), dict) and not path.endswith("/properties"):
            yield path, fields
        if isinstance(given := node.get("parameters"), list):
            yield path, {one["name"]: one for one in given if "name" in one}


def one_name(document: dict[str, Any]) -> list[str]:
    """Find where a client that spells names in its own way would have one of them twice."""
    alike = {path: Counter(name.lower().replace("_", "") for name in group) for path, group in groups(document)}
    return [path for path, names in alike.items() if any(count > 1 for count in names.values())]


def test_a_field_of_two_names_has_both_and_says_which_is_the_second() -> None:
    second = {
        name: field["x-service-same-as"]
        for _, group in groups(CONTRACT)
        for name, field in group.items()
        if "x-service-same-as" in field
    }

    assert len(second) > 30
    assert {name: second.get(name) for name in ("wallet_ids", "external_id", "userCode", "codeVerifier")} == {
        "wallet_ids": "walletIds",
        "external_id": "walletExternalId",
        "userCode": "user_code",
        "codeVerifier": "code_verifier",
    }
    # Of a body any of the names will do; an answer has them all.
    assert SCHEMAS["ExchangeBody"]["required"] == ["code"]
    assert SCHEMAS["ExchangeBody"]["x-service-needs"] == ["redirect_uri", "code_verifier"]
    assert {"expiresAt", "expires_at"} <= set(SCHEMAS["Intent"]["required"])
    doubled = set(one_name(CONTRACT))
    whole = {path: group for path, group in groups(CONTRACT) if path in doubled}
    told = {path for path, group in whole.items() if any("x-service-same-as" in field for field in group.values())}
    assert set(whole) - told == set()


def test_the_plain_form_has_each_field_by_one_name_and_loses_no_other() -> None:
    assert one_name(CONTRACT) != []
    assert one_name(PLAIN) == []
    plain = dict(groups(PLAIN))
    lost = {
        f"{path}/{name}": field
        for path, group in groups(CONTRACT)
        if "/parameters/" not in path
        for name, field in group.items()
        if name not in plain[path]
    }
    assert [path for path, field in lost.items() if "x-service-same-as" not in field] == []
    assert PLAIN["components"]["schemas"]["ExchangeBody"]["required"] == ["code", "redirect_uri", "code_verifier"]


def test_events_have_a_document_of_their_own_that_is_complete() -> None:
    assert not {"webhooks", "paths"} <= set(CONTRACT)
    assert set(EVENTS["webhooks"]) == {*(payload.event for payload in PAYLOADS), TEST}
    used = set(named_in(EVENTS))
    assert used == set(EVENTS["components"]["schemas"])


def test_an_id_has_its_format_where_it_is_sent_and_where_it_is_answered() -> None:
    sent = [one for _, node in nodes(CONTRACT) for one in node.get("parameters", ()) if isinstance(one, dict)]
    ids = [one for one in [*sent, *CONTRACT["components"]["parameters"].values()] if UUID in str(one.get("schema"))]

    assert len(ids) > 40
    assert [one["name"] for one in ids if one["schema"].get("format") != "uuid"] == []
    assert {"X-Service-Signer-Id", "X-Service-Key-Quorum-Id"} <= {one["name"] for one in ids}
    # Some make a type of its own of the format, which takes no pattern.
    assert [path for path, node in nodes(PLAIN) if node.get("format") == "uuid" and "pattern" in node] == []


def test_schemas_have_plain_names_and_are_all_used() -> None:
    used = {
        value.rpartition("/")[2]
        for _, node in nodes(CONTRACT)
        for value in [node.get("$ref")]
        if isinstance(value, str) and value.startswith("#/components/schemas/")
    }

    assert [name for name in SCHEMAS if not re.fullmatch(r"([A-Z][a-z0-9]*)+", name)] == []
    assert set(SCHEMAS) - used == set()


@pytest.mark.parametrize(
    "is_odd",
    [
        lambda node: node.get("type") == "array" and "items" not in node,
        lambda node: "default" in node and node["default"] is None,
        lambda node: isinstance(node.get("enum"), list) and (len(node["enum"]) == 1 or "type" not in node),
        lambda node: "title" in node and "properties" in node,
        lambda node: isinstance(node.get("const"), bool) or (node.get("type") == "boolean" and "enum" in node),
        lambda node: "*/" in f"{node.get('summary')}{node.get('description')}",
    ],
    ids=[
        "an array without items",
        "a default of null",
        "an enum of one, or without type",
        "a title of msgspec's",
        "a constant that is no text",
        "a text that ends the comment into which it is written",
    ],
)
def test_no_schema_is_of_a_form_that_generators_stumble_over(is_odd: Any) -> None:
    assert [path for document in SERVED.values() for path, node in nodes(document) if is_odd(node)] == []


def test_a_status_kind_or_decision_is_one_of_a_list() -> None:
    listed = {
        path: field
        for path, field in properties()
        if re.search(r"/(status|txStatus|kind|decision|was|now|window|resolvedBy)$", path)
    }

    assert len(listed) > 30
    assert [path for path, field in listed.items() if not _is_listed(field)] == []


def _is_listed(field: dict[str, Any]) -> bool:
    present = [option for option in field.get("anyOf", [field]) if option != {"type": "null"}]
    return all("enum" in option or "const" in option for option in present)


def test_a_status_is_listed_as_the_database_takes_it() -> None:
    tables = (PROJECT / "custody/migrations/0104_transactions.sql").read_text()
    taken = [set(re.findall(r"'(\w+)'", found)) for found in re.findall(r"CHECK \(status IN \(([^)]+)\)\)", tables)]

    assert taken[:2] == [set(SCHEMAS[name]["properties"]["status"]["enum"]) for name in ("Transaction", "Approval")]


def test_an_answer_is_a_named_envelope() -> None:
    inline = [
        f"{name} {status}"
        for name, operation in OPERATIONS.items()
        for status, answer in operation["responses"].items()
        if (schema := answer.get("content", {}).get("application/json", {}).get("schema"))
        and not ("$ref" in schema or all("$ref" in part for part in schema.get("anyOf", [{}])))
    ]

    # The contract is its own schema, in each of its forms.
    assert inline == [f"GET {path} 200" for path in SERVED]


def test_groups_are_told_and_used_and_headers_are_known() -> None:
    assert {tag["name"] for tag in CONTRACT["tags"]} == {endpoint.tag for endpoint in TABLE}
    assert {name for endpoint in TABLE for name in endpoint.headers_too} <= set(HEADERS)


def test_each_refusal_lists_its_codes_and_each_code_has_a_meaning() -> None:
    known = set(SCHEMAS["ErrorCode"]["enum"])
    listed = [codes for _, node in nodes(CONTRACT) for codes in [node.get("x-service-error-codes")] if codes]

    assert known == {code for codes in listed for code in codes}


def test_each_status_that_refuses_lists_its_codes() -> None:
    shared = CONTRACT["components"]["responses"]
    silent = [
        f"{name} {status}"
        for name, operation in OPERATIONS.items()
        for status, answer in operation["responses"].items()
        if int(status) >= 400
        and not shared.get(answer.get("$ref", "").rpartition("/")[2], answer).get("x-service-error-codes")
    ]

    assert silent == []


def test_a_route_names_no_error_by_its_kind() -> None:
    # These two say all that is known of their cause.
    own = {errors.Frozen, errors.UpstreamFailed}
    kinds = {kind for kind, _ in STATUS} - own

    assert [endpoint.contract_path for endpoint in TABLE if kinds & set(endpoint.fails)] == []


def listed_twice(route: Endpoint) -> list[str]:
    """Name the errors of a route, or of its command, that follow from something else that it declares."""
    refused = declaration_of(route.who.asks).refuses if route.who.asks is not None else ()
    alone = msgspec.structs.replace(route, fails=(), who=msgspec.structs.replace(route.who, asks=None))
    known = set(problems_of(alone))
    both = {problem for problem in refused if problem in route.fails or problem in known}
    return sorted(problem.__name__ for problem in both | (known & set(route.fails)))


def test_a_route_lists_no_error_that_its_command_or_its_kind_lists() -> None:
    # Of a retired route all that it answers.
    routes = [route for route in TABLE if 410 not in route.returns]

    found = {f"{route.method} {route.contract_path}": listed_twice(route) for route in routes}

    assert {where: names for where, names in found.items() if names} == {}


def test_a_route_that_lists_an_error_again_is_found() -> None:
    async def show_thing() -> None:
        """Do nothing."""

    routes = Routes("/things", tag="Agents")
    routes.get("/one", who=asking(DeleteAgent), fails=(AgentAbsent, Unavailable))(show_thing)

    assert listed_twice(routes.endpoints[0]) == ["AgentAbsent", "Unavailable"]


def test_a_command_says_what_it_refuses_before_it_is_declared() -> None:
    with pytest.raises(TypeError, match="below its declaration"):
        refuses(AgentAbsent)(DeleteAgent)


def test_two_types_of_one_name_are_refused() -> None:
    other = msgspec.defstruct("Agent", [("id", str)])

    async def show_agent() -> other:  # type: ignore[valid-type]
        """Show another kind of agent."""

    routes = Routes("/others", tag="Agents")
    routes.get("", who=public)(show_agent)

    with pytest.raises(TypeError, match="two schemas would be called Agent"):
        openapi.document([*TABLE, *routes.endpoints], "http://localhost")


@pytest.mark.parametrize(
    ("asked", "status", "code", "told"),
    [
        ("POST /auth/email/verify", 401, "code_invalid", True),
        ("POST /auth/email/verify", 401, "signature_invalid", False),
        ("POST /auth/email/verify", 400, "code_invalid", False),
        ("GET /agents/someone", 503, "database_full", True),
        ("GET /agents/someone", 404, "secret_absent", False),
        # No operation, so nothing is listed for it.
        ("DELETE /secrets/routes", 405, "wrong_method", True),
        ("POST /secrets/routes/rotate", 405, "wrong_method", True),
    ],
)
def test_clients_of_tests_tell_a_code_that_is_not_listed(asked: str, status: int, code: str, told: bool) -> None:
    method, path = asked.split()
    request = httpx.Request(method, f"http://127.0.0.1{path}")
    answer = httpx.Response(status, json={"ok": False, "data": {"code": code}}, request=request)

    assert (find_unlisted(answer) is None) == told


AGENTS = "http://127.0.0.1/agents"
DELETED = {"ok": True, "data": {"deleted": "a"}}
REFUSED = {"ok": False, "error": "No.", "data": {"code": "agent_absent"}}


@pytest.mark.parametrize(
    ("request_", "status", "answered", "problem"),
    [
        (httpx.Request("GET", AGENTS), 200, {"ok": True, "data": []}, None),
        (httpx.Request("GET", AGENTS), 200, {"ok": True, "data": [{"id": "a"}]}, "the answer breaks"),
        (httpx.Request("GET", AGENTS), 200, {"data": []}, '"ok" is a required property'),
        (httpx.Request("GET", AGENTS), 200, {"ok": True, "data": [], "surplus": 1}, "'surplus' was unexpected"),
        (httpx.Request("GET", AGENTS), 201, {"ok": True, "data": []}, "no such status"),
        (httpx.Request("GET", AGENTS), 418, REFUSED, "no such status"),
        (httpx.Request("GET", f"{AGENTS}/a"), 404, REFUSED, None),
        (httpx.Request("GET", f"{AGENTS}/a"), 404, {"ok": False, "error": "No."}, '"data" is a required property'),
        (httpx.Request("GET", f"{AGENTS}?limit=7"), 200, {"ok": True, "data": []}, None),
        (httpx.Request("GET", f"{AGENTS}?limit=0"), 200, {"ok": True, "data": []}, "the parameter limit"),
        (httpx.Request("GET", AGENTS, headers={"Idempotency-Key": "x"}), 200, {"ok": True, "data": []}, None),
        (httpx.Request("PATCH", f"{AGENTS}/a", json={"nome": "x"}), 400, REFUSED, None),
        (httpx.Request("DELETE", f"{AGENTS}/a"), 200, DELETED, None),
        (httpx.Request("DELETE", f"{AGENTS}/{'a' * 200}"), 200, DELETED, "the parameter agentId"),
        (httpx.Request("DELETE", f"{AGENTS}/a", headers={"Idempotency-Key": "x"}), 200, DELETED, "Idempotency-Key"),
        (httpx.Request("DELETE", f"{AGENTS}/a", json={}), 200, DELETED, None),
        (httpx.Request("DELETE", f"{AGENTS}/a", json={"force": 1}), 200, DELETED, "the contract has no body there"),
        # A name that is also a word of another path.
        (httpx.Request("DELETE", f"{AGENTS}/batch"), 200, DELETED, None),
        (httpx.Request("DELETE", "http://127.0.0.1/secrets/routes"), 405, REFUSED, None),
        # No operation, so nothing is said of it; but nothing is done there either.
        (httpx.Request("GET", "http://127.0.0.1/nowhere"), 404, {}, None),
        (httpx.Request("GET", "http://127.0.0.1/nowhere"), 200, {}, "no such operation"),
        (httpx.Request("HEAD", f"{AGENTS}/a%2fb"), 404, {}, '"ok" is a required property'),
        (httpx.Request("GET", f"{AGENTS}/a%20b/freezes"), 404, {}, None),
    ],
)
def test_clients_of_tests_hold_answers_and_queries_against_the_contract(
    request_: httpx.Request, status: int, answered: Any, problem: str | None
) -> None:
    found = breach(httpx.Response(status, json=answered, request=request_))

    assert (found is None) if problem is None else (problem in str(found)), found


@pytest.mark.parametrize(
    ("body", "problem"),
    [({"wallet_ids": ["a"]}, None), ({"walletIds": ["a"]}, None), ({"walletIDs": ["a"]}, "the body breaks")],
)
def test_clients_of_tests_hold_bodies_that_were_taken_against_the_contract(body: Any, problem: str | None) -> None:
    request = httpx.Request("POST", "http://127.0.0.1/accounts", json=body)
    place = place_of(request)

    assert breach(httpx.Response(400, json=REFUSED, request=request)) is None
    assert place is not None
    told = of_body(request, place)
    assert (told is None) if problem is None else (problem in str(told)), told


def test_every_list_has_a_making_of_its_longest_rows() -> None:
    assert {endpoint.contract_path for endpoint in each_once() if is_list(endpoint)} <= set(LONGEST)

"""The table against the specification's list, and the contract against the table. Needs no process."""

import json
import re
from collections import Counter

import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from api.http import openapi
from api.http.endpoint import Endpoint
from api.routes import endpoints
from tests.outside.processes import PROJECT

TABLE = endpoints()
NAMES = [f"{endpoint.method} {endpoint.contract_path}" for endpoint in TABLE]
# The contract serves itself; it is the one route outside the table.
SELF = "GET /openapi.json"
SPECIFIED = [
    f"{row['method']} {row['path']}" for row in json.loads((PROJECT / "tests/vectors/routes.json").read_text())
]


def test_every_route_of_the_specification_is_declared_once_and_spelled_alike() -> None:
    declared = Counter([*NAMES, SELF])

    assert {name: count for name, count in declared.items() if count > 1} == {}
    assert sorted(set(SPECIFIED) - set(declared)) == [], "specified, but missing"
    assert sorted(set(declared) - set(SPECIFIED)) == [], "declared, but not specified"


@pytest.mark.parametrize("endpoint", TABLE, ids=NAMES)
def test_a_route_says_what_it_does_and_what_it_answers(endpoint: Endpoint) -> None:
    assert endpoint.summary.endswith(".")
    assert endpoint.returns
    assert endpoint.hardened == (endpoint.method != "GET" and not endpoint.path.startswith("/auth/"))
    assert not endpoint.shows_secret or endpoint.private


def test_the_committed_contract_is_the_generated_one() -> None:
    committed = json.loads((PROJECT / "openapi.json").read_text())

    generated = json.loads(json.dumps(openapi.document(TABLE, "http://localhost:3200")))

    assert committed == generated, "run `make openapi`"


def test_the_contract_is_valid_openapi() -> None:
    document = openapi.document(TABLE, "http://localhost:3200")

    OPENAPI_31_VALIDATOR.validate(document)
    for schema in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate(schema)


def test_every_reference_of_the_contract_leads_somewhere() -> None:
    document = openapi.document(TABLE, "http://localhost:3200")

    used = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))

    assert used <= set(document["components"]["schemas"])


def test_the_contract_marks_what_is_hardened_and_who_may_call() -> None:
    paths = openapi.document(TABLE, "http://localhost:3200")["paths"]

    for endpoint in TABLE:
        operation = paths[endpoint.contract_path][endpoint.method.lower()]
        assert ("x-service-hardening" in operation) == endpoint.hardened
        assert {kind for one in operation["security"] for kind in one} == set(endpoint.who.kinds) - {"public"}


def test_only_the_first_key_and_the_brakes_need_no_signature_where_one_is_wanted() -> None:
    paths = openapi.document(TABLE, "http://localhost:3200")["paths"]
    unsigned = {
        f"{method.upper()} {path}"
        for path, operations in paths.items()
        for method, operation in operations.items()
        if operation.get("x-service-hardening", {}).get("signatureRequiredByDeployment") is False
    }

    assert unsigned == {name for name, endpoint in zip(NAMES, TABLE, strict=True) if endpoint.unsigned}
    assert unsigned == {
        "POST /tenants/{id}/request-signing-keys", "POST /tenants/{id}/freeze", "POST /agents/{agentId}/freeze",
    }  # fmt: skip

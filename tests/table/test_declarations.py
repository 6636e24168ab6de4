"""The routes against the table of acts in tests/acts, and the contract against the routes. Needs no process."""

import json
import re
from collections import Counter
from typing import Any

import jsonschema_rs
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from api.areas.signing.answers import EvmSigned
from api.areas.signing.types import Decided, Pending, PolicyRateLimited, PolicyRefused
from api.http import openapi
from api.http.answers import returned_by
from api.http.endpoint import Declared, Endpoint, Options, Routes
from api.http.who import public
from api.routes import endpoints
from custody.kit.answer_kinds import Created, Document
from custody.kit.answers import Answered
from custody.kit.paging import Listed
from tests.acts.act import PUBLIC
from tests.acts.table import ACTS, BY_COMMAND, BY_ROUTE, ROUTES
from tests.fixtures.commands import COMMANDS
from tests.fixtures.each import each
from tests.outside.processes import PROJECT

TABLE = endpoints()
NAMES = [f"{endpoint.method} {endpoint.contract_path}" for endpoint in TABLE]
# The contract serves itself; its forms are the routes outside the table.
SELF = [f"GET {path}" for path in (openapi.CONTRACT, openapi.PLAIN, openapi.EVENTS)]


def test_every_route_of_the_table_of_acts_is_declared_once_and_spelled_alike() -> None:
    declared = Counter([*NAMES, *SELF])

    assert {name: count for name, count in (declared + Counter(ROUTES)).items() if count > 2} == {}
    assert sorted(set(ROUTES) - set(declared)) == [], "an act, but no route"
    assert sorted(set(declared) - set(ROUTES)) == [], "a route, but no act: tests/acts"


def test_a_route_admits_whom_its_act_admits_and_asks_the_same_command() -> None:
    spelled = {"agent_token": "agent"}
    declared = {
        name: (
            {spelled.get(kind, kind) for kind in endpoint.who.kinds},
            endpoint.who.asks.__name__ if endpoint.who.asks is not None else None,
        )
        for name, endpoint in zip(NAMES, TABLE, strict=True)
    }

    assert declared == {name: (set(BY_ROUTE[name].who), BY_ROUTE[name].command) for name in NAMES}


def test_a_command_is_sent_by_nobody_but_the_processes_of_its_act() -> None:
    assert set(BY_COMMAND) == set(COMMANDS)
    assert {name: set(act.senders.split()) for name, act in BY_COMMAND.items()} == {
        name: set(declared.senders) for name, (_, declared) in COMMANDS.items()
    }


def test_an_act_of_a_command_admits_nobody_whom_the_command_refuses() -> None:
    wider = [
        act.places
        for act in ACTS
        if act.command is not None and act.who != PUBLIC
        if not (
            set(act.who) <= set(BY_COMMAND[act.command].who) and set(act.roles) <= set(BY_COMMAND[act.command].roles)
        )
    ]

    assert wider == []


@each("endpoint", TABLE, ids=NAMES)
def test_a_route_says_what_it_does_and_what_it_answers(endpoint: Endpoint) -> None:
    assert endpoint.summary.endswith(".")
    assert endpoint.returns
    assert endpoint.hardened == (endpoint.method != "GET" and not endpoint.path.startswith("/auth/"))
    assert not endpoint.shows_secret or endpoint.private


def test_a_route_that_changes_something_takes_whom_its_command_takes() -> None:
    others = {
        name
        for name, endpoint in zip(NAMES, TABLE, strict=True)
        if endpoint.hardened and endpoint.who.asks is None and 410 not in endpoint.returns
    }

    accounts = {one for one in others if "/accounts" in one}
    # What the api writes itself; questions that change nothing.
    assert len(accounts) == 12
    assert others - accounts == {
        "POST /secrets/routes/explain",
        "POST /agents/{agentId}/policies/backtest",
        "POST /policy-templates/preview",
        "POST /platform/users/email/address",
        "POST /platform/users/phone/number",
        "POST /platform/users/wallet/address",
        "POST /platform/users/smart-wallet/address",
        "POST /platform/users/wallet/external-id",
    }


def test_options_of_a_route_stand_in_one_list_of_keywords() -> None:
    assert list(Options.__annotations__) == list(Declared.__struct_fields__)


def test_the_return_type_says_each_status_and_what_it_comes_with() -> None:
    assert returned_by(Answered[Decided[EvmSigned]], 200) == {
        200: EvmSigned,
        202: Pending,
        403: PolicyRefused,
        429: PolicyRateLimited,
    }
    assert returned_by(Answered[Created[Pending] | Pending], 200) == {201: Pending, 200: Pending}
    assert returned_by(Listed[Pending], 200) == {200: list[Pending]}
    assert returned_by(Pending, 201) == {201: Pending}
    assert returned_by(Document, 200) == {200: str}


def test_a_handler_that_does_not_say_what_it_returns_is_refused() -> None:
    async def handler() -> Any:
        """Do nothing."""

    with pytest.raises(TypeError, match="says what it returns"):
        Routes("/a", tag="A").get("", who=public)(handler)


def test_security_hangs_on_no_prefix_and_no_tag() -> None:
    async def handler() -> None:
        """Do nothing."""

    routes = Routes("/auth/new", tag="Health")
    routes.post("", who=public)(handler)

    assert routes.endpoints[0].hardened
    assert not routes.endpoints[0].unlimited


def test_only_what_says_whether_this_process_is_there_is_unlimited() -> None:
    assert {name for name, endpoint in zip(NAMES, TABLE, strict=True) if endpoint.unlimited} == {
        "GET /health",
        "GET /ready",
    }


def test_the_committed_contract_is_the_generated_one() -> None:
    committed = json.loads((PROJECT / "openapi.json").read_text())

    generated = json.loads(json.dumps(openapi.document(TABLE, "http://localhost:3200")))

    assert committed == generated, "run `make openapi`"


def test_the_contract_is_valid_openapi() -> None:
    for document in openapi.documents(TABLE, "http://localhost:3200").values():
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
        beside = {"agent_token_beside"} if endpoint.who.agent_beside else set()
        assert {kind for one in operation["security"] for kind in one} == endpoint.who.kinds - {"public"} | beside


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
        "POST /tenants/{id}/request-signing-keys",
        "POST /tenants/{id}/freeze",
        "POST /platform/tenants/{id}/freeze",
        "POST /agents/{agentId}/freeze",
    }

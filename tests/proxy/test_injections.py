"""Routes that say more than one header: several secrets, Basic, agents by name, the agent's own Authorization."""

import base64
import json
import uuid
from typing import Any

import pytest

from tests.fixtures.callers import Agent
from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless
from tests.proxy.envelope import refusal


def another_secret(keyless: Keyless, value: str) -> dict[str, Any]:
    made: dict[str, Any] = keyless.tenant.ok("POST", "/secrets", {"name": f"s-{uuid.uuid4().hex}", "value": value})
    return made


def test_several_secrets_go_into_one_request_and_none_comes_back(keyless: Keyless) -> None:
    value = f"app-{uuid.uuid4().hex}"
    further = another_secret(keyless, value)["id"]
    keyless.route(
        injectKey="DD-API-KEY",
        injectFormat="{value}",
        alsoInject=[
            {"secretId": further, "injectAs": "header", "injectKey": "DD-APPLICATION-KEY"},
            {"secretId": further, "injectAs": "query", "injectKey": "app", "injectFormat": "k-{value}"},
        ],
    )

    answer = keyless.gateway(**{"dd-application-key": "mine"}).post("/echo?a=1&app=mine", content=value)

    (heard,) = keyless.upstream.requests()
    assert heard.all("dd-api-key") == [keyless.value]
    assert heard.all("dd-application-key") == [value]
    assert heard.target == f"/echo?a=1&app=k-{value}"
    assert answer.status_code == 200
    assert value not in answer.text
    assert "*" in answer.text


@pytest.mark.parametrize("shape", ["x-access-token:{value}", "{value}:"])
def test_basic_is_made_of_user_and_secret(keyless: Keyless, shape: str) -> None:
    keyless.route(injectAs="basic", injectFormat=shape)

    answer = keyless.gateway().get("/echo")

    (heard,) = keyless.upstream.requests()
    encoded = base64.b64encode(shape.replace("{value}", keyless.value).encode()).decode()
    assert heard.all("authorization") == [f"Basic {encoded}"]
    assert answer.status_code == 200
    assert encoded not in answer.text


def test_a_route_that_names_agents_serves_these_alone(keyless: Keyless) -> None:
    other: Agent = keyless.tenant.agent()
    theirs = {"Authorization": str(other.headers["Authorization"])}
    route = keyless.route(agents=[keyless.agent.id])

    assert keyless.gateway().get("/echo").status_code == 200
    assert refusal(keyless.gateway().get("/echo", headers=theirs)) == (403, "no_route")
    with keyless.forward().stream("GET", "/echo") as answer:
        assert answer.status_code == 200
    keyless.tenant.ok("PUT", f"/secrets/routes/{route['id']}", {"agents": [other.id]})
    eventually(lambda: keyless.gateway().get("/echo", headers=theirs).status_code == 200)
    assert refusal(keyless.gateway().get("/echo")) == (403, "no_route")


@pytest.mark.parametrize("kept", [True, False])
def test_the_agents_own_authorization_goes_out_where_the_route_says_so(keyless: Keyless, kept: bool) -> None:
    keyless.route(injectKey="apikey", injectFormat="{value}", keepAuthorization=kept)

    answer = keyless.forward().get("/echo", headers={"Authorization": "Bearer of-a-person"})

    (heard,) = keyless.upstream.requests()
    assert answer.status_code == 200
    assert heard.all("apikey") == [keyless.value]
    assert heard.all("authorization") == (["Bearer of-a-person"] if kept else [])
    assert heard.all("proxy-authorization") == []


@pytest.mark.parametrize("scheme", ["Bearer", "Basic"])
def test_a_kept_authorization_is_never_the_token(keyless: Keyless, scheme: str) -> None:
    keyless.route(injectKey="apikey", injectFormat="{value}", keepAuthorization=True)
    shown = keyless.token if scheme == "Bearer" else base64.b64encode(f"x:{keyless.token}".encode()).decode()

    assert keyless.gateway().get("/echo").status_code == 200
    assert keyless.forward().get("/echo", headers={"Authorization": f"{scheme} {shown}"}).status_code == 200

    assert [heard.all("authorization") for heard in keyless.upstream.requests()] == [[], []]


def test_a_further_secret_that_is_gone_stops_the_request(keyless: Keyless) -> None:
    further = another_secret(keyless, "a further value")
    keyless.route(alsoInject=[{"secretId": further["id"], "injectAs": "header", "injectKey": "X-App"}])
    assert keyless.gateway().get("/echo").status_code == 200

    keyless.tenant.ok("DELETE", f"/secrets/{further['id']}")

    eventually(lambda: keyless.gateway().get("/echo").status_code == 403)
    assert refusal(keyless.gateway().get("/echo")) == (403, "secret_unavailable")


def test_a_further_secret_that_fits_no_more_goes_nowhere(keyless: Keyless) -> None:
    further = another_secret(keyless, "a further value")
    keyless.route(alsoInject=[{"secretId": further["id"], "injectAs": "header", "injectKey": "X-App"}])

    keyless.tenant.ok("PUT", f"/secrets/{further['id']}", {"value": "of two\nlines"})

    eventually(lambda: keyless.gateway().get("/echo").status_code == 403)
    assert all("lines" not in value for heard in keyless.upstream.requests() for value in heard.all("x-app"))


def test_a_batch_of_calls_gets_the_value_in_each(keyless: Keyless) -> None:
    keyless.route(injectAs="json", injectKey="/*/params/token", injectFormat="{value}")

    answer = keyless.gateway().post("/count", json=[{"id": 1, "params": {"token": "mine"}}, {"id": 2}])

    (heard,) = keyless.upstream.requests()
    assert answer.status_code == 200
    assert json.loads(heard.body) == [
        {"id": 1, "params": {"token": keyless.value}},
        {"id": 2, "params": {"token": keyless.value}},
    ]


def test_a_form_of_parts_gets_its_part(keyless: Keyless) -> None:
    keyless.route(injectAs="body", injectKey="token", injectFormat="{value}")

    answer = keyless.gateway().post("/count", data={"token": "mine"}, files={"file": ("a.bin", b"\0--\r\n")})

    (heard,) = keyless.upstream.requests()
    assert answer.status_code == 200
    assert heard.body.count('name="token"') == 1
    assert keyless.value in heard.body
    assert "\0--\r\n" in heard.body


def test_a_placeholder_in_a_text_becomes_the_value(keyless: Keyless) -> None:
    keyless.route(injectAs="text", injectKey="__TOKEN__", injectFormat="{value}")

    assert keyless.gateway().post("/count", content=b"login __TOKEN__\n").status_code == 200
    assert refusal(keyless.gateway().post("/count", content=b"login\n")) == (415, "body_unfit")

    (heard,) = keyless.upstream.requests()
    assert heard.body == f"login {keyless.value}\n"


def test_a_route_without_a_secret_lets_requests_through_and_injects_nothing(keyless: Keyless) -> None:
    where = {"hostPattern": f"localhost:{keyless.upstream.ports['main']}", "injectAs": "none"}
    made = keyless.tenant.ok("POST", "/secrets/routes", where)

    answer = keyless.gateway().post("/count", content=b"a body")
    with keyless.forward().stream("GET", "/echo") as streamed:
        assert streamed.status_code == 200

    first, _ = keyless.upstream.requests()
    assert (made["secretId"], made["injectKey"]) == (None, "")
    assert answer.status_code == 200
    assert first.all("authorization") == []
    assert keyless.token.encode() not in keyless.upstream.raw()
    keyless.tenant.ok("PUT", f"/secrets/routes/{made['id']}", {"pathPattern": "/v1/*"})
    eventually(lambda: keyless.gateway().get("/echo").status_code == 403)
    assert keyless.tenant.ok("DELETE", f"/secrets/routes/{made['id']}") == {"deleted": made["id"]}

"""The common part of every answer: envelope, request id, headers, and no secrets."""

import re
from typing import Any, get_origin

import httpx

from api.http import openapi
from api.http.endpoint import Endpoint
from api.routes import endpoints
from custody.version import VERSION
from tests.fixtures.each import each
from tests.table.world import World

TABLE = endpoints()
# A search says its total in its body.
LISTS = [endpoint for endpoint in TABLE if endpoint.query and get_origin(next(iter(endpoint.returns.values()))) is list]
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SECRET_NAMES = {
    "apikey",
    "token",
    "secret",
    "privatekey",
    "private",
    "mnemonic",
    "seed",
    "password",
    "credentialsecret",
    "blob",
    "sealed",
    "masterkey",
    "keyhash",
    "mac",
    "sessiontoken",
    "refreshtoken",
    "signingsecret",
    "appsecret",
    "verificationtoken",
    "judging",
    "recoverycodes",
    "accesstoken",
    "otpauthuri",
    "ordertext",
    "signedbytes",
    "answer",
}
# Fields with such a name that hold none: the token that a transfer moves, and a text that is published in the DNS.
OTHERWISE = {"/actions": {"token"}, "/sso-domains": {"verificationtoken"}}
# The other way round: the address of an administrator's try holds its token, and one of an application a code.
ALSO = {"/sign-on/test": {"url"}, "/sign-in/code": {"location"}}


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


def is_json(answer: httpx.Response) -> bool:
    """Anything but a page, or a table to download."""
    return answer.headers.get("content-type", "").startswith("application/json")


def fields_of(document: Any) -> set[str]:
    """Every key at any depth, in lower case without separators."""
    if isinstance(document, dict):
        own = {re.sub(r"[-_]", "", key).lower() for key in document}
        return own.union(*map(fields_of, document.values()))
    return set().union(*map(fields_of, document)) if isinstance(document, list) else set()


@each("endpoint", TABLE, ids=name)
def test_no_answer_has_a_secret_unless_it_is_declared_to_show_one(world: World, endpoint: Endpoint) -> None:
    answer = world.call(endpoint).send(world.caller(endpoint))

    assert answer.status_code == next(iter(endpoint.returns)), answer.text
    harmless = set().union(*(names for part, names in OTHERWISE.items() if part in endpoint.path))
    secret = SECRET_NAMES.union(*(names for part, names in ALSO.items() if part in endpoint.path)) - harmless
    found = fields_of(answer.json()) & secret if is_json(answer) else set()
    assert bool(found) == endpoint.shows_secret, found


@each("endpoint", TABLE, ids=name)
def test_an_answer_carries_envelope_request_id_and_version(world: World, endpoint: Endpoint) -> None:
    answer = world.call(endpoint).send(world.caller(endpoint), headers={"X-Request-Id": "seen:here-1"})

    assert answer.headers["X-Request-Id"] == "seen:here-1"
    assert answer.headers["X-Service-Version"] == VERSION
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert ("no-store" in answer.headers.get("Cache-Control", "")) == (
        endpoint.private or "public" not in endpoint.who.kinds
    )
    if not endpoint.raw_answer and is_json(answer):
        # A page of a list has the place of the next one beside it, and that nobody counted to the end.
        # An order that waits for a person is told so in a sentence.
        done = answer.is_success and answer.status_code != 202
        beside = (
            set(answer.json()) & {"nextCursor", "totalIsEstimate"} if isinstance(answer.json()["data"], list) else set()
        )
        assert set(answer.json()) - beside == ({"ok", "data"} if done else {"ok", "data", "error"})


@each("given", ["", "a b", "x" * 129, "a\tb", "<script>"])
def test_an_unsafe_request_id_is_replaced(world: World, given: str) -> None:
    answer = world.nobody.get("/health", headers={"X-Request-Id": given})

    assert re.fullmatch(r"[0-9a-f-]{36}", answer.headers["X-Request-Id"])


@each("path", ["/", "/nowhere", "/agents/a/b/c", "/vault", "/AGENTS", "/agents/", "//agents", "/../etc/passwd"])
def test_an_unknown_path_is_404_with_the_envelope(world: World, path: str) -> None:
    answer = world.tenant.get(path)

    assert (answer.status_code, answer.json()["ok"], answer.json()["data"]) == (404, False, {"code": "no_such_route"})
    assert answer.headers["X-Request-Id"]


@each("path", sorted({endpoint.path for endpoint in TABLE} | {openapi.CONTRACT, openapi.PLAIN, openapi.EVENTS}))
def test_a_wrong_method_is_405_and_names_the_right_ones(world: World, path: str) -> None:
    declared = {endpoint.method for endpoint in TABLE if endpoint.path == path} or {"GET"}
    filled = re.sub("<[^>]*>", "x", path)
    wrong = [method for method in METHODS if method not in declared]

    answers = [world.tenant.request(method, filled) for method in wrong]

    # `/agents/batch` is also where an agent of that name is read: one path, two declarations.
    allowed = [set(answer.headers["Allow"].split(", ")) for answer in answers if answer.status_code == 405]
    assert allowed
    assert all(declared <= names for names in allowed)
    assert {answer.json()["data"]["code"] for answer in answers if answer.status_code == 405} == {"wrong_method"}


@each("endpoint", LISTS, ids=name)
def test_a_list_says_how_many_there_are(world: World, endpoint: Endpoint) -> None:
    answer = world.call(endpoint).send(world.caller(endpoint))

    assert int(answer.headers["X-Total-Count"]) >= len(answer.json()["data"])

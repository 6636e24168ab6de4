"""The rights of callers, tried on every route."""

import string
import uuid

import pytest

from api.http.endpoint import Endpoint
from api.routes import endpoints
from tests.acts.table import JOURNEYS
from tests.fixtures.callers import fresh
from tests.fixtures.each import each
from tests.table.world import KINDS, World

TABLE = endpoints()
CLOSED = [endpoint for endpoint in TABLE if "public" not in endpoint.who.kinds]
BY_AGENT = [endpoint for endpoint in CLOSED if "agent" in endpoint.path_names]
# Nothing is looked at on the way to 410.
RETIRED = {"PUT /tenants/{id}/webhook"}
BAD = (
    {"X-Service-Key": "ck_" + "A" * 43},
    {"X-Service-Platform-Key": "pk_" + "A" * 43},
    {"Authorization": "Bearer eyJhbGciOiJub25lIn0.e30."},
    {"Authorization": "Basic YTpi"},
    {"Authorization": "Bearer"},
)


def name(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.contract_path}"


@each("endpoint", CLOSED, ids=name)
def test_without_a_valid_credential_a_route_answers_401(world: World, endpoint: Endpoint) -> None:
    call = world.refusable(endpoint)

    answers = [call.send(world.nobody, headers=headers) for headers in ({}, *BAD)]

    assert {answer.status_code for answer in answers} == {401}
    assert {answer.json()["ok"] for answer in answers} == {False}
    assert {answer.headers["WWW-Authenticate"] for answer in answers} == {"Bearer"}
    assert answers[0].json()["data"]["code"] == "no_credential"


@each("endpoint", CLOSED, ids=name)
def test_a_valid_credential_of_another_kind_is_403(world: World, endpoint: Endpoint) -> None:
    call = world.refusable(endpoint)

    answers = {kind: call.send(world.client(kind)) for kind in KINDS if kind not in endpoint.who.kinds}

    assert {kind: answer.status_code for kind, answer in answers.items()} == dict.fromkeys(answers, 403)
    assert {answer.json()["data"]["code"] for answer in answers.values()} <= {"wrong_kind"}


@each("endpoint", CLOSED, ids=name)
def test_two_credentials_together_are_ambiguous(world: World, endpoint: Endpoint) -> None:
    call = world.refusable(endpoint)
    second = {"Authorization": world.agent.headers["Authorization"], "X-Service-Key": world.tenant.key}

    answer = call.send(world.nobody, headers=second)

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "ambiguous_credentials")


@each(
    ("endpoint", "kind"),
    [
        pytest.param(one, kind, id=f"{kind} {name(one)}")
        for one in CLOSED
        for kind in ("tenant_key", "app_client", "session")
        # With a token beside the session, another agent's path is 403: tests/routes/vault/test_actions.py.
        # Of people's own wallets: tests/routes/test_user_wallets.py.
        if one.path_names and kind in one.who.kinds and name(one) not in RETIRED and not one.who.agent_beside
        if not one.path.startswith("/user/me")
    ],
)
def test_resources_of_another_tenant_are_404_as_if_absent(world: World, endpoint: Endpoint, kind: str) -> None:
    call = world.foreign_call(endpoint)
    path = endpoint.path
    for part in endpoint.path_names:
        path = path.replace(f"<{part}>", fresh() if part in ("agent", "tenant_id", "client_id") else str(uuid.uuid4()))

    path += call.path[len(call.path.partition("?")[0]) :]

    theirs, absent = call.send(world.client(kind)), call.send(world.client(kind), path=path)

    assert (theirs.status_code, absent.status_code) == (404, 404), theirs.text
    assert theirs.json() == absent.json()


@each("endpoint", [one for one in BY_AGENT if "agent_token" in one.who.kinds], ids=name)
def test_an_agents_token_on_another_agent_is_403_whether_that_exists_or_not(world: World, endpoint: Endpoint) -> None:
    call = world.refusable(endpoint)

    answers = [
        call.send(world.agent, path=call.path.replace(world.agent.id, other))
        for other in (world.cautious.id, world.foreign.id, "nobody")
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert {answer.json()["data"]["code"] for answer in answers} == {"other_agent"}


@each(
    ("endpoint", "kind"),
    [
        pytest.param(one, kind, id=f"{kind} {name(one)}")
        for one in CLOSED
        for kind in ("agent_token", "app_client", "session")
        if kind in one.who.kinds and name(one) not in JOURNEYS
    ],
)
def test_declared_callers_are_admitted(world: World, endpoint: Endpoint, kind: str) -> None:
    answer = world.call(endpoint).send(world.client(kind))

    assert answer.status_code in endpoint.returns, answer.text


def other_spellings(token: str) -> list[str]:
    """The same bytes, written otherwise: padded, and with bits that no byte holds."""
    alphabet = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
    head, payload, signature = token.split(".")
    last = alphabet[alphabet.index(signature[-1]) ^ 1]
    padded = f"{head}{'=' * (-len(head) % 4)}.{payload}.{signature}"
    return [f"{token}=", f"{token}==", padded, f"{head}.{payload}.{signature[:-1]}{last}"]


def test_a_token_has_one_spelling(world: World) -> None:
    for client, path in ((world.agent, f"/agents/{world.agent.id}"), (world.owner, "/auth/session")):
        token = client.headers["authorization"].removeprefix("Bearer ")
        spelled = [value for value in other_spellings(token) if value != token]

        answers = [world.nobody.get(path, headers={"Authorization": f"Bearer {value}"}) for value in spelled]

        assert client.get(path).status_code == 200
        assert {answer.status_code for answer in answers} == {401}

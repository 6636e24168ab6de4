"""Credentials that expire: an access token is asked for with the secret, injected, renewed, and never shown."""

import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, urlencode

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from proxy_addon.lookup_cache import FRESH_SECONDS
from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless
from tests.outside.upstream import Heard
from tests.proxy.envelope import refusal

IDP = "https://idp.example.com"
TOKEN, INSTALLATION = "/token", "/app/installations/77/access_tokens"


@pytest.fixture(scope="module")
def key() -> RSAPrivateKey:
    return generate_private_key(65537, 2048)


@pytest.fixture(scope="module")
def pem(key: RSAPrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture
def client() -> dict[str, str]:
    return {"clientId": "an agent's", "clientSecret": f"s/{uuid.uuid4().hex}+:"}


def make_route(keyless: Keyless, held: dict[str, str], grant: str, path: str = TOKEN, **more: Any) -> dict[str, Any]:
    """Make a route whose token is asked for at the upstream."""
    name, exchange = f"s-{uuid.uuid4().hex}", {"grant": grant, "tokenUrl": url_of(keyless, path), **more}
    secret = keyless.tenant.ok("POST", "/secrets", {"name": name, "value": json.dumps(held)})
    return keyless.route(secretId=secret["id"], exchange=exchange)


def url_of(keyless: Keyless, path: str) -> str:
    return f"https://localhost:{keyless.upstream.port}{path}"


def requests_to(keyless: Keyless, *paths: str) -> list[Heard]:
    return [one for one in keyless.upstream.requests() if one.target.partition("?")[0] in paths]


def list_bearers(keyless: Keyless) -> list[str]:
    """Return the tokens with which the API was called."""
    return [
        one.all("authorization")[0].removeprefix("Bearer ") for one in requests_to(keyless, "/echo", "/unauthorized")
    ]


@pytest.fixture
def by_client(keyless: Keyless, client: dict[str, str]) -> Iterator[Keyless]:
    make_route(keyless, client, "clientCredentials", scope="read write", audience="https://api.example.com")
    yield keyless
    # Neither a client's secret nor the agent's token leaves for anybody but the endpoint.
    assert all(client["clientSecret"] not in str(one) for one in requests_to(keyless, "/echo"))


def test_a_clients_credentials_become_a_token_that_is_used_until_it_ends(
    by_client: Keyless, client: dict[str, str]
) -> None:
    answers = [by_client.gateway().get("/echo") for _ in range(3)]

    (asked,) = requests_to(by_client, TOKEN)
    basic = asked.all("authorization")[0]
    assert [answer.status_code for answer in answers] == [200] * 3
    assert parse_qs(asked.body) == {
        "grant_type": ["client_credentials"],
        "scope": ["read write"],
        "audience": ["https://api.example.com"],
    }
    assert basic.startswith("Basic ")
    assert by_client.token not in by_client.upstream.raw().decode("latin-1")
    (token,) = set(list_bearers(by_client))
    assert token.startswith("minted-")
    assert token not in answers[0].text


def test_a_client_may_say_its_secret_in_the_form(keyless: Keyless, client: dict[str, str]) -> None:
    make_route(keyless, client, "clientCredentials", clientAuth="post")

    assert keyless.gateway().get("/echo").status_code == 200

    (asked,) = requests_to(keyless, TOKEN)
    said = parse_qs(asked.body)
    assert (said["client_id"], said["client_secret"]) == ([client["clientId"]], [client["clientSecret"]])
    assert asked.all("authorization") == []


def test_a_refresh_token_becomes_a_token(keyless: Keyless) -> None:
    make_route(keyless, {"clientId": "public", "refreshToken": "refresh-1"}, "refreshToken")

    assert keyless.gateway().get("/echo").status_code == 200

    (asked,) = requests_to(keyless, TOKEN)
    assert parse_qs(asked.body) == {
        "grant_type": ["refresh_token"],
        "refresh_token": ["refresh-1"],
        "client_id": ["public"],
    }


def test_a_google_service_account_becomes_a_token(keyless: Keyless, key: RSAPrivateKey, pem: str) -> None:
    file = {"type": "service_account", "client_email": "a@b.iam.example", "private_key": pem, "private_key_id": "k1"}
    make_route(keyless, file, "googleServiceAccount", scope="https://scope.example/read")

    assert keyless.gateway().get("/echo").status_code == 200

    (asked,) = requests_to(keyless, TOKEN)
    said = parse_qs(asked.body)
    assert said["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    (assertion,) = said["assertion"]
    claims = jwt.decode(assertion, key.public_key(), ["RS256"], audience=url_of(keyless, TOKEN))
    assert (claims["iss"], claims["scope"]) == ("a@b.iam.example", "https://scope.example/read")
    assert jwt.get_unverified_header(assertion)["kid"] == "k1"
    assert claims["exp"] - claims["iat"] == 3600


def test_a_github_app_becomes_a_token_of_its_installation(keyless: Keyless, key: RSAPrivateKey, pem: str) -> None:
    make_route(keyless, {"appId": "12", "installationId": "77", "privateKey": pem}, "githubApp", "")

    assert keyless.gateway().get("/echo").status_code == 200

    (asked,) = requests_to(keyless, INSTALLATION)
    claims = jwt.decode(asked.all("authorization")[0].removeprefix("Bearer "), key.public_key(), ["RS256"])
    assert claims["iss"] == "12"
    assert claims["exp"] - claims["iat"] <= 600
    assert asked.method == "POST"


def test_of_many_requests_at_once_one_asks_for_the_token(keyless: Keyless, client: dict[str, str]) -> None:
    gate = f"token-{uuid.uuid4().hex}"
    make_route(keyless, client, "clientCredentials", f"{TOKEN}?gate={gate}")

    with ThreadPoolExecutor(12) as pool:
        answers = [pool.submit(lambda: keyless.gateway().get("/echo").status_code) for _ in range(12)]
        eventually(lambda: requests_to(keyless, TOKEN))
        # A second one that asks would wait for ever.
        keyless.upstream.release(gate)
        codes = [answer.result() for answer in answers]

    assert codes == [200] * 12
    assert len(requests_to(keyless, TOKEN)) == 1


def test_a_token_at_its_end_is_renewed(keyless: Keyless, client: dict[str, str]) -> None:
    make_route(keyless, client, "clientCredentials", f"{TOKEN}?seconds=1")

    def is_renewed() -> bool:
        assert keyless.gateway().get("/echo").status_code == 200
        return len(set(list_bearers(keyless))) > 1

    eventually(is_renewed)


def test_a_rotated_secret_means_another_token_at_once(keyless: Keyless, client: dict[str, str]) -> None:
    route = make_route(keyless, client, "clientCredentials")
    assert keyless.gateway().get("/echo").status_code == 200
    (first,) = set(list_bearers(keyless))

    keyless.tenant.ok("PUT", f"/secrets/{route['secretId']}", {"value": json.dumps(client | {"clientId": "next"})})

    def is_changed() -> bool:
        assert keyless.gateway().get("/echo").status_code == 200
        return list_bearers(keyless)[-1] != first

    eventually(is_changed)


REFUSED: dict[str, dict[str, Any]] = {
    "a refusal": {"status": 401, "body": "{}"},
    "no token": {"body": "{}"},
    "no JSON": {"body": "token"},
    "a token with a line end": {"body": '{"access_token": "a\\r\\nX: y"}'},
    "an empty token": {"body": '{"access_token": ""}'},
    "a token that is too long": {"body": '{"access_token": "%s"}', "long": 20_000},
    "an answer that is too long": {"body": '{"access_token": "abc", "x": "%s"}', "long": 70_000},
    "an end that is no number": {"body": '{"access_token": "abc", "expires_in": "nan"}'},
    "an end of four hundred digits": {"body": '{"access_token": "abc", "expires_in": "1%s"}'.replace("%s", "0" * 400)},
    "a redirect": {"status": 302, "body": "{}"},
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_answer_without_a_token_sends_nothing_on(keyless: Keyless, client: dict[str, str], name: str) -> None:
    make_route(keyless, client, "clientCredentials", f"{TOKEN}?{urlencode(REFUSED[name])}")

    assert refusal(keyless.gateway().get("/echo")) == (502, "token_not_minted")
    assert refusal(keyless.gateway().get("/echo")) == (502, "token_not_minted")

    # The second time nobody asked.
    assert len(requests_to(keyless, TOKEN)) == 1
    assert requests_to(keyless, "/echo") == []


LOOSE = [
    {"access_token": "abc", "expires_at": "2099-01-01T00:00:00"},
    {"access_token": "abc", "expires_in": 3600, "expires_at": 1893456000},
    {"access_token": "abc", "expires_in": "3600", "id_token": None, "token": 5},
    {"token": "abc", "expires_at": "2099-01-01T00:00:00Z"},
    {"access_token": "abc", "expires_in": 0},
]


@pytest.mark.parametrize("said", LOOSE, ids=str)
def test_an_answer_with_odd_fields_beside_a_token_is_taken(
    keyless: Keyless, client: dict[str, str], said: dict[str, Any]
) -> None:
    make_route(keyless, client, "clientCredentials", f"{TOKEN}?{urlencode({'body': json.dumps(said)})}")

    assert [keyless.gateway().get("/echo").status_code for _ in range(3)] == [200] * 3

    assert list_bearers(keyless) == ["abc"] * 3
    # However short it lasts by its own word, each request does not ask.
    assert len(requests_to(keyless, TOKEN)) == 1


def test_an_agent_that_is_frozen_while_its_token_is_asked_for_is_refused(
    keyless: Keyless, client: dict[str, str]
) -> None:
    gate, began = f"token-{uuid.uuid4().hex}", time.monotonic()
    make_route(keyless, client, "clientCredentials", f"{TOKEN}?gate={gate}")

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lambda: keyless.gateway().get("/echo"))
        eventually(lambda: requests_to(keyless, TOKEN))
        assert keyless.tenant.post(f"/agents/{keyless.agent.id}/freeze", json={}).status_code == 200
        # What was judged is old by then.
        eventually(lambda: time.monotonic() > began + FRESH_SECONDS + 0.5)
        keyless.upstream.release(gate)

    assert refusal(answer.result()) == (403, "frozen")
    assert requests_to(keyless, "/echo") == []


@pytest.mark.parametrize("host", ["169.254.169.254.nip.example", "localhost.test"])
def test_a_token_endpoint_is_dialled_at_judged_addresses_only(
    keyless: Keyless, client: dict[str, str], host: str
) -> None:
    secret = keyless.tenant.ok("POST", "/secrets", {"name": f"s-{uuid.uuid4().hex}", "value": json.dumps(client)})
    keyless.route(secretId=secret["id"], exchange={"grant": "clientCredentials", "tokenUrl": f"https://{host}/token"})

    assert refusal(keyless.gateway().get("/echo")) == (502, "token_not_minted")


@pytest.mark.parametrize(
    ("exchange", "value", "code"),
    [
        ({"grant": "clientCredentials"}, {}, "invalid_route"),
        ({"grant": "clientCredentials", "tokenUrl": "http://idp.example.com/token"}, {}, "invalid_route"),
        ({"grant": "clientCredentials", "tokenUrl": "https://u:p@idp.example.com/token"}, {}, "invalid_route"),
        ({"grant": "clientCredentials", "tokenUrl": "https://10.0.0.1/token"}, {}, "invalid_route"),
        ({"grant": "clientCredentials", "tokenUrl": "https://["}, {}, "invalid_route"),
        ({"grant": "clientCredentials", "tokenUrl": "https://idp.example.com/#x"}, {}, "invalid_route"),
        (
            {"grant": "clientCredentials", "tokenUrl": IDP},
            {"clientId": "a"},
            "value_not_for_exchange",
        ),
        ({"grant": "refreshToken", "tokenUrl": IDP}, {"clientId": "a"}, "value_not_for_exchange"),
        ({"grant": "googleServiceAccount"}, {"client_email": "a", "private_key": "b"}, "value_not_for_exchange"),
        (
            {"grant": "githubApp"},
            {"appId": "1", "installationId": "2", "privateKey": "x" * 5_000},
            "value_not_for_exchange",
        ),
        ({"grant": "githubApp"}, {"appId": "1", "installationId": "../1", "privateKey": "x"}, "value_not_for_exchange"),
    ],
    ids=str,
)
def test_an_exchange_that_could_not_work_is_refused(
    keyless: Keyless, exchange: dict[str, str], value: dict[str, str], code: str
) -> None:
    secret = keyless.tenant.ok("POST", "/secrets", {"name": f"s-{uuid.uuid4().hex}", "value": json.dumps(value)})
    fields = {"hostPattern": "api.example.com", "injectAs": "header", "injectKey": "X", "secretId": secret["id"]}

    answer = keyless.tenant.post("/secrets/routes", json=fields | {"exchange": exchange})

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, code)
    assert json.dumps(value) not in answer.text

"""Upstreams behind the gateway are one site to a client, and yet none of them leads it to another."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import anthropic
import httpx
import openai
import pytest
import requests

from tests.fixtures.proxied import Keyless
from tests.outside import npm
from tests.proxy.envelope import refusal
from tests.proxy.test_real_clients import MESSAGES, ran

# A redirect from the upstream `wrong` to a path of the upstream `up`, for which the agent has another credential.
AWAY = "/up/echo/transfer?to=mallory"
NODE = """
const [url, token, method] = process.argv.slice(1);
const options = {method, headers: {authorization: `Bearer ${token}`}};
if (method === 'POST') options.body = '{"a": 1}';
const answer = await fetch(url, options);
console.log(JSON.stringify([answer.status, await answer.text()]));
"""
Client = Callable[[Keyless, str, str], None]
CLIENTS_OF_NPM = Path(npm.__file__).parent / "api_clients"


@pytest.fixture
def two(keyless: Keyless) -> Keyless:
    """An agent with a route to each of two upstreams."""
    keyless.route()
    keyless.route("wrong")
    return keyless


def by_requests(agent: Keyless, url: str, method: str) -> None:
    headers = {"Authorization": f"Bearer {agent.token}"}
    with requests.Session() as session:
        session.trust_env = False
        session.request(method, url, headers=headers, data=b"{}" if method == "POST" else None, timeout=60)


def by_httpx(agent: Keyless, url: str, method: str) -> None:
    with httpx.Client(trust_env=False, follow_redirects=True, timeout=60) as client:
        client.request(method, url, headers={"Authorization": f"Bearer {agent.token}"})


def by_curl(agent: Keyless, url: str, method: str) -> None:
    body = ["-d", "{}"] if method == "POST" else []
    ran("curl", "-sSL", *body, "-H", f"Authorization: Bearer {agent.token}", url)


def by_node(agent: Keyless, url: str, method: str) -> None:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    ran("node", "--input-type=module", "-e", NODE, url, agent.token, method)


CLIENTS: dict[str, Client] = {"requests": by_requests, "httpx": by_httpx, "curl": by_curl, "node": by_node}


def redirecting(agent: Keyless, to: str, alias: str = "wrong", **more: object) -> str:
    return f"{agent.proxy.url}/{alias}/redirect?{urlencode({'to': to, **more})}"


def heard_by(agent: Keyless, server: str) -> list[str]:
    return [f"{one.method} {one.target}" for one in agent.upstream.requests() if one.server == server]


@pytest.mark.parametrize(("method", "code"), [("GET", 302), ("POST", 307)])
@pytest.mark.parametrize("name", CLIENTS)
def test_no_client_is_led_from_one_upstream_to_another(two: Keyless, name: str, method: str, code: int) -> None:
    for to in (AWAY, f"{two.proxy.url}{AWAY}", f"//localhost:{two.proxy.port}{AWAY}", f"../..{AWAY}", f"/\\..{AWAY}"):
        CLIENTS[name](two, redirecting(two, to, code=code), method)

    # A path alone is one of the upstream's own, and so is one that leads above the root; all else leads nowhere.
    assert heard_by(two, "main") == []
    assert heard_by(two, "wrong")[1] == f"{method} {AWAY}"
    assert heard_by(two, "wrong").count(f"{method} {AWAY}") == 2
    assert len(heard_by(two, "wrong")) == 7


@pytest.mark.parametrize(("method", "code"), [("GET", 302), ("POST", 307)])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_clients_way_within_one_upstream_is_open(two: Keyless, name: str, method: str, code: int) -> None:
    own = f"https://localhost:{two.upstream.port}/v1/c?d"
    for to in ("/v1/next?a=b", "relative", own):
        CLIENTS[name](two, redirecting(two, to, "up", code=code), method)
    CLIENTS[name](two, redirecting(two, "/v1/named", f"proxy/localhost:{two.upstream.port}", code=code), method)

    followed = [one for one in two.upstream.requests() if not one.target.startswith("/redirect")]
    assert [(one.server, one.method, one.target) for one in followed] == [
        ("main", method, target) for target in ("/v1/next?a=b", "/relative", "/v1/c?d", "/v1/named")
    ]
    assert {one.all("authorization")[0] for one in followed} == {f"Bearer {two.value}"}


def test_the_clients_of_openai_and_anthropic_take_no_prompt_to_another_upstream(two: Keyless) -> None:
    base, body = f"{two.proxy.url}/wrong", {"model": "m", "messages": MESSAGES}
    query = {"to": f"{two.proxy.url}/up/v1/chat/completions", "code": "307"}
    with (
        openai.OpenAI(base_url=base, api_key=two.token, default_query=query, max_retries=0) as one,
        anthropic.Anthropic(base_url=base, auth_token=two.token, default_query=query, max_retries=0) as other,
    ):
        with pytest.raises(openai.APIStatusError) as openais:
            one.post("/redirect", cast_to=object, body=body)
        with pytest.raises(anthropic.APIStatusError) as anthropics:
            other.post("/redirect", cast_to=object, body=body)

    assert {openais.value.status_code, anthropics.value.status_code} == {307}
    assert heard_by(two, "main") == []
    assert len(heard_by(two, "wrong")) == 2


@pytest.mark.parametrize(
    "header",
    [
        "refresh",
        "link",
        "content-location",
        "operation-location",
        "x-goog-upload-url",
        "x-poll-url",
        "www-authenticate",
    ],
)
def test_other_headers_lead_nowhere_else_either(two: Keyless, header: str) -> None:
    said = {"refresh": "0; url=%s", "link": '<%s>; rel="next"', "www-authenticate": 'Bearer realm="%s"'}.get(
        header, "%s"
    ) % f"{two.proxy.url}{AWAY}"

    answer = two.gateway("wrong").get("/redirect", params={"to": said, "in": header, "code": "200"})

    assert header not in answer.headers
    assert answer.headers["X-Service-Removed"] == header


def test_requests_and_httpx_get_every_page(two: Keyless) -> None:
    ids = []
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {two.token}"
        url = f"{two.proxy.url}/up/repos/o/r/issues"
        while url:
            page = session.get(url, timeout=60)
            ids += [issue["id"] for issue in page.json()]
            url = page.links.get("next", {}).get("url")
    client, url = two.gateway(), "/repos/o/r/issues"
    while url:
        answer = client.get(url)
        ids += [issue["id"] for issue in answer.json()]
        url = answer.links.get("next", {}).get("url")

    assert ids == [1, 2, 3, 1, 2, 3]
    assert {one.server for one in two.upstream.requests()} == {"main"}


@pytest.mark.long
@pytest.mark.skipif(bool(npm.missing()), reason=str(npm.missing()))
def test_octokit_gets_every_page_and_a_file_in_a_folder(two: Keyless) -> None:
    npm.install(CLIENTS_OF_NPM)
    said = ran("node", str(CLIENTS_OF_NPM / "octokit.mjs"), f"{two.proxy.url}/up", two.token)

    assert json.loads(said) == [[1, 2, 3], "/repos/o/r/contents/src%2Findex.ts"]


@pytest.mark.parametrize(
    "header", ["link", "operation-location", "azure-asyncoperation", "x-goog-upload-url", "x-poll-url"]
)
def test_references_that_clients_do_not_resolve_are_addresses_of_the_gateway(two: Keyless, header: str) -> None:
    said = f"https://localhost:{two.upstream.port}/v1/next?a=b"
    written = f"<{said}>" if header == "link" else said
    behind = {"X-Forwarded-Host": "gate.corp, inner", "X-Forwarded-Proto": "https"}
    query = {"to": written, "in": header, "code": "202"}
    client = two.gateway()

    direct = client.get("/redirect", params=query).headers[header].strip("<>")
    forwarded = client.get("/redirect", params=query, headers=behind).headers[header].strip("<>")

    assert direct == f"{two.proxy.url}/up/v1/next?a=b"
    assert forwarded == "https://gate.corp/up/v1/next?a=b"
    assert client.get(direct).json()["target"] == "/v1/next?a=b"


def test_the_operator_may_say_what_the_gateway_is_called(two: Keyless) -> None:
    query = urlencode({"to": "<//gate.corp/wrong/echo>, </v1/next>", "in": "link", "code": "200"})
    own = urlencode({"to": "</v1/next>", "in": "link", "code": "200"})
    with two.proxied.another_proxy(SERVICE_PROXY_PUBLIC_URL="https://gate.corp") as proxy:
        answers = [two.gateway(proxy=proxy).get(f"/redirect?{asked}") for asked in (own, query)]

    assert answers[0].headers["link"] == "<https://gate.corp/up/v1/next>"
    assert "link" not in answers[1].headers


COOKIES = [
    "a=1",
    "b=1; Path=/",
    "c=1; Path=/up",
    "d=1; Domain=127.0.0.1; Path=/",
    "e=1; Path=/wrong/../up/",
    "f=1; Path=//",
    'g="1; Path=/up"',
    "h=1, i=2; Path=/up; Path=/",
]


def setting(agent: Keyless, cookie: str, path: str = "/wrong") -> str:
    return f"{agent.proxy.url}{path}/cookie?{urlencode({'is': cookie})}"


def by_jar_of_requests(agent: Keyless, urls: list[str], _folder: Path) -> None:
    with requests.Session() as session:
        session.trust_env = False
        for url in urls:
            session.get(url, headers={"Authorization": f"Bearer {agent.token}"}, timeout=60)


def by_jar_of_httpx(agent: Keyless, urls: list[str], _folder: Path) -> None:
    with httpx.Client(trust_env=False, headers={"Authorization": f"Bearer {agent.token}"}, timeout=60) as client:
        for url in urls:
            client.get(url)


def by_jar_of_curl(agent: Keyless, urls: list[str], folder: Path) -> None:
    jar = str(folder / "jar")
    ran("curl", "-sS", "-b", jar, "-c", jar, "-H", f"Authorization: Bearer {agent.token}", *urls)


def by_jar_of_openai(agent: Keyless, urls: list[str], _folder: Path) -> None:
    with openai.OpenAI(base_url=agent.proxy.url, api_key=agent.token, max_retries=0) as client:
        for url in urls:
            client.get(url, cast_to=httpx.Response)


JARS = {"requests": by_jar_of_requests, "httpx": by_jar_of_httpx, "curl": by_jar_of_curl, "openai": by_jar_of_openai}


@pytest.mark.parametrize("name", JARS)
def test_a_cookie_comes_back_to_its_own_upstream_only(two: Keyless, tmp_path: Path, name: str) -> None:
    own = f"/proxy/localhost:{two.upstream.ports['wrong']}"
    asked = [f"{two.proxy.url}{path}" for path in ("/up", "/up/echo", "/wrong/echo", "/wrong/x/y", f"{own}/echo")]

    urls = [setting(two, cookie, path) for path in ("/wrong", own) for cookie in COOKIES]
    JARS[name](two, [*urls, *asked], tmp_path)

    heard = [one for one in two.upstream.requests() if not one.target.startswith("/cookie")]
    assert [one.server for one in heard] == ["main", "main", "wrong", "wrong", "wrong"]
    shown = ["; ".join(one.all("cookie")) for one in heard]
    assert shown[:2] == ["", ""]
    assert all("b=1" in one for one in shown[2:])


def test_an_answer_of_the_proxy_differs_from_one_of_the_upstream(two: Keyless) -> None:
    envelope = json.dumps({"ok": False, "error": "No.", "data": {"code": "bad_token", "requestId": "x"}})
    theirs = two.gateway().get("/unauthorized", params={"body": envelope})
    ours = two.gateway(Authorization="Bearer nonsense").get("/echo")

    assert refusal(ours) == (401, "bad_token")
    assert (theirs.status_code, theirs.headers["X-Request-Id"], theirs.json()) == (401, "x", json.loads(envelope))
    assert ours.headers["X-Service-Error"] == "bad_token"
    assert "X-Service-Request-Id" not in ours.headers
    assert "X-Service-Error" not in theirs.headers
    assert theirs.headers["X-Service-Request-Id"] not in ("x", "")

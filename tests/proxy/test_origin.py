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
        session.request(method, url, headers=headers, data=b"{}" if method == "POST" else None, timeout=20)


def by_httpx(agent: Keyless, url: str, method: str) -> None:
    with httpx.Client(trust_env=False, follow_redirects=True, timeout=20) as client:
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
    return [f"{one.method} {one.target}" for one in agent.upstream.heard() if one.server == server]


@pytest.mark.parametrize(("method", "code"), [("GET", 302), ("POST", 307)])
@pytest.mark.parametrize("name", CLIENTS)
def test_no_client_is_led_from_one_upstream_to_another(two: Keyless, name: str, method: str, code: int) -> None:
    for to in (AWAY, f"{two.proxy.url}{AWAY}", f"//localhost:{two.proxy.port}{AWAY}", f"../..{AWAY}", f"/\\..{AWAY}"):
        CLIENTS[name](two, redirecting(two, to, code=code), method)

    # A path alone is one of the upstream's own; everything else leads nowhere.
    assert heard_by(two, "main") == []
    assert heard_by(two, "wrong")[1] == f"{method} {AWAY}"
    assert len(heard_by(two, "wrong")) == 6


@pytest.mark.parametrize(("method", "code"), [("GET", 302), ("POST", 307)])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_clients_way_within_one_upstream_is_open(two: Keyless, name: str, method: str, code: int) -> None:
    own = f"https://localhost:{two.upstream.port}/v1/c?d"
    for to in ("/v1/next?a=b", "relative", own):
        CLIENTS[name](two, redirecting(two, to, "up", code=code), method)
    CLIENTS[name](two, redirecting(two, "/v1/named", f"proxy/localhost:{two.upstream.port}", code=code), method)

    followed = [one for one in two.upstream.heard() if not one.target.startswith("/redirect")]
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


@pytest.mark.parametrize("header", ["refresh", "link", "content-location", "operation-location"])
def test_other_headers_lead_nowhere_else_either(two: Keyless, header: str) -> None:
    said = {"refresh": "0; url=%s", "link": '<%s>; rel="next"'}.get(header, "%s") % f"{two.proxy.url}{AWAY}"

    answer = two.gateway("wrong").get("/redirect", params={"to": said, "in": header, "code": "200"})

    assert header not in answer.headers
    assert answer.headers["X-Service-Removed"] == header


def test_a_link_to_the_next_page_works(two: Keyless) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {two.token}"
        said = f'<https://localhost:{two.upstream.port}/v1/items?page=2>; rel="next"'
        first = session.get(redirecting(two, said, "up", **{"in": "link", "code": "200"}), timeout=20)
        second = session.get(requests.compat.urljoin(first.url, first.links["next"]["url"]), timeout=20)

    assert second.json()["target"] == "/v1/items?page=2"


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
            session.get(url, headers={"Authorization": f"Bearer {agent.token}"}, timeout=20)


def by_jar_of_httpx(agent: Keyless, urls: list[str], _folder: Path) -> None:
    with httpx.Client(trust_env=False, headers={"Authorization": f"Bearer {agent.token}"}, timeout=20) as client:
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

    heard = [one for one in two.upstream.heard() if not one.target.startswith("/cookie")]
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

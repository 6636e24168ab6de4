"""The clients that agents really use, changed in nothing but their base address and their token."""

import os
import shutil
import subprocess
import sys

import anthropic
import msgspec
import openai
import pytest
import requests

from tests.fixtures.proxied import Keyless, Proxy

WORDS = "one two three"
MESSAGES = [{"role": "user", "content": WORDS}]


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what a test says decides where its client goes."""
    for name in [name for name in os.environ if name.lower().endswith(("_proxy", "_ca_bundle", "_api_key"))]:
        monkeypatch.delenv(name)


@pytest.fixture
def chatting(with_route: Keyless) -> openai.OpenAI:
    """OpenAI's client at the gateway."""
    with openai.OpenAI(base_url=f"{with_route.proxy.url}/up/v1", api_key=with_route.token) as client:
        yield client


@pytest.fixture
def messaging(keyless: Keyless) -> anthropic.Anthropic:
    """Anthropic's client at the gateway; its API takes the key in a header of its own."""
    keyless.route(injectKey="x-api-key", injectFormat="{value}")
    with anthropic.Anthropic(base_url=f"{keyless.proxy.url}/up", auth_token=keyless.token) as client:
        yield client


def test_openai(chatting: openai.OpenAI, with_route: Keyless) -> None:
    answer = chatting.chat.completions.create(model="m", messages=MESSAGES)

    assert answer.choices[0].message.content == WORDS
    assert with_route.upstream.requests()[0].all("authorization") == [f"Bearer {with_route.value}"]
    assert with_route.token.encode() not in with_route.upstream.raw()


def test_openai_streamed(chatting: openai.OpenAI) -> None:
    with chatting.chat.completions.create(model="m", messages=MESSAGES, stream=True) as chunks:
        said = [chunk.choices[0].delta.content for chunk in chunks]

    assert said == ["one ", "two ", "three "]


def test_openai_tells_a_refusal_by_its_status(keyless: Keyless) -> None:
    base = f"{keyless.proxy.url}/up/v1"
    with openai.OpenAI(base_url=base, api_key=keyless.token) as own, pytest.raises(openai.APIStatusError) as refused:
        own.chat.completions.create(model="m", messages=MESSAGES)
    with openai.OpenAI(base_url=base, api_key="nonsense") as wrong, pytest.raises(openai.APIStatusError) as unknown:
        wrong.chat.completions.create(model="m", messages=MESSAGES)

    assert (refused.type, unknown.type) == (openai.PermissionDeniedError, openai.AuthenticationError)

    assert unknown.value.response.json()["data"]["code"] == "bad_token"


class Refused(msgspec.Struct, frozen=True):
    """A way to be refused: the path below the proxy, what is sent, and what becomes of it."""

    status: int
    code: str
    sentence: str
    path: str = "up"
    token: str = ""
    text: str = WORDS
    injected: str = "header"


REFUSED = {
    "no route": Refused(403, "no_route", "No enabled credential route covers", path="proxy/example.com"),
    "an unknown alias": Refused(403, "unknown_alias", "No such alias; use a configured one", path="nothing"),
    "a bad token": Refused(401, "bad_token", "A valid agent token is required", token="nonsense"),
    "a host that is an address": Refused(400, "malformed_target", "host", path="proxy/10.0.0.1"),
    "a body too large": Refused(
        413, "body_too_large", "larger than the proxy accepts", text="a" * 2**23, injected="body"
    ),
    "an upstream nobody vouches for": Refused(502, "upstream_failed", "could not be reached", path="self-signed"),
    "an upstream that says nothing": Refused(504, "upstream_timeout", "did not respond in time", path="mute"),
}


@pytest.fixture(params=REFUSED)
def refusal_case(request: pytest.FixtureRequest, keyless: Keyless, impatient: Proxy) -> Refused:
    """A way to be refused, with the route that it needs and the token that it takes."""
    found = REFUSED[request.param]
    server = found.path if found.path in keyless.upstream.ports else "main"
    keyless.route(server, injectAs=found.injected, injectKey="model" if found.injected == "body" else "Authorization")
    proxy = impatient if server == "mute" else keyless.proxy
    return msgspec.structs.replace(found, path=f"{proxy.url}/{found.path}", token=found.token or keyless.token)


def test_openai_prints_the_sentence_of_a_refusal(refusal_case: Refused) -> None:
    with (
        openai.OpenAI(base_url=f"{refusal_case.path}/v1", api_key=refusal_case.token, max_retries=0) as client,
        pytest.raises(openai.APIStatusError) as raised,
    ):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": refusal_case.text}])

    assert str(raised.value).startswith(f"Error code: {refusal_case.status} - ")
    assert refusal_case.sentence in str(raised.value)
    assert (raised.value.code, raised.value.type[-6:]) == (refusal_case.code, "_error")


def test_anthropic_prints_the_sentence_of_a_refusal(refusal_case: Refused) -> None:
    with (
        anthropic.Anthropic(base_url=refusal_case.path, auth_token=refusal_case.token, max_retries=0) as client,
        pytest.raises(anthropic.APIStatusError) as raised,
    ):
        client.messages.create(model="m", max_tokens=10, messages=[{"role": "user", "content": refusal_case.text}])

    assert str(raised.value).startswith(f"Error code: {refusal_case.status} - ")
    assert refusal_case.sentence in str(raised.value)
    assert raised.value.body["error"]["code"] == refusal_case.code


def test_a_client_behind_https_proxy_prints_the_sentence_too(keyless: Keyless, monkeypatch: pytest.MonkeyPatch) -> None:
    # The host has a route, so the tunnel is opened, but the path has none.
    keyless.route(pathPattern="/other")
    monkeypatch.setenv("HTTPS_PROXY", keyless.proxy_url())
    monkeypatch.setenv("SSL_CERT_FILE", str(keyless.proxied.proxy_ca))
    url = f"https://localhost:{keyless.upstream.port}/v1"
    with openai.OpenAI(base_url=url, api_key="placeholder") as client, pytest.raises(openai.APIStatusError) as raised:
        client.chat.completions.create(model="m", messages=MESSAGES)

    assert "403 - No enabled credential route covers" in str(raised.value)


def test_anthropic(messaging: anthropic.Anthropic, keyless: Keyless) -> None:
    answer = messaging.messages.create(model="m", max_tokens=10, messages=MESSAGES)

    assert answer.content[0].text == WORDS
    assert keyless.upstream.requests()[0].all("x-api-key") == [keyless.value]
    assert keyless.token.encode() not in keyless.upstream.raw()


def test_anthropic_streamed(messaging: anthropic.Anthropic) -> None:
    with messaging.messages.stream(model="m", max_tokens=10, messages=MESSAGES) as stream:
        said = list(stream.text_stream)

    assert said == ["one ", "two ", "three "]


def test_openai_through_https_proxy(with_route: Keyless, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", with_route.proxy_url())
    monkeypatch.setenv("SSL_CERT_FILE", str(with_route.proxied.proxy_ca))
    with (
        openai.OpenAI(base_url=f"https://localhost:{with_route.upstream.port}/v1", api_key="placeholder") as client,
        client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as chunks,
    ):
        assert len(list(chunks)) == 3

    assert with_route.upstream.requests()[0].all("authorization") == [f"Bearer {with_route.value}"]


def test_requests_through_https_proxy(with_route: Keyless, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", with_route.proxy_url())
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(with_route.proxied.proxy_ca))
    with requests.Session() as session:
        answers = [
            session.post(f"https://localhost:{with_route.upstream.port}/count", data=b"a" * n) for n in (1, 100_000)
        ]

    assert [answer.json()["size"] for answer in answers] == [1, 100_000]
    assert with_route.upstream.connections() == 1


def ran(program: str, *arguments: str, **environment: str) -> str:
    """Run a program of the system in exactly this environment, and return what it printed."""
    found = shutil.which(program)
    assert found, f"{program} is not installed; scripts/set-up says what is needed"
    done = subprocess.run(
        [found, *arguments],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_curl_through_https_proxy(with_route: Keyless) -> None:
    environment = {"HTTPS_PROXY": with_route.proxy_url(), "CURL_CA_BUNDLE": str(with_route.proxied.proxy_ca)}

    said = ran(
        "curl", "-sS", "--fail", "-d", "abc", f"https://localhost:{with_route.upstream.port}/count", **environment
    )

    assert '"size":3' in said
    assert with_route.upstream.requests()[0].all("authorization") == [f"Bearer {with_route.value}"]


def test_curl_through_http_proxy_goes_out_as_https(with_route: Keyless) -> None:
    said = ran(
        "curl",
        "-sS",
        "--fail",
        f"http://localhost:{with_route.upstream.port}/echo?a=b",
        http_proxy=with_route.proxy_url(),
    )

    assert '"target":"/echo?a=b"' in said


NODE = """
const [base, token] = process.argv.slice(1);
const headers = {authorization: `Bearer ${token}`, 'content-type': 'application/json'};
const body = JSON.stringify({model: 'm', stream: true, messages: [{role: 'user', content: 'one two three'}]});
const answer = await fetch(`${base}/v1/chat/completions`, {method: 'POST', headers, body});
let text = '';
for await (const chunk of answer.body) text += Buffer.from(chunk).toString();
const again = await fetch(`${base}/echo`, {headers});
console.log(JSON.stringify([answer.status, text.split('\\n\\n').length, again.status]));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_fetch_of_node(with_route: Keyless) -> None:
    said = ran("node", "--input-type=module", "-e", NODE, f"{with_route.proxy.url}/up", with_route.token)

    assert said.strip() == "[200,5,200]"
    assert {one.all("authorization")[0] for one in with_route.upstream.requests()} == {f"Bearer {with_route.value}"}


def test_urllib_through_https_proxy(with_route: Keyless) -> None:
    script = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
    environment = {"https_proxy": with_route.proxy_url(), "SSL_CERT_FILE": str(with_route.proxied.proxy_ca)}

    said = ran(sys.executable, "-c", script, f"https://localhost:{with_route.upstream.port}/echo", **environment)

    assert '"target":"/echo"' in said

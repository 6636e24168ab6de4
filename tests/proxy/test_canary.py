"""After a busy run neither a credential nor a token is in any log, any table, any answer, or any process' listing."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from websockets.sync.client import connect

from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import PATIENCE_SECONDS
from tests.fixtures.proxied import Keyless, Proxied, Proxy, new_keyless
from tests.outside.upstream_answers import spell
from tests.promises.searched import any_form, everything

GATEWAY = (
    "/echo",
    "/reflect",
    "/reflect?where=header",
    "/reflect?form=base64&piece=1",
    "/reflect?form=url",
    "/cookies",
    "/trailers",
    "/coded",
    "/coded?codings=br,zstd,deflate",
    "/close",
    "/reset",
    "/garbage",
    "/redirect?to=/x",
    "/stall?after=body",
    "/v1/../x",
)


class Run(msgspec.Struct):
    """A run, and all that an agent's side saw of it."""

    proxied: Proxied
    secrets: dict[str, bytes]
    seen: bytes


@pytest.fixture(scope="module")
def busy(proxy_world: Proxied, impatient: Proxy) -> Iterator[Run]:
    """A run in which much goes right and wrong, with three ways of injecting."""
    value = f"canary-{uuid.uuid4().hex}"
    with new_keyless(proxy_world, value) as keyless:
        keyless.route()
        keyless.route("self-signed")
        keyless.route(pathPattern="/query/*", injectAs="query", injectKey="key", injectFormat="{value}", priority=1)
        keyless.route(pathPattern="/body/*", injectAs="body", injectKey="key", priority=1)
        seen = b"".join([*_ask(keyless, impatient), *_collect(keyless)])
        proxy_world.kill("proxy")
        proxy_world.start("proxy")
        seen += keyless.gateway().get("/reflect").content
        yield Run(proxy_world, {"credential": value.encode(), "token": keyless.token.encode()}, seen)


def _ask(keyless: Keyless, impatient: Proxy) -> Iterator[bytes]:
    """Answers, heads included, byte by byte."""
    heads = [keyless.head(f"/up{path}") for path in GATEWAY]
    heads += [
        keyless.head(path) for path in ("/self-signed/echo", "/query/echo?a=b", "/up/query/echo?a=b", "/nothing/x")
    ]
    heads.append(keyless.head("/up/body/echo", "POST", "Content-Type: application/json", "Content-Length: 2") + b"{}")
    heads.append(keyless.head("/up/body/echo", "POST", "Content-Type: text/plain", "Content-Length: 2") + b"{}")
    heads.append(keyless.head(f"/up/echo?token={keyless.token}", "GET", f"X-Api-Key: {keyless.token}"))
    heads.append(b"GET /up/echo HTTP/1.1\r\nAuthorization: Bearer %s\r\n folded\r\n\r\n" % keyless.token.encode())
    heads.append(
        b"GET http://localhost/ HTTP/1.1\r\nHost: a\r\nProxy-Authorization: Bearer %s\r\n\r\n" % keyless.token.encode()
    )
    for head in heads:
        with impatient.connect() as wire:
            wire.say(head).hear()
            yield bytes(wire.heard)


def _collect(keyless: Keyless) -> Iterator[bytes]:
    """Collect what real clients saw."""
    forward = keyless.forward()
    yield forward.get("/reflect?piece=2").content
    yield forward.post("/echo", json={}).content
    address = f"{keyless.proxy.url.replace('http', 'ws')}/up/ws?say=1"
    with connect(
        address,
        additional_headers={"Authorization": f"Bearer {keyless.token}"},
        proxy=None,
        open_timeout=PATIENCE_SECONDS,
    ) as socket:
        yield str(socket.recv(PATIENCE_SECONDS)).encode()


def test_the_agents_side_never_saw_the_credential(busy: Run) -> None:
    value = busy.secrets["credential"].decode()

    assert busy.seen.count(b"****") > 5
    assert [
        form
        for form in ("raw", "base64", "base64url", "url", "json", "hex")
        if spell(value, form).encode() in busy.seen
    ] == []


def test_nothing_is_in_a_log(busy: Run) -> None:
    said = busy.proxied.logs().encode()

    assert b"TLS with an upstream failed" in said
    assert [name for name, secret in busy.secrets.items() if any_form(secret, said)] == []


async def test_nothing_is_in_a_table(busy: Run) -> None:
    async with owner_of(busy.proxied.database) as owner:
        rows = b"\n".join(await everything(owner))

    assert b"proxy.request" in rows
    assert [name for name, secret in busy.secrets.items() if any_form(secret, rows)] == []


def test_nothing_is_in_a_command_line_or_environment(busy: Run) -> None:
    for process in busy.proxied.processes.values():
        shown = Path(f"/proc/{process.pid}/cmdline").read_bytes() + Path(f"/proc/{process.pid}/environ").read_bytes()

        assert [name for name, secret in busy.secrets.items() if any_form(secret, shown)] == []


def test_nothing_is_in_the_figures(busy: Run) -> None:
    assert [
        name for name, secret in busy.secrets.items() if any_form(secret, str(busy.proxied.proxy.metrics()).encode())
    ] == []


def test_the_token_never_reached_the_upstream(busy: Run) -> None:
    log = (busy.proxied.upstream.ca_file.parent / "log").read_bytes()

    assert busy.secrets["credential"] in log
    assert busy.secrets["token"] not in log.replace(b"/echo?token=" + busy.secrets["token"], b"")

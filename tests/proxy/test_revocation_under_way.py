"""Requests under way end about two seconds after their agent may no longer ask."""

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack

from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless, Proxied, new_keyless
from tests.fixtures.wire import Wire
from tests.proxy.changes import ENDINGS
from tests.proxy.written import rows

# Two, and what a busy machine may add.
SECONDS = 3.0
HELLO, ECHOED = b"\x81\x82\0\0\0\0hi", b"\x81\x02hi"


def upload(keyless: Keyless) -> Wire:
    """A request whose body is still to come."""
    wire = keyless.proxy.connect()
    return wire.say(keyless.head("/up/count", "POST", "Transfer-Encoding: chunked"), b"4\r\nhalf\r\n")


def answer(keyless: Keyless) -> Wire:
    """An answer of which the rest is still to come."""
    return keyless.proxy.connect().say(keyless.head(f"/up/sse?n=2&gate={keyless.tenant.id}"))


def tunnel(keyless: Keyless) -> Wire:
    """A tunnel in which nothing was asked for yet."""
    wire, where = keyless.proxy.connect(), f"localhost:{keyless.upstream.port}"
    head = f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\nProxy-Authorization: Bearer {keyless.token}\r\n\r\n"
    assert wire.say(head.encode()).hear(head_only=True).status == 200
    return wire.into_tunnel(keyless.proxied.trust(), "localhost")


def tunnelled_answer(keyless: Keyless) -> Wire:
    """The same inside a tunnel."""
    wire = tunnel(keyless)
    return wire.say(f"GET /sse?n=2&gate={keyless.tenant.id} HTTP/1.1\r\nHost: a\r\n\r\n".encode())


def websocket(keyless: Keyless) -> Wire:
    """An open websocket."""
    wire = keyless.proxy.connect()
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    wire.say(keyless.head("/up/ws", "GET", "Connection: Upgrade", "Upgrade: websocket", key))
    assert wire.hear(head_only=True).status == 101
    assert wire.say(HELLO).hear_bytes(len(ECHOED)) == ECHOED
    return wire


KINDS: tuple[Callable[[Keyless], Wire], ...] = (upload, answer, tunnelled_answer, websocket)


class UnderWay:
    """One of each kind for one agent."""

    def __init__(self, stack: ExitStack, proxied: Proxied, lives: str | None = None) -> None:
        self.keyless = keyless = stack.enter_context(new_keyless(proxied))
        if lives is not None:
            minted = keyless.tenant.ok("POST", f"/agents/{keyless.agent.id}/token", {"expiresIn": lives})
            keyless.token = minted["token"]
        self.route = self.keyless.route()
        self.wires = {kind.__name__: stack.enter_context(kind(self.keyless)) for kind in KINDS}

    def wait_for_ends(self, until: float) -> dict[str, bool]:
        """Tell what ended whole; raise TimeoutError when one has not ended until then."""
        whole = {}
        for name, wire in self.wires.items():
            wire.socket.settimeout(max(until - time.monotonic(), 0.05))
            if name == "websocket":
                whole[name] = not wire.closed
            else:
                found = wire.hear()
                whole[name] = found is not None and found.whole
        return whole

    def goes_on(self) -> bool:
        """Tell whether each comes to its proper end."""
        for _ in ("answer", "tunnelled_answer"):
            self.keyless.upstream.release(self.keyless.tenant.id)
        self.wires["upload"].say(b"4\r\nmore\r\n0\r\n\r\n")
        whole = [self.wires[name].hear().whole for name in ("upload", "answer", "tunnelled_answer")]
        return all(whole) and self.wires["websocket"].say(HELLO).hear_bytes(len(ECHOED)) == ECHOED


def test_a_running_request_ends_when_its_permission_ends(proxy_world: Proxied, is_told: bool) -> None:
    proxy_world.faults()
    proxy_world.upstream.forget()
    with ExitStack() as stack:
        agents = {name: UnderWay(stack, proxy_world) for name in ENDINGS}
        stranger = UnderWay(stack, proxy_world)
        eventually(proxy_world.upstream.requests, lambda heard: len(heard) == len(KINDS) * (len(ENDINGS) + 1))

        until = {}
        for name, (change, _, _) in ENDINGS.items():
            change(agents[name].keyless, agents[name].route)
            until[name] = time.monotonic() + SECONDS
        left = {name: agents[name].wait_for_ends(until[name]) for name in ENDINGS}

        assert left == {name: {kind.__name__: False for kind in KINDS} for name in ENDINGS}
        assert proxy_world.upstream.lines("body") == []
        assert stranger.goes_on()
        for name, (_, _, code) in ENDINGS.items():
            metadata = [row["metadata"] for row in asyncio.run(rows(agents[name].keyless, len(KINDS) + 1))]
            assert [one["refused"] for one in metadata if one["form"] != "connect"] == [code] * len(KINDS)
    assert proxy_world.faults() == []


def test_a_running_request_ends_with_its_token(proxy_world: Proxied) -> None:
    proxy_world.faults()
    proxy_world.upstream.forget()
    with ExitStack() as stack:
        agent = UnderWay(stack, proxy_world, "3s")
        idle = stack.enter_context(tunnel(agent.keyless))
        stranger = UnderWay(stack, proxy_world)
        eventually(proxy_world.upstream.requests, lambda heard: len(heard) == 2 * len(KINDS))

        until = time.monotonic() + 3 + SECONDS
        assert agent.wait_for_ends(until) == {kind.__name__: False for kind in KINDS}
        assert idle.closed
        assert proxy_world.upstream.lines("body") == []
        assert stranger.goes_on()
        metadata = [row["metadata"] for row in asyncio.run(rows(agent.keyless, len(KINDS) + 2))]
        assert [one["refused"] for one in metadata if one["form"] != "connect"] == ["bad_token"] * len(KINDS)
    assert proxy_world.faults() == []

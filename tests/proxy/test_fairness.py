"""Agents that make much work of few bytes keep nobody else waiting: another's requests are answered meanwhile.

No time is looked at: what an attacker sends is much, and the others must be answered before it is done.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from proxy_addon.fragmentation import MAX_FRAGMENTS
from tests.fixtures.proxied import Keyless, Proxied, new_keyless
from tests.fixtures.wire import Wire
from tests.proxy.envelope import refusal

# In chunks or frames of a byte, less than what is refused.
PIECES = MAX_FRAGMENTS - 1_000
CONNECTIONS, REQUESTS = 16, 10
CRUMB = b"1\r\na\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
SWITCHED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: ACCEPT\r\n\r\n"
)
UPGRADE = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
TEXT, PING, CLOSE = b"\x81\x01a", b"\x89\x00", b"\x88\x00"


@pytest.fixture
def attacker(proxy_world: Proxied) -> Iterator[Keyless]:
    """An agent of another tenant, whose secret has about as many forms as one can have."""
    with new_keyless(proxy_world, "sk 'quo\"ted&<b>/blank+=" + "k9" * 12) as made:
        made.route()
        yield made


def upload(attacker: Keyless) -> bytes:
    return attacker.head("/up/pieces", "POST", "Transfer-Encoding: chunked") + CRUMB * PIECES + b"0\r\n\r\n"


def download(attacker: Keyless) -> bytes:
    return attacker.pour(CHUNKED, CRUMB, b"0\r\n\r\n", times=PIECES)


def messages(attacker: Keyless) -> bytes:
    return attacker.pour(SWITCHED, TEXT, CLOSE, *UPGRADE, times=PIECES)


def pings(attacker: Keyless) -> bytes:
    return attacker.pour(SWITCHED, PING, CLOSE, *UPGRADE, times=PIECES)


@pytest.mark.parametrize("attack", [upload, download, messages, pings])
def test_others_are_answered_while_an_agent_sends_or_has_sent_crumbs(
    with_route: Keyless, attacker: Keyless, attack: Callable[[Keyless], bytes]
) -> None:
    client = with_route.gateway()
    assert client.get("/echo").status_code == 200
    with ExitStack() as stack:
        wires = [stack.enter_context(attacker.proxy.connect()) for _ in range(CONNECTIONS)]
        said = attack(attacker)
        for wire in wires:
            wire.say(said)

        answers = [client.get("/echo").status_code for _ in range(REQUESTS)]
        done = sum(_is_done(wire) for wire in wires)

    assert answers == [200] * REQUESTS
    # Without turns nearly all are.
    assert done < CONNECTIONS // 2


def _is_done(wire: Wire) -> bool:
    """Tell whether everything has come by now."""
    wire.socket.setblocking(False)
    heard = bytearray()
    try:
        while data := wire.socket.recv(2**20):
            heard += data
    except BlockingIOError:
        pass
    return heard.endswith((b"0\r\n\r\n", CLOSE, b"}"))


def test_an_upload_of_too_many_crumbs_is_refused(with_route: Keyless) -> None:
    with with_route.proxy.connect() as wire:
        wire.say(with_route.head("/up/count", "POST", "Transfer-Encoding: chunked"), CRUMB * (MAX_FRAGMENTS + 1))

        assert refusal(wire.hear()) == (400, "too_fragmented")


@pytest.mark.parametrize("name", ["download", "messages", "pings"])
def test_an_answer_of_too_many_crumbs_is_cut(with_route: Keyless, name: str) -> None:
    head, block, headers = {
        "download": (CHUNKED, CRUMB, ()),
        "messages": (SWITCHED, TEXT, UPGRADE),
        "pings": (SWITCHED, PING, UPGRADE),
    }[name]
    with with_route.proxy.connect() as wire:
        heard = wire.say(with_route.pour(head, block, b"", *headers)).hear_all()

    assert len(heard) < MAX_FRAGMENTS * len(block) + 1_000

"""An upstream answers an upload from its head alone and closes: the agent hears it, as it would without the proxy."""

import contextlib
import uuid
from collections.abc import Iterator

import httpx
import pytest

from tests.fixtures.proxied import Keyless
from tests.outside.loopback import HELD_BYTES

TIMES = 6
MIB = 2**20


def pieces(size: int) -> Iterator[bytes]:
    for _ in range(size // 65536):
        yield bytes(65536)


def clients(keyless: Keyless) -> dict[str, httpx.Client]:
    return {"gateway": keyless.gateway(), "tunnel": keyless.forward()}


@pytest.mark.parametrize("size", [1, 5, 13])
@pytest.mark.parametrize("framing", ["length", "chunks"])
@pytest.mark.parametrize("form", ["gateway", "tunnel"])
def test_a_refusal_of_an_upload_arrives_each_time(with_route: Keyless, form: str, framing: str, size: int) -> None:
    heard = []
    for _ in range(TIMES):
        client = clients(with_route)[form]
        body = pieces(size * MIB) if framing == "chunks" else bytes(size * MIB)
        answer = client.post("/too-large", content=body)
        heard.append((answer.status_code, answer.text))

    assert heard == [(413, "13 bytes long")] * TIMES


def test_a_body_that_is_held_hears_its_refusal_too(keyless: Keyless) -> None:
    keyless.route(injectAs="body", injectKey="key", injectFormat="{value}")
    for _ in range(TIMES):
        answer = keyless.gateway().post("/too-large", json={"text": "a" * 900_000})
        assert (answer.status_code, answer.text) == (413, "13 bytes long")


def test_a_compressed_answer_does_not_wait_for_an_upload_that_nobody_takes(with_route: Keyless) -> None:
    gate, zeros = uuid.uuid4().hex, 900_000
    with with_route.proxy.connect() as wire:
        wire.say(with_route.head(f"/up/coded?zeros={zeros}&gate={gate}", "POST", f"Content-Length: {4 * HELD_BYTES}"))
        wire.socket.settimeout(1)
        with contextlib.suppress(TimeoutError):
            while True:
                wire.socket.send(bytes(65536))
        wire.socket.settimeout(20)
        with_route.upstream.release(gate)
        heard = wire.hear_bytes(zeros)
        with_route.upstream.release(gate)

    assert heard.startswith(b"HTTP/1.1 200 ")
    assert len(heard) == zeros

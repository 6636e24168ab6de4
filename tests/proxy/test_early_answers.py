"""An upstream answers an upload from its head alone and closes: the agent hears it, as it would without the proxy."""

from collections.abc import Iterator

import httpx
import pytest

from tests.fixtures.proxied import Keyless

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
def test_a_refusal_of_an_upload_arrives_each_time(routed: Keyless, form: str, framing: str, size: int) -> None:
    heard = []
    for _ in range(TIMES):
        client = clients(routed)[form]
        body = pieces(size * MIB) if framing == "chunks" else bytes(size * MIB)
        answer = client.post("/too-large", content=body)
        heard.append((answer.status_code, answer.text))

    assert heard == [(413, "13 bytes long")] * TIMES


def test_a_body_that_is_held_hears_its_refusal_too(keyless: Keyless) -> None:
    keyless.route(injectAs="body", injectKey="key", injectFormat="{value}")
    for _ in range(TIMES):
        answer = keyless.gateway().post("/too-large", json={"text": "a" * 900_000})
        assert (answer.status_code, answer.text) == (413, "13 bytes long")

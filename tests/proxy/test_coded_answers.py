"""Answers that are compressed although nobody asked for it: decoded, masked and sent on plain, head and all."""

import msgspec
import pytest

from tests.fixtures.eventually import eventually
from tests.fixtures.proxied import Keyless

CODINGS = ["gzip", "x-gzip", "deflate", "br", "zstd", "gzip,br", "deflate,zstd,gzip"]
FRAMES = ["length", "chunks", "close"]


def stars_of(keyless: Keyless) -> bytes:
    return b"before <" + b"*" * len(keyless.value) + b"> after"


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("codings", CODINGS)
def test_a_compressed_answer_arrives_plain_and_masked(with_route: Keyless, codings: str, frame: str) -> None:
    for client in (with_route.gateway(), with_route.forward()):
        answer = client.get(f"/coded?codings={codings}&frame={frame}&piece=7", headers={"Accept-Encoding": "gzip"})

        assert (answer.status_code, answer.content) == (200, stars_of(with_route))
        gone = ("content-encoding", "content-length", "content-md5")
        assert [answer.headers.get(name) for name in gone] == [None] * 3
        kept = {name: answer.headers[name] for name in ("etag", "vary", "x-own", "content-type")}
        assert kept == {"etag": 'W/"whole"', "vary": "Accept-Encoding", "x-own": "kept", "content-type": "text/plain"}
        # The connection goes on, and so does the next answer on it.
        assert client.get("/echo").status_code == 200


@pytest.mark.parametrize("frame", FRAMES)
def test_a_client_that_knows_no_chunks_gets_it_too(with_route: Keyless, frame: str) -> None:
    with with_route.proxy.connect() as wire:
        head = with_route.head(f"/up/coded?frame={frame}").replace(b"HTTP/1.1", b"HTTP/1.0")
        answer = wire.say(head).hear()

    assert (answer.status, answer.body) == (200, stars_of(with_route))
    assert (answer.all("transfer-encoding"), answer.all("content-encoding")) == ([], [])


def test_a_coding_of_the_transfer_is_undone_and_changes_no_etag(with_route: Keyless) -> None:
    answer = with_route.gateway().get("/coded-transfer")

    assert (answer.status_code, answer.content) == (200, stars_of(with_route))
    assert (answer.headers["transfer-encoding"], answer.headers["etag"]) == ("chunked", '"whole"')


def test_a_long_answer_is_decoded_as_it_comes(with_route: Keyless) -> None:
    answer = with_route.gateway().get("/coded?codings=br&zeros=900000")

    assert answer.content == stars_of(with_route) + b"0" * 900_000


@pytest.mark.parametrize("named", ["identity", "utf-8", "gzip", "zstd"])
def test_an_answer_that_is_called_compressed_and_is_plain_arrives(with_route: Keyless, named: str) -> None:
    answer = with_route.gateway().get(f"/coded?codings=none&named={named}")

    assert (answer.status_code, answer.content) == (200, stars_of(with_route))


# What no proxy could look into, by what the upstream calls it.
OPAQUE = {
    "of storage": "/coded?codings=none&named=aws-chunked",
    "unknown": "/coded?codings=none&named=rot13",
    "nested without end": "/coded?codings=gzip,gzip,gzip,gzip",
    "another alphabet": "/reflect?type=text/plain;charset%3Dutf-16",
}


@pytest.mark.parametrize(
    ("name", "status"),
    [(name, status) for name in OPAQUE for status in (200, 401, 503) if status == 200 or name != "another alphabet"],
)
def test_an_answer_that_cannot_be_decoded_loses_its_body_alone(with_route: Keyless, name: str, status: int) -> None:
    with with_route.proxy.connect() as wire:
        answer = wire.say(with_route.head(f"/up{OPAQUE[name]}&status={status}")).hear()

        assert (answer.status, answer.whole) == (status, True)
        assert answer.all("x-service-body") == ["upstream_encoded"]
        assert (answer.all("x-service-error"), len(answer.all("x-service-request-id"))) == ([], 1)
        if name != "another alphabet":
            assert (answer.all("x-own"), answer.all("etag")) == (["kept"], ['"whole"'])
        assert msgspec.json.decode(answer.body)["error"]["code"] == "upstream_encoded"
        assert (answer.all("content-type"), answer.all("content-encoding")) == (["application/json"], [])
        assert wire.say(with_route.head("/up/echo")).hear().status == 200


def test_an_upload_whose_answer_cannot_be_decoded_hears_its_status(with_route: Keyless) -> None:
    answer = with_route.gateway().post("/coded?codings=none&named=rot13&status=403", content=b"a" * 100_000)

    assert (answer.status_code, answer.headers["x-service-body"]) == (403, "upstream_encoded")


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_a_head_without_a_body_says_what_the_plain_one_would(with_route: Keyless, method: str, status: int) -> None:
    with with_route.proxy.connect() as wire:
        answer = wire.say(with_route.head(f"/up/coded?status={status}", method)).hear(head_only=True)

        assert (answer.status, answer.all("etag")) == (status, ['W/"whole"'])
        assert (answer.all("content-encoding"), answer.all("content-length")) == ([], [])
        assert wire.say(with_route.head("/up/echo")).hear().status == 200


def test_an_answer_that_ends_within_its_coding_never_looks_whole(with_route: Keyless) -> None:
    for frame in FRAMES:
        with with_route.proxy.connect() as wire:
            answer = wire.say(with_route.head(f"/up/coded?cut=30&frame={frame}")).hear()
            assert answer is None or not answer.whole
            assert wire.closed


@pytest.mark.parametrize("codings", ["gzip", "br", "zstd", "gzip,gzip"])
def test_a_bomb_is_cut_off_after_little(with_route: Keyless, codings: str) -> None:
    before = with_route.proxy.resident()
    with with_route.proxy.connect() as wire:
        answer = wire.say(with_route.head(f"/up/coded?zeros=50000000&codings={codings}")).hear()

    assert not answer.whole
    assert len(answer.body) < 20_000_000
    assert with_route.proxy.resident() - before < 30_000_000


def test_decoders_are_counted_to_their_agent_and_given_back(with_route: Keyless) -> None:
    count = 70
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Type: text/plain\r\n\r\n"
    wires = [with_route.proxy.connect() for _ in range(count)]
    for wire in wires:
        wire.say(with_route.pour(head, b"x", times=0))
    heads = [wire.hear(head_only=True) for wire in wires]
    refused = [found.all("x-service-body") for found in heads if found.all("x-service-body")]
    for wire in wires:
        wire.socket.close()

    # 256 KiB each, of 16 MiB.
    assert refused == [["too_much_held"]] * (count - 64)
    assert {found.status for found in heads} == {200}
    assert eventually(lambda: with_route.gateway().get("/coded?codings=br").content, stars_of(with_route)) == stars_of(
        with_route
    )

"""Byte ranges: no client writes a wrong file, and no part shows what the whole does not."""

import hashlib
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.fixtures.proxied import Keyless
from tests.proxy.envelope import refusal
from tests.proxy.test_real_clients import ran

SIZE, PART = 20 * 2**20, 8 * 2**20
BLOB = f"/blob?size={SIZE}"


@pytest.fixture(scope="module")
def digest() -> str:
    block = hashlib.sha256(b"blob").digest() * 1024
    return hashlib.sha256(block * (SIZE // len(block))).hexdigest()


@pytest.fixture
def forwarding(keyless: Keyless) -> Keyless:
    keyless.route(ranges=True)
    return keyless


def digest_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def curl(agent: Keyless, *arguments: str) -> subprocess.CompletedProcess[str]:
    token = f"Authorization: Bearer {agent.token}"
    command = ["curl", "-sS", "-H", token, *arguments, f"{agent.proxy.url}/up{BLOB}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def by_parts(client: httpx.Client) -> bytes:
    """As the clients of object stores do it: parts of 8 MiB, the last one open."""
    ends = [f"bytes={start}-{start + PART - 1}" for start in range(0, SIZE - PART, PART)]
    answers = [client.get(BLOB, headers={"Range": end}) for end in [*ends, f"bytes={len(ends) * PART}-"]]
    assert [answer.status_code for answer in answers] == [206, 206, 206]
    return b"".join(answer.content for answer in answers)


def test_a_download_in_parts_is_the_file(forwarding: Keyless, digest: str) -> None:
    for client in (forwarding.gateway(), forwarding.forward()):
        assert hashlib.sha256(by_parts(client)).hexdigest() == digest


def test_a_download_in_azures_parts_is_the_file(forwarding: Keyless) -> None:
    answer = forwarding.gateway().get("/blob?size=1000", headers={"x-ms-range": "bytes=100-199"})

    assert (answer.status_code, len(answer.content)) == (206, 100)
    assert answer.headers["Content-Range"] == "bytes 100-199/1000"
    assert "Content-MD5" not in answer.headers


def test_curl_resumes_a_download(forwarding: Keyless, digest: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    assert curl(forwarding, "-o", str(file)).returncode == 0
    assert digest_of(file) == digest
    file.write_bytes(file.read_bytes()[: SIZE // 3])

    assert curl(forwarding, "-C", "-", "-o", str(file)).returncode == 0
    assert digest_of(file) == digest
    # What is complete is not asked for again, and stays as it is.
    curl(forwarding, "-C", "-", "-o", str(file))
    assert digest_of(file) == digest


def test_no_client_writes_a_wrong_file_where_the_route_forwards_no_parts(
    with_route: Keyless, digest: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    assert curl(with_route, "-o", str(file)).returncode == 0
    assert digest_of(file) == digest
    half = file.read_bytes()[: SIZE // 2]
    file.write_bytes(half)

    assert curl(with_route, "-C", "-", "-o", str(file)).returncode != 0
    assert file.read_bytes() == half
    answer = with_route.gateway().get(BLOB, headers={"Range": "bytes=0-9"})
    assert refusal(answer) == (400, "range_not_forwarded")
    assert "Set `ranges` on the credential route" in answer.json()["error"]["message"]


@pytest.mark.parametrize("name", ["Range", "range", "Request-Range", "x-ms-range", "X_Range"])
def test_a_part_is_refused_and_not_offered_unless_the_route_says_so(with_route: Keyless, name: str) -> None:
    with with_route.proxy.connect() as wire:
        assert refusal(wire.say(with_route.head("/up/document", "GET", f"{name}: bytes=0-3")).hear()) == (
            400,
            "range_not_forwarded",
        )
        whole = wire.say(with_route.head("/up/document", "GET", f"{name}: bytes=0-", 'If-Range: "2"')).hear()

    assert whole.status == 200
    assert {value for key, value in whole.headers if key.lower() == "accept-ranges"} == {"none"}
    (heard,) = with_route.upstream.requests()
    assert [key for key, _ in heard.headers if "range" in key.lower()] == []


def test_every_part_is_that_part_of_the_whole_masked_document(forwarding: Keyless) -> None:
    client = forwarding.gateway()
    whole = client.get("/document")
    size = len(whole.content)
    assert b"*" * len(forwarding.value) in whole.content
    assert whole.headers["Accept-Ranges"] == "bytes"

    for length in (1, 7):
        for at in range(0, size, 1 if length == 1 else 3):
            said = {"Range": f"bytes={at}-{at + length - 1}"}
            chunked = "&chunked=1" if at % 2 else ""
            part = client.get(f"/document?x=1{chunked}", headers=said)
            assert (part.status_code, part.content) == (206, whole.content[at : at + length])
            assert part.headers["Content-Range"] == f"bytes {at}-{min(at + length, size) - 1}/{size}"
    for at in range(1, size):
        assert client.get("/document", headers={"Range": f"bytes=-{at}"}).content == whole.content[-at:]
        assert client.get("/document", headers={"Range": f"bytes={at}-"}).content == whole.content[at:]


def test_a_part_behind_the_end_is_416(forwarding: Keyless) -> None:
    answer = forwarding.gateway().get("/blob?size=100", headers={"Range": "bytes=100-"})

    assert refusal(answer) == (416, "range_not_satisfiable")
    assert answer.headers["Content-Range"] == "bytes */100"
    assert forwarding.gateway().get("/blob?size=100", headers={"Range": "bytes=9999999-"}).status_code == 416


def test_a_changed_file_is_sent_whole(forwarding: Keyless) -> None:
    client = forwarding.gateway()

    same = client.get("/blob?size=100", headers={"Range": "bytes=0-9", "If-Range": '"1"'})
    other = client.get("/blob?size=100", headers={"Range": "bytes=0-9", "If-Range": '"2"'})
    assert (same.status_code, other.status_code, len(other.content)) == (206, 200, 100)
    assert client.head("/blob?size=100", headers={"Range": "bytes=0-9"}).headers["Content-Length"] == "100"


@pytest.mark.parametrize("value", ["bytes=0-1,4-5", "items=0-1", "bytes=5-4", "bytes=0-1, 2-3"])
def test_more_or_less_than_one_range_is_refused_with_a_sentence(forwarding: Keyless, value: str) -> None:
    answer = forwarding.gateway().get("/document", headers={"Range": value})

    assert refusal(answer) == (400, "range_not_forwarded")
    assert "one range of bytes" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "query",
    [
        "says=bytes+1-{last}/{size}",
        "says=bytes+{first}-{last}/10",
        "says=items+0-1/2",
        "says=",
        "coded=gzip",
    ],
)
def test_a_part_that_was_not_asked_for_goes_nowhere(forwarding: Keyless, query: str) -> None:
    answer = forwarding.gateway().get(f"/document?{query}", headers={"Range": "bytes=0-3"})

    assert refusal(answer) == (502, "upstream_failed")


def test_curl_asks_for_a_part_through_https_proxy(forwarding: Keyless) -> None:
    environment = {"HTTPS_PROXY": forwarding.proxy_url(), "CURL_CA_BUNDLE": str(forwarding.proxied.proxy_ca)}

    said = ran("curl", "-sS", "-r", "0-3", f"https://localhost:{forwarding.upstream.port}/document", **environment)

    assert said == "Your"

"""Bytes that no client library sends: headers, text that databases choke on, numbers, and requests cut short."""

import re
import socket
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from tests.fixtures.callers import Agent, Client, Tenant, rule
from tests.fixtures.server import Service

HEADERS = (
    "User-Agent",
    "X-Service-Key",
    "X-Service-Platform-Key",
    "Authorization",
    "X-Request-Id",
    "Idempotency-Key",
    "X-Forwarded-For",
    "Content-Type",
)


def raw(service: Service, content: bytes, *, hang_up: bool = False) -> bytes:
    """Send bytes on a connection of their own; give what comes back until the server closes it."""
    address = urlsplit(service.url)
    with socket.create_connection((address.hostname, address.port), timeout=5) as connection:
        # A server that has refused does not wait for the rest; what it said is read all the same.
        try:
            connection.sendall(content)
            if hang_up:
                connection.shutdown(socket.SHUT_WR)
        except TimeoutError:
            raise
        except OSError:
            pass
        answer = b""
        try:
            while chunk := connection.recv(65536):
                answer += chunk
        except ConnectionResetError:
            pass
    return answer


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize(
    "value",
    [b"\xff\xfe", b"a\x00b", "é".encode("latin-1"), "日本".encode(), b"x" * 5000],
    ids=["binary", "nul", "latin", "utf-8", "long"],
)
def test_no_header_makes_a_fault(service: Service, tenant: Tenant, name: str, value: bytes) -> None:
    known = [(b"X-Service-Key", tenant.key.encode()), (b"Content-Type", b"application/json")]
    headers = [(one, given) for one, given in known if one.decode() != name]
    sent = b"".join(one + b": " + given + b"\r\n" for one, given in [*headers, (name.encode(), value)])

    answer = raw(
        service, b"POST /agents HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n" + sent + b"\r\n{}"
    )

    # X-Forwarded-For of a stranger is ignored, and whatever a program calls itself, it may work.
    assert re.match(rb"HTTP/1.1 4\d\d ", answer), answer[:200]


@pytest.mark.parametrize("value", [b"\xff\xfe agent", b"a\x00b", "Ünï".encode()], ids=repr)
def test_a_strange_user_agent_does_not_stop_a_good_request(service: Service, tenant: Tenant, value: bytes) -> None:
    body = b'{"id":"from-strange","name":"x"}'
    lines = [
        b"POST /agents HTTP/1.1",
        b"Host: x",
        b"X-Service-Key: " + tenant.key.encode(),
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(body),
        b"User-Agent: " + value,
        b"Connection: close",
        b"",
        body,
    ]

    answer = raw(service, b"\r\n".join(lines))

    assert answer.startswith(b"HTTP/1.1 201"), answer[:300]


@pytest.mark.parametrize(
    "content",
    [
        b"GET /health HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"POST /agents HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /agents HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n",
        b"POST /agents HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nContent-Length: 5\r\n\r\n{}",
        b"POST /agents HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /agents HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"POST /agents HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /agents?" + b"%" * 50 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://other/health HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=lambda content: repr(content[:60]),
)
def test_a_broken_request_is_refused_without_a_fault(service: Service, as_nobody: Client, content: bytes) -> None:
    answer = raw(service, content, hang_up=True)

    assert not answer.startswith(b"HTTP/1.1 5"), answer[:300]
    assert as_nobody.get("/health").status_code == 200


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"CONNECT /agents HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"GET example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\nX-Service-Key: b\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: x\nX-Service-Key: b\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: a\rb\r\n\r\n", 400),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_head_that_http_does_not_allow_is_answered_with_the_envelope(
    service: Service, content: bytes, status: int
) -> None:
    head, _, body = raw(service, content).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 %d" % status), head
    assert msgspec.json.decode(body)["ok"] is False


@pytest.mark.parametrize("text", ["a\u0000b", "\u0000", "a\nb", "a\u007fb"], ids=repr)
def test_control_characters_in_a_name_are_400(tenant: Tenant, as_platform: Client, text: str) -> None:
    answers = [
        tenant.post("/agents", json={"id": "controlled", "name": text}),
        tenant.post("/agents", json={"id": "controlled", "name": "x", "platformId": text}),
        as_platform.post("/platform/tenants", json={"id": "controlled", "name": text}),
        as_platform.post("/platform/tenants", json={"id": "controlled", "name": "x", "webhookUrl": text}),
    ]

    assert [answer.status_code for answer in answers] == [400] * 4


def test_a_lone_surrogate_in_a_text_is_400(tenant: Tenant) -> None:
    headers = {"Content-Type": "application/json"}

    answer = tenant.post("/agents", content=rb'{"id":"half","name":"\ud800"}', headers=headers)

    assert (answer.status_code, answer.json()["data"]["code"]) == (400, "malformed_json")


def test_text_of_any_language_is_kept(tenant: Tenant) -> None:
    name = "Zahlungen 日本語 🦊 \u200fعربي"

    assert tenant.ok("POST", "/agents", {"id": "worldly", "name": name})["name"] == name
    assert tenant.ok("GET", "/agents/worldly")["name"] == name


@pytest.mark.parametrize("reason", ["a\u0000b", "x" * 1001, 5])
def test_a_reason_that_cannot_be_kept_is_400_and_nothing_is_decided(tenant: Tenant, reason: Any) -> None:
    agent = tenant.agent(rule("auto-approve-threshold", threshold="0"))
    queued = agent.sign().json()["data"]

    answers = [
        tenant.post(f"/approvals/{queued['approvalId']}/deny", json={"reason": reason}),
        tenant.post(f"/vault/{agent.id}/reject/{queued['txId']}", json={"reason": reason}),
    ]

    assert [answer.status_code for answer in answers] == [400, 400]
    assert tenant.ok("GET", "/approvals")[0]["status"] == "pending"


@pytest.mark.parametrize(
    "name", ["toAddress", "txHash", "txId", "referenceId", "from", "to", "status", "chainId", "kind"]
)
@pytest.mark.parametrize("value", ["%00", "%ff", "a%0A", "%F0%9F%A6%8A", "1" * 500, "9" * 30])
def test_a_strange_filter_is_400_or_finds_nothing(agent: Agent, name: str, value: str) -> None:
    answer = agent.get(f"/vault/{agent.id}/transactions?{name}={value}")

    assert answer.status_code == 400 or (answer.status_code, answer.json()["data"]["total"]) == (200, 0), answer.text


def nest(levels: int) -> bytes:
    return b'[{"type":"rate-limit","enabled":true,"config":{"maxTxPerHour":' + b"[" * levels + b"]" * levels + b"}}]"


@pytest.mark.parametrize(
    "content",
    [
        nest(100),
        nest(900),
        nest(60_000),
        b'[{"type":"rate-limit","enabled":true,"config":{"maxTxPerHour":' + b"9" * 30 + b"}}]",
        b'[{"type":"rate-limit","enabled":true,"config":{"x":"' + b"y" * 130_000 + b'"}}]',
        b'[{"type":"rate-limit","enabled":true,"config":{"x":1e400}}]',
        b"[" + b"{}," * 40_000 + b"{}]",
    ],
    ids=["100 deep", "900 deep", "60,000 deep", "huge number", "huge text", "infinite", "many"],
)
def test_a_value_too_large_for_a_frame_is_400_at_once(tenant: Tenant, agent: Agent, content: bytes) -> None:
    started = time.monotonic()

    answer = tenant.put(f"/agents/{agent.id}/policies", content=content, headers={"Content-Type": "application/json"})

    assert answer.status_code == 400, answer.text
    # The signer would be given ten seconds.
    assert time.monotonic() - started < 8
    assert agent.sign().status_code == 200


def test_a_number_beyond_64_bits_in_typed_data_is_400_and_as_a_string_it_is_signed(agent: Agent) -> None:
    document = {
        "domain": {},
        "types": {"Big": [{"name": "n", "type": "uint256"}]},
        "primaryType": "Big",
        "value": {"n": 2**200},
    }

    refused = agent.post(f"/vault/{agent.id}/sign-typed-data", json=document)
    signed = agent.post(f"/vault/{agent.id}/sign-typed-data", json={**document, "value": {"n": str(2**200)}})

    assert (refused.status_code, refused.json()["data"]["code"]) == (400, "number_out_of_range")
    assert signed.status_code == 200


@pytest.mark.parametrize("number", ["7.0", "7e0", "70e-1"])
def test_a_whole_number_is_taken_however_it_is_written(agent: Agent, number: str) -> None:
    body = f'{{"to":"0x{"11" * 20}","value":"1","broadcast":false,"nonce":{number}}}'.encode()

    answer = agent.post(f"/vault/{agent.id}/sign", content=body, headers={"Content-Type": "application/json"})

    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("number", ["1e400", "-1", "1.5", "9" * 400, "9223372036854775808", "-0", "1e-2"])
@pytest.mark.parametrize("field", ["chainId", "nonce"])
def test_a_number_out_of_range_is_400(agent: Agent, field: str, number: str) -> None:
    body = f'{{"to":"0x{"11" * 20}","value":"1","broadcast":false,"{field}":{number}}}'.encode()

    answer = agent.post(f"/vault/{agent.id}/sign", content=body, headers={"Content-Type": "application/json"})

    if (field, number) == ("nonce", "-0"):
        assert answer.status_code == 200
    else:
        assert answer.status_code == 400, answer.text


def in_chunks(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


PUBLIC = b"POST /auth/refresh HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    "content",
    [
        PUBLIC + b"Content-Length: 1048576\r\n\r\n",
        PUBLIC + b"Content-Length: 1048576\r\nExpect: 100-continue\r\n\r\n",
        PUBLIC + b"Transfer-Encoding: chunked\r\n\r\n100000\r\n",
        PUBLIC + b"Transfer-Encoding: chunked\r\n\r\n" + in_chunks(*[b" " * 1024] * 21),
        PUBLIC + b"Transfer-Encoding: chunked\r\n\r\n" + in_chunks(*[b" "] * 1_030),
    ],
    ids=["stated", "waiting", "one chunk", "chunks", "tiny chunks"],
)
def test_a_long_body_is_refused_before_it_arrives(service: Service, content: bytes) -> None:
    """No more than this was sent, and the connection stays open: an answer can only come from what was announced."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=5) as connection:
        connection.sendall(content)
        answer = connection.recv(65536)

    assert answer.startswith(b"HTTP/1.1 413 "), answer[:100]
    assert b'"code":"body_too_large"' in answer


def test_the_body_of_a_stranger_is_not_waited_for(service: Service) -> None:
    """Its credential is looked at first, so nobody without one makes the server keep anything."""
    head = b"POST /agents HTTP/1.1\r\nHost: x\r\nX-Service-Key: nobody's\r\nContent-Length: 20000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=5) as connection:
        connection.sendall(head)

        assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")
        # It serves again once the body it announced went by.
        connection.sendall(b" " * 20_000 + b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("path", [b"/nowhere", b"/openapi.json", b"/agents"])
def test_chunks_that_nobody_reads_end_the_connection(service: Service, path: bytes) -> None:
    head = b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

    answer = raw(service, head + in_chunks(*[b" "] * 5_000))

    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in answer.lower()


def test_a_body_in_chunks_is_read(service: Service, tenant: Tenant) -> None:
    head = b"POST /agents HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    key = b"X-Service-Key: " + tenant.key.encode() + b"\r\nConnection: close\r\n\r\n"

    answer = raw(service, head + key + in_chunks(b'{"id":"in-', b'pieces","name":"x"}') + b"0\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 201 "), answer[:300]

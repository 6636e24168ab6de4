"""`custody listen`: events on a developer's machine, as a webhook would bring them."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from custody_sdk import NotGenuine, verify_webhook
from standardwebhooks import Webhook, WebhookVerificationError

from tests.fixtures.callers import Agent
from tests.fixtures.eventually import eventually, soon
from tests.fixtures.people import Person
from tests.fixtures.server import Service, free_ports
from tests.fixtures.tenant_commands import Desk
from tests.outside import odd_api
from tests.outside.hostile_receiver import HostileReceiver
from tests.outside.hostile_receiver import running_receiver as running_hostile_receiver
from tests.outside.odd_api import OddApi, streams
from tests.outside.terminal import terminal
from tests.routes.webhooks.receivers import Receiver, running_receiver
from tests.tenant_command.running import Running, running
from tests.tenant_command.test_events import OPEN, frame


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with running_receiver() as started:
        yield started


@pytest.fixture(scope="module")
def hostile() -> Iterator[HostileReceiver]:
    with running_hostile_receiver() as started:
        yield started


@pytest.fixture
async def stream() -> AsyncIterator[OddApi]:
    """A service that is a stream of events and nothing else."""
    async with odd_api.odd_api("http://127.0.0.1:9") as api:
        yield api


@pytest.fixture
def at_stream(stream: OddApi, hostile: HostileReceiver, tmp_path: Path) -> Desk:
    """Somebody with a key who listens to it, and trusts the receivers' authority."""
    made = Desk(tmp_path, stream.url)
    made.take_key("a-key-of-somebodys")
    made.environment["SSL_CERT_FILE"] = str(hostile.ca_file)
    return made


def listening(desk: Desk, url: str, *words: str) -> Any:
    """Start it, with lines for programs."""
    return running(desk, "listen", "--forward-to", url, "--json", *words)


def secret_of(command: Running) -> str:
    """The secret that it printed first."""
    secret: str = eventually(lambda: command.said, len, about=lambda: str(command)) and command.json[0]["secret"]
    return secret


def outcomes(command: Running) -> list[tuple[int | None, str | None]]:
    """The deliveries that it printed so far, by status and word."""
    return [(one["status"], one["error"]) for one in command.json[1:]]


def test_a_body_and_its_headers_are_those_of_a_real_webhook(
    owner_desk: Desk, as_owner: Person, receiver: Receiver, agent: Agent
) -> None:
    as_owner.ok("POST", "/webhooks", {"url": receiver.url("/200/real")})
    with listening(owner_desk, receiver.url("/200/local")) as command:
        secret = secret_of(command)
        agent.sign()
        [real] = eventually(lambda: receiver.at("/200/real"), len)
        [local] = eventually(lambda: receiver.at("/200/local"), len)
        [_, told] = eventually(lambda: command.json, lambda found: len(found) == 2)
        assert command.stop() == 130

    assert local.body == real.body
    assert local.headers.keys() == real.headers.keys()
    assert {name: local.headers[name] for name in ("content-type", "host", "content-length")} == {
        name: real.headers[name] for name in ("content-type", "host", "content-length")
    }
    assert Webhook(secret).verify(local.body, local.headers) == real.envelope
    assert verify_webhook(secret, local.headers, local.body) == real.envelope
    signed = hmac.new(secret.encode(), local.body, hashlib.sha256).hexdigest()
    assert local.headers["x-service-signature"] == f"sha256={signed}"
    assert told | {"number": "", "milliseconds": 0} == {
        "number": "",
        "event": "tx.signed",
        "eventId": real.envelope["id"],
        "deliveryId": local.headers["webhook-id"],
        "delivered": True,
        "status": 200,
        "error": None,
        "milliseconds": 0,
    }
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(local.body + b" ", local.headers)
    with pytest.raises(NotGenuine):
        verify_webhook("whsec_" + "A" * 43 + "=", local.headers, local.body)


def test_a_service_that_is_killed_in_between_costs_no_delivery(
    desk: Desk, receiver: Receiver, agent: Agent, service: Service
) -> None:
    with listening(desk, receiver.url("/200/killed")) as command:
        secret_of(command)
        orders = [agent.sign().json()["data"]["txId"]]
        eventually(lambda: len(receiver.at("/200/killed")), 1)
        service.kill("api")
        service.start("api")
        orders += [agent.sign().json()["data"]["txId"] for _ in range(2)]
        eventually(lambda: len(receiver.at("/200/killed")), 3, about=lambda: str(command))

    assert [one.envelope["data"]["txId"] for one in receiver.at("/200/killed")] == orders


@pytest.mark.parametrize(
    ("does", "server", "outcome"),
    [
        ("good", "good", (200, None)),
        ("closing", "good", (204, None)),
        ("status-500", "plain", (500, None)),
        ("redirect", "good", (307, None)),
        ("huge", "good", (200, None)),
        ("bomb", "good", (200, None)),
        ("drip-body", "good", (200, None)),
        ("early", "good", (None, "closed")),
        ("half", "good", (None, "closed")),
        ("garbage", "good", (None, "closed")),
        ("endless-head", "good", (None, "closed")),
        ("drip", "good", (None, "timeout")),
        ("mute", "good", (None, "timeout")),
        ("good", "self-signed", (None, "tls")),
        ("good", "wrong-name", (None, "tls")),
        ("good", "expired", (None, "tls")),
    ],
)
async def test_a_receiver_has_ten_seconds_and_the_next_event_comes_all_the_same(
    at_stream: Desk, stream: OddApi, hostile: HostileReceiver, does: str, server: str, outcome: tuple[Any, Any]
) -> None:
    stream.does(streams(OPEN, frame(6), frame(7)), "/events")
    url = hostile.url(does, server=server)
    with listening(at_stream, url) as command:
        await soon(lambda: outcomes(command), [outcome] * 2)

        assert [one["delivered"] for one in command.json[1:]] == [outcome[0] in (200, 204)] * 2
        assert len(hostile.at(url)) == (0 if outcome[1] == "tls" else 2)
        assert await asyncio.to_thread(command.stop) == 130
    assert not any("Traceback" in line for line in command.complained)


async def test_a_receiver_that_is_not_there_is_told_as_no_connection(at_stream: Desk, stream: OddApi) -> None:
    [nobodys] = free_ports(1)
    stream.does(streams(OPEN, frame(6)), "/events")
    with listening(at_stream, f"http://127.0.0.1:{nobodys}/in") as command:
        await soon(lambda: outcomes(command), [(None, "connect")])


async def test_a_stop_does_not_wait_for_a_receiver_that_hangs(
    at_stream: Desk, stream: OddApi, hostile: HostileReceiver
) -> None:
    stream.does(streams(OPEN, frame(6)), "/events")
    url = hostile.url("mute")
    with listening(at_stream, url) as command:
        await soon(lambda: len(hostile.at(url)), 1)
        assert await asyncio.to_thread(command.stop) == 130
    assert len(command.said) == 1
    assert not any("Traceback" in line for line in command.complained)


async def test_only_the_events_that_are_named_are_sent(at_stream: Desk, stream: OddApi, receiver: Receiver) -> None:
    stream.does(streams(OPEN, frame(6, "tx.failed"), frame(7), frame(8, "tx.pending")), "/events")
    url = receiver.url("/200/named")
    with listening(at_stream, url, "--events", "tx.failed,tx.pending") as command:
        await soon(lambda: len(outcomes(command)), 2)
    assert [one.envelope["event"] for one in receiver.at("/200/named")] == ["tx.failed", "tx.pending"]


async def test_data_that_is_no_event_is_not_sent_on(at_stream: Desk, stream: OddApi, receiver: Receiver) -> None:
    bad = [b"{", b"[1]", b'{"id": 1, "event": "tx.signed"}', b"\xff", b"[" * 50_000]
    frames = [b"id: 6\nevent: tx.signed\ndata: " + one + b"\n\n" for one in bad]
    stream.does(streams(OPEN, *frames, frame(7)), "/events")
    with listening(at_stream, receiver.url("/200/garbage")) as command:
        await soon(lambda: outcomes(command), [(200, None)])
    assert [one.envelope["id"] for one in receiver.at("/200/garbage")] == ["e7"]
    assert sum("is none that can be read" in line for line in command.complained) == len(bad)


async def test_each_start_draws_its_own_secret(at_stream: Desk, stream: OddApi, receiver: Receiver) -> None:
    stream.does(streams(OPEN), "/events")
    drawn = []
    for _ in range(2):
        with listening(at_stream, receiver.url()) as command:
            await soon(lambda started=command: len(started.said), 1)
        drawn.append(command.json[0]["secret"])
    assert drawn[0] != drawn[1]


async def test_any_certificate_is_taken_of_this_machine_where_it_is_said(
    at_stream: Desk, stream: OddApi, hostile: HostileReceiver
) -> None:
    stream.does(streams(OPEN, frame(6)), "/events")
    with listening(at_stream, hostile.url("good", server="self-signed"), "--skip-verify") as command:
        await soon(lambda: outcomes(command), [(200, None)])


async def test_another_machine_gets_events_only_where_it_is_confirmed(at_stream: Desk, stream: OddApi) -> None:
    stream.does(streams(OPEN, frame(6)), "/events")
    words = ("listen", "--forward-to", "http://elsewhere.invalid/in")
    refused = await asyncio.to_thread(at_stream.run, *words)
    insecure = await asyncio.to_thread(at_stream.run, *words, "--skip-verify", "--yes")
    asked = len(stream.heard)
    with listening(at_stream, words[-1], "--yes") as command:
        await soon(lambda: outcomes(command), [(None, "connect")])

    assert (refused.status, insecure.status, asked) == (1, 2, 0)
    assert "elsewhere.invalid is not this machine" in refused.complained
    assert "--yes" in refused.complained


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("localhost:3000", "begins with http:// or https://"),
        ("ftp://localhost/", "begins with http:// or https://"),
        ("http:///in", "begins with http:// or https://"),
        ("http://localhost:99999/", "begins with http:// or https://"),
        ("http://[::1/", "begins with http:// or https://"),
        ("http://localhost/a b", "begins with http:// or https://"),
        (f"http://localhost/{'x' * 2048}", "begins with http:// or https://"),
        ("http://me:secret@localhost/", "no user, password or fragment"),
        ("http://localhost/#in", "no user, password or fragment"),
    ],
)
def test_an_address_that_is_none_of_a_webhook_is_refused(tmp_path: Path, url: str, complaint: str) -> None:
    ended = Desk(tmp_path, "http://127.0.0.1:9").run("listen", "--forward-to", url)

    assert (ended.status, ended.said) == (2, "")
    assert complaint in " ".join(ended.complained.split())


async def test_a_terminal_shows_each_delivery_in_columns(
    at_stream: Desk, stream: OddApi, receiver: Receiver, tmp_path: Path
) -> None:
    stream.does(streams(OPEN, frame(6), frame(7, "tx.pending")), "/events")

    def look() -> None:
        words = at_stream.command("listen", "--forward-to", receiver.url("/500/shown"))
        with terminal(list(words), tmp_path, at_stream.environment) as window:
            window.sees(f"Events go to {receiver.url('/500/shown')}, signed with whsec_")
            window.sees("tx.signed", "tx.pending", "buyer", "500")
            window.press("C-c")
            assert window.wait_for_end() == 130

    await asyncio.to_thread(look)

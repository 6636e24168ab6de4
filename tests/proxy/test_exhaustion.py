"""Greedy callers leave the others what they need: hellos, connections, names, bodies, a database that hangs."""

import asyncio
import contextlib
import itertools
import resource
import select
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from custody.kit import db
from custody.kit.fair_slots import FairSlots
from custody.kit.jwt import AgentClaims
from custody.kit.outside import Fetcher, Outside
from custody.kit.resolver import system_lookup
from custody.protocol.client import SignerClient
from proxy_addon import settings
from proxy_addon.addon import Addon
from proxy_addon.admission import Admission
from proxy_addon.audit import QUEUE, AuditTrail
from proxy_addon.charging import Charges
from proxy_addon.crowd import CROWDED, MAX_CONNECTIONS, MAX_PEERS_OF_AGENT, Crowd
from proxy_addon.dial import Dialler
from proxy_addon.exchange import Exchange, Limits, Ticket
from proxy_addon.keys import Keys
from proxy_addon.lookup_cache import STALE_SECONDS, LookupCache
from proxy_addon.minted import Minter
from proxy_addon.mitm.handler import HELD, ConnectionServices, Handler
from proxy_addon.mitm.tls import Certificates
from proxy_addon.payment import Payer
from tests.fixtures.callers import new_tenant
from tests.fixtures.deployments import owner_of
from tests.fixtures.eventually import eventually, soon
from tests.fixtures.proxied import Keyless, Proxied, Proxy, new_keyless
from tests.fixtures.wire import Wire
from tests.proxy.envelope import refusal

pytestmark = pytest.mark.long

MIB = 2**20

# ---------------------------------------------------------------- hellos


def record(size: int, content: bytes = b"") -> bytes:
    """A record of a TLS handshake."""
    return b"\x16\x03\x01" + size.to_bytes(2) + content.ljust(size, b"z")


# A hello that says that it is 16 MiB long.
ENDLESS = b"\x01\xff\xff\xff"


def tunnel(keyless: Keyless, wire: Wire) -> Wire:
    """An open tunnel to the upstream."""
    where = f"localhost:{keyless.upstream.port}"
    head = f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\nProxy-Authorization: Bearer {keyless.token}\r\n\r\n"
    assert wire.say(head.encode()).hear(head_only=True).status == 200
    return wire


@pytest.mark.parametrize("begun", [b"\x16\x09\x09", b"\x16\x03\x04\x40\x00", b"\x16GET / HTTP/1.1\r\n\r\n"])
def test_a_false_client_hello_is_cut_at_once(with_route: Keyless, begun: bytes) -> None:
    with tunnel(with_route, with_route.proxy.connect()) as wire:
        assert wire.say(begun + b"z" * 100).closed

    assert with_route.upstream.connections() == 0


def test_a_hello_of_many_records_is_cut_before_it_fills_memory(with_route: Keyless) -> None:
    before = with_route.proxy.resident()
    with tunnel(with_route, with_route.proxy.connect()) as wire:
        assert wire.say(record(2**14, ENDLESS), record(2**14)).closed
    with tunnel(with_route, with_route.proxy.connect()) as wire:
        wire.say(record(2**14, ENDLESS), *[record(2**14)] * 1000)
        assert wire.closed
        assert with_route.proxy.resident() - before < 4 * MIB


def test_a_hello_in_small_pieces_is_cut(with_route: Keyless) -> None:
    with tunnel(with_route, with_route.proxy.connect()) as wire:
        wire.say(record(4, ENDLESS))
        # All of them together are less than the hello of a browser.
        for _ in range(500):
            if select.select([wire.socket], [], [], 0.01)[0]:
                break
            wire.say(record(1))
        else:
            pytest.fail("it waits for ever")

        assert wire.closed


def test_a_hello_in_some_pieces_passes(with_route: Keyless) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = with_route.proxied.trust().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with tunnel(with_route, with_route.proxy.connect()) as wire:
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        hello = outgoing.read()
        wire.say(*[hello[at : at + 40] for at in range(0, len(hello), 40)])

        assert wire.hear_bytes(1) == b"\x16"


# ---------------------------------------------------------------- connections


def crowd(proxy: Proxy, stack: ExitStack, count: int) -> list[Wire]:
    """So many connections without a word."""
    wires: list[Wire] = []
    while len(wires) < count:
        before = proxy.metrics()["custody_proxy_connections"]
        # No more at once than the system queues: the next ones would wait a second to try again.
        some = min(100, count - len(wires))
        wires += [stack.enter_context(proxy.connect()) for _ in range(some)]
        taken = min(before + some, CROWDED)
        eventually(lambda taken=taken: proxy.metrics()["custody_proxy_connections"] >= taken)
    return wires


def test_connections_without_a_token_make_room_and_those_with_one_stay(with_route: Keyless) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * CROWDED)), hard))
    with with_route.proxied.another_proxy() as proxy, ExitStack() as stack:
        open_ = [stack.enter_context(proxy.connect()) for _ in range(2)]
        known = [open_[0].say(with_route.head("/up/echo")), tunnel(with_route, open_[1])]
        assert known[0].hear().status == 200
        strangers = crowd(proxy, stack, CROWDED + 10)

        assert [stranger.closed for stranger in strangers[:3]] == [True] * 3
        assert refusal(strangers[-1].say(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").hear()) == (401, "bad_token")
        assert known[0].say(with_route.head("/up/echo")).hear().status == 200
        assert known[1].say(b"GET /echo HTTP/1.1\r\nHost: a\r\n\r\n").hear().status == 200
        assert with_route.gateway(proxy=proxy).get("/echo").status_code == 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_idle_connections_of_four_tenants_lock_nobody_out(with_route: Keyless) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 2 * MAX_CONNECTIONS)), hard))
    with with_route.proxied.another_proxy() as proxy, ExitStack() as stack:
        early = stack.enter_context(proxy.connect())
        assert early.say(with_route.head("/up/echo")).hear().status == 200
        for _ in range(4):
            for token in tokens(with_route.proxied, stack, 4):
                head = f"GET /none/ HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
                # All at once, for what is refused often waits for its answer.
                wires = [stack.enter_context(proxy.connect()).say(head) for _ in range(MAX_PEERS_OF_AGENT)]
                assert {wire.hear(head_only=True).status for wire in wires} == {403}

        # Who had to give way is counted until its connection is over.
        eventually(lambda: proxy.metrics()["custody_proxy_connections"] <= CROWDED + 1)
        assert early.say(with_route.head("/up/echo")).hear().status == 200
        for _ in range(20):
            with proxy.connect() as wire:
                assert wire.say(with_route.head("/up/echo")).hear().status == 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def tokens(proxied: Proxied, stack: ExitStack, count: int) -> list[str]:
    """The tokens of so many agents of one new tenant."""
    tenant = stack.enter_context(new_tenant(proxied))
    return [str(tenant.agent().headers["Authorization"]).split()[1] for _ in range(count)]


# ---------------------------------------------------------------- names


class SlowNames:
    """The system's resolver, with names that it does not answer while the gate is shut."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self._real = real
        self.gate = threading.Event()

    def __call__(self, host: str, *given: Any, **more: Any) -> Any:
        """Answer as `socket.getaddrinfo` would."""
        if host.endswith(".slow.test"):
            self.gate.wait()
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return self._real(host, *given, **more)


@pytest.fixture
def slow_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowNames]:
    """Names under `slow.test` that do not resolve before the test is over."""
    names = SlowNames(socket.getaddrinfo)
    monkeypatch.setattr(socket, "getaddrinfo", names)
    yield names
    names.gate.set()


@pytest.fixture
async def listening() -> AsyncIterator[int]:
    """A port of localhost that accepts."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


def ticket(agent: str, host: str, port: int = 443, tenant: str = "tenant") -> Ticket:
    """The right of an agent to dial a host."""
    exchange = Exchange("gateway", "GET", "id", "127.0.0.1")
    exchange.claims = AgentClaims("custody", agent, tenant, "agent", "incarnation", 1, 0, 2**33, "id")
    return Ticket(exchange, host, port, private_allowed=True)


async def reaches(dialler: Dialler, agent: str, port: int) -> bool:
    """Tell whether an agent gets a connection to a host that resolves well."""
    async with asyncio.timeout(60):
        _, writer = await dialler.dial(ticket(agent, "localhost", port))
    writer.close()
    await writer.wait_closed()
    return True


async def end(tasks: list["asyncio.Future[Any]"]) -> None:
    """Cancel and wait."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_names_that_resolve_slowly_keep_only_their_own_agents_waiting(
    slow_names: SlowNames, listening: int
) -> None:
    dialler = Dialler(system_lookup, 600)
    # More than there are threads, of one agent; and more agents than the loop's own executor has threads.
    dials = [
        asyncio.ensure_future(dialler.dial(ticket(f"agent-{agent}", f"n{number}.slow.test")))
        for agent, count in enumerate([100, 4, 4, 4, 4, 4, 4, 4, 4, 4])
        for number in range(count)
    ]
    await asyncio.wait(dials, timeout=0.1)

    assert await reaches(dialler, "another", listening)
    await end(dials)


async def test_a_tenant_whose_agents_all_ask_for_slow_names_keeps_no_other_waiting(
    slow_names: SlowNames, listening: int
) -> None:
    dialler = Dialler(system_lookup, 600)
    dials = [
        asyncio.ensure_future(dialler.dial(ticket(f"agent-{agent}", f"n{number}.slow.test", tenant="hostile")))
        for agent in range(60)
        for number in range(4)
    ]
    await asyncio.wait(dials, timeout=0.1)

    assert await reaches(dialler, "another", listening)
    await end(dials)


async def test_slow_names_that_are_given_up_count_until_they_have_resolved(
    slow_names: SlowNames, listening: int
) -> None:
    dialler = Dialler(system_lookup, 600)
    for number in range(100):
        dial = asyncio.ensure_future(dialler.dial(ticket("hurried", f"n{number}.slow.test")))
        await asyncio.wait([dial], timeout=0.01)
        await end([dial])

    assert await reaches(dialler, "another", listening)


# ---------------------------------------------------------------- bodies


def test_bodies_that_never_end_do_not_fill_memory(keyless: Keyless) -> None:
    keyless.route(pathPattern="/count", injectAs="body", injectKey="key", injectFormat="{value}")
    begun = keyless.head("/up/count", "POST", "Content-Type: application/json", f"Content-Length: {MIB}")
    with keyless.proxied.another_proxy(really=True) as proxy, ExitStack() as stack:
        assert keyless.gateway(proxy=proxy).post("/count", json={"a": "b"}).status_code == 200
        before = proxy.resident()
        for _ in range(250):
            stack.enter_context(proxy.connect()).say(begun, b" " * (MIB - 1))

        # Half of what was said: some of it is held, and a little of each connection that was refused.
        assert proxy.resident() - before < 125 * MIB
        with new_keyless(keyless.proxied) as other:
            other.route(pathPattern="/count", injectAs="body", injectKey="key", injectFormat="{value}")
            assert other.gateway(proxy=proxy).post("/count", json={"a": "b"}).status_code == 200


class Parts:
    """The proxy put together in this process, so that a test can say what time it is."""

    def __init__(self, trail: AuditTrail, port: int, handlers: list[Handler], over: list[Exchange]) -> None:
        self.trail, self.port, self.handlers, self.over = trail, port, handlers, over

    def places(self) -> int:
        """Count the places for audit rows that are left; take all of them, each for another tenant."""
        return next(count for count in itertools.count() if not self.trail.promise((f"tenant-{count}", "agent")))


@pytest.fixture
async def parts(proxy_world: Proxied) -> AsyncIterator[Parts]:
    """On the deployment's database and signer, as `proxy_addon.__main__` puts them together."""
    given = settings.read(
        {
            "SERVICE_HOME": str(proxy_world.home),
            "SERVICE_DATABASE_URL_PROXY": proxy_world.database.urls["proxy"],
            "SERVICE_PROXY_ALLOW_PRIVATE_HOSTS": "localhost",
            "SERVICE_PROXY_ALIASES": f"up=localhost:{proxy_world.upstream.port}",
        }
    )
    pool = await db.open_pool(given.database_url, size=2)
    signer = SignerClient(str(given.reveal_socket), "proxy")
    keys, trail, handlers, over = Keys(signer), AuditTrail(pool), [], []
    await keys.load()
    crowd = Crowd()
    minter = Minter(Fetcher(Outside(loopback_allowed=False)))
    admission = Admission(given, keys, LookupCache(pool, signer, minter), trail, crowd, Charges(signer))
    certificates = Certificates(given.ca_file, given.ca_key_file, proxy_world.upstream.ca_file)

    def end(exchange: Exchange) -> None:
        over.append(exchange)
        trail.keep(exchange)

    desk = ConnectionServices(
        options=SimpleNamespace(tcp_timeout=0, proxy_debug=False),
        hooks=Addon(admission, certificates, Payer(signer)).hooks(),
        dialler=Dialler(system_lookup, 5),
        limits=Limits(5, 5, 5, MIB),
        ended=end,
        gone=crowd.remove,
        held=FairSlots(HELD),
        only_http2=lambda _ticket: None,
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.append(Handler(reader, writer, desk, lambda *_lane: None))
        await handlers[-1].handle_client()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield Parts(trail, server.sockets[0].getsockname()[1], handlers, over)
    server.close()
    await signer.close()
    await pool.close()


@contextlib.asynccontextmanager
async def connection(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to a port of this process."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@pytest.mark.parametrize("before", ["/up/no-content", None], ids=["an idle upstream", "no upstream"])
async def test_a_body_that_stalls_ends_with_its_time_and_gives_its_place_back(
    keyless: Keyless, parts: Parts, before: str | None
) -> None:
    keyless.route()
    keyless.route(pathPattern="/count", injectAs="body", injectKey="key", injectFormat="{value}", priority=1)
    async with connection(parts.port) as (reader, writer):
        if before is not None:
            writer.write(keyless.head(before))
            assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)).startswith(b"HTTP/1.1 204")
        writer.write(keyless.head("/up/count", "POST", "Content-Type: application/json", "Content-Length: 10") + b"{")
        (handler,) = await _all(lambda: [one for one in parts.handlers if one.exchange and one.exchange.request_bytes])
        stalled = handler.exchange

        handler.look_at_the_clock(stalled.deadline - 1)
        assert handler.exchange is stalled
        handler.look_at_the_clock(stalled.deadline + 1)

        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 60) == b""
        await soon(lambda: stalled in parts.over)

    assert (stalled.abandoned, parts.over.count(stalled)) == (True, 1)
    assert await parts.trail.flush()
    assert parts.places() == QUEUE


async def _all[T](ask: Callable[[], list[T]]) -> list[T]:
    await soon(ask)
    return ask()


# ---------------------------------------------------------------- a database that hangs


async def test_while_the_database_hangs_nothing_is_allowed_that_was_known_too_long_ago(with_route: Keyless) -> None:
    client, proxied = with_route.gateway(), with_route.proxied
    with new_keyless(proxied) as newcomer, with_route.proxy.connect() as stream:
        newcomer.route()
        stranger = newcomer.gateway()
        # Often enough for the news of the tenant's own route, which make the proxy forget, to come before the lock.
        assert {client.get("/echo").status_code for _ in range(50)} == {200}
        async with owner_of(proxied.database) as owner, owner.transaction():
            await owner.execute("LOCK TABLE agents IN ACCESS EXCLUSIVE MODE")
            # With what a look-up may take before it is given up.
            until = time.monotonic() + STALE_SECONDS + 4
            assert refusal(stranger.get("/echo")) == (503, "unavailable")
            stream.say(with_route.head(f"/up/sse?n=2&gate={with_route.tenant.id}"))
            assert stream.hear(head_only=True).status == 200
            answer = eventually(
                lambda: client.get("/echo"), lambda found: found.status_code != 200, until - time.monotonic()
            )
            assert refusal(answer) == (503, "unavailable")
            assert not stream.hear_all().endswith(b"0\r\n\r\n")

        for one in (client, stranger):
            assert eventually(lambda one=one: one.get("/echo").status_code, 200) == 200

"""The proxy's figures, beside the upstream asked directly and mitmproxy as it comes: `python -m bench.proxy [--quick]`.

Nothing here fails on time. Upstream, load, Postgres, signer and proxy share this machine, so the load average stands
beside what was measured under it.
"""

import argparse
import asyncio
import base64
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import msgspec

from bench import load, stock, streams
from bench.deployment import Deployment
from bench.load import Figures, Way
from bench.upstream import EVENTS, LARGE, PACE_SECONDS
from tests.outside.certificates import Authority
from tests.outside.processes import running

AGENT = "proxied"
HOST = load.HOST
UPLOAD = b"a" * LARGE
# Of a MB a second each.
STREAMS = 64
# One in five is for another host; our own are for other paths.
_OTHERS = """
INSERT INTO credential_routes (tenant_id, id, secret_id, fields, priority, mac, created_at)
SELECT 'bench', gen_random_uuid(), $1, json_build_object('enabled', true, 'hostPattern', CASE WHEN g % 5 > 0 THEN $2 ELSE g || '.example.com' END,
    'injectAs', 'header', 'injectFormat', '{value}', 'injectKey', 'authorization', 'method', '*', 'pathPattern', format($3, g), 'priority', 0)::text,
    0, '\\x00', now() FROM generate_series($4::integer, $5::integer) g
"""
_NO_OTHERS = "DELETE FROM credential_routes WHERE mac = '\\x00'"


class Pace(msgspec.Struct, frozen=True):
    """Seconds that each phase measures after its warm-up, and the number of requests the memory is watched over."""

    seconds: float
    warm_up: float
    requests: int
    one_shot: int


FULL = Pace(1.5, 0.4, 100_000, 5_000)
QUICK = Pace(0.8, 0.2, 1_000, 100)


class Side(msgspec.Struct, frozen=True):
    """Somebody who can be asked: by its name, at its port, in its way, with the headers it wants; and its processes."""

    name: str
    port: int
    way: Way
    headers: dict[str, str]
    pids: list[int] = []

    def request(self, path: str, method: str = "GET", body: bytes = b"") -> bytes:
        """A request to the upstream."""
        return load.request(method, path, body, **self.headers)


class Measured(msgspec.Struct, frozen=True):
    """One phase: what the clients saw, and the processor's milliseconds that a request took, whatever else it served."""

    figures: Figures
    cpu: float

    def __str__(self) -> str:
        return f"{self.figures}" + (f"   cpu {self.cpu:5.2f} ms" if self.cpu else "")

    def times(self, other: "Measured") -> str:
        """Tell how many times faster it is than another."""
        return f"{self.figures.rate / other.figures.rate:.2f}" if other.figures.rate else "?"


class Bench:
    """One run: who is asked, and for how long."""

    def __init__(self, deployment: Deployment, pace: Pace, upstreams: list[int], tokens: list[str]) -> None:
        self.deployment, self.pace = deployment, pace
        self.upstream, self.other_upstream = upstreams
        self.token, self.neighbour = tokens
        self.prefix = f"/proxy/{HOST}:{self.upstream}"

    def run(self, side: Side, request: bytes, clients: int) -> Measured:
        """One phase."""
        pace, before = self.pace, _cpu_seconds(side.pids)
        figures = load.run(
            side.port, [request], clients=clients, seconds=pace.seconds, warm_up=pace.warm_up, way=side.way
        )
        return Measured(figures, (_cpu_seconds(side.pids) - before) * 1000 / max(figures.asked, 1))

    def proxy(self) -> Side:
        """The proxy as a gateway."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return Side("proxy", self.deployment.proxy_port, load.IN_CLEAR, headers, self._pids())

    def tunnel(self, ca_file: Path, beside: Side) -> Side:
        """A proxy of which a tunnel is asked first."""
        host = f"{HOST}:{self.upstream}"
        credential = base64.b64encode(f"agent:{self.token}".encode()).decode()
        lines = [f"CONNECT {host} HTTP/1.1", f"Host: {host}", f"Proxy-Authorization: Basic {credential}", "", ""]
        return Side(beside.name, beside.port, Way(str(ca_file), "\r\n".join(lines).encode()), {}, beside.pids)

    def _pids(self) -> list[int]:
        return [process.pid for name, process in self.deployment.processes.items() if name.startswith("proxy")]


def main() -> None:
    """The proxy alone."""
    parser = argparse.ArgumentParser(prog="python -m bench.proxy", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="phases of a second: whether it works, not how fast")
    measure(QUICK if parser.parse_args().quick else FULL)


def measure(pace: Pace = FULL) -> None:
    """Measure everything, one line each."""
    say(
        f"Proxy: one worker unless said otherwise. Stock: mitmdump -q {_version()}, an addon that sets host and port, bodies streamed.\n"
        f"load: the machine's average over the last minute, this bench included; {load_average()} before it on {os.cpu_count()} processors."
    )
    with stage(pace) as (bench, direct, ca_file):
        with stock.start(bench.upstream, ca_file) as (port, pid, stock_ca):
            proxy = bench.proxy()
            plain = msgspec.structs.replace(proxy, name="stock", port=port, pids=[pid])
            bodies(bench, [direct, proxy, plain])
            events(bench, [direct, proxy, plain])
            neighbours(bench)
            own_ca = bench.deployment.home.file("proxy-ca.pem")
            tunnels(bench, [bench.tunnel(own_ca, proxy), bench.tunnel(stock_ca, plain)])
        routes(bench)
        workers(bench)
        memory(bench)


def say(text: str) -> None:
    """One line, at once."""
    print(text, flush=True)


def bodies(bench: Bench, sides: list[Side]) -> None:
    """Small answers, large answers and large requests, on few and on many connections."""
    for what, path, body in (
        ("256 B answer", "small", b""),
        ("1 MiB answer", "large", b""),
        ("1 MiB request", "upload", UPLOAD),
    ):
        for clients in (1, 16, 64):
            found = {}
            for side in sides:
                request = side.request(f"{bench.prefix}/{path}", "POST" if body else "GET", body)
                found[side.name] = bench.run(side, request, clients)
            budget = "budget 2000/s" if (what, clients) == ("256 B answer", 16) else ""
            compare(f"{what}, {clients:2}", found, budget)
            if (what, clients) == ("256 B answer", 1):
                added_at_one(found)


def compare(what: str, found: dict[str, Measured], budget: str) -> None:
    """A line for each side; beside the proxy's how it does against the others."""
    for name, measured in found.items():
        beside = []
        if name == "proxy":
            beside = [f"{measured.times(found['direct'])} of direct" if "direct" in found else ""]
            beside += [f"{measured.times(found['stock'])} of stock", budget, load_average()]
        say(f"{what:18} {name:7} {measured}   " + "   ".join(filter(None, beside)))


def added_at_one(found: dict[str, Measured]) -> None:
    """Measure what a proxy in between costs one caller."""
    ours, theirs = (found[name].figures.p50 - found["direct"].figures.p50 for name in ("proxy", "stock"))
    say(
        f"added to the p50 of one connection: {ours:.2f} ms   budget 0.9 ms   stock {theirs:.2f} ms   ratio {ours / theirs:.2f}"
    )


def events(bench: Bench, sides: list[Side]) -> None:
    """Streams of events: nothing may be held back."""
    found = {
        side.name: streams.read(
            side.port,
            side.request(f"{bench.prefix}/paced"),
            side.request(f"{bench.prefix}/events"),
            seconds=2 * bench.pace.seconds,
            way=side.way,
        )
        for side in sides
    }
    for name, stream in found.items():
        added = f"   added to each {stream.age - found['direct'].age:5.2f} ms" if name != "direct" else ""
        beside = (
            f"   first of {EVENTS * PACE_SECONDS * 1000:.0f} ms; budget: not held   {load_average()}" if added else ""
        )
        say(f"stream of {EVENTS}      {name:7} {stream}{added}{beside if name == 'proxy' else ''}")


def neighbours(bench: Bench) -> None:
    """Small calls of one agent, while another of its tenant reads many streams, of an upstream process of their own."""
    path, side = f"{bench.prefix}/small", bench.proxy()
    stranger = msgspec.structs.replace(side, headers={"Authorization": f"Bearer {bench.neighbour}"})
    alone = bench.run(side, side.request(path), 1)
    steady = stranger.request(f"/proxy/{HOST}:{bench.other_upstream}/steady")
    with streams.flowing(side.port, steady, count=STREAMS) as rate:
        beside = bench.run(side, side.request(path), 1)
        came = rate()
    times = beside.figures.p50 / alone.figures.p50 if alone.figures.p50 else 0.0
    say(
        f"beside {STREAMS} streams  proxy   {beside}   {came:.0f} MB/s came by them   "
        f"p50 {times:.2f} times that alone ({alone.figures.p50:.2f} ms); budget 2   {load_average()}"
    )


def tunnels(bench: Bench, sides: list[Side]) -> None:
    """The forward form: tunnels are opened before the clock starts, and kept."""
    for clients in (1, 16, 64):
        compare(
            f"tunnel, {clients:2}", {side.name: bench.run(side, side.request("/small"), clients) for side in sides}, ""
        )


def routes(bench: Bench) -> None:
    """Many credential routes in the tenant, and the one that matches is the last of them."""
    side = bench.proxy()
    request = side.request(f"{bench.prefix}/small")
    made = 1
    for count, pattern, what in (
        (1, "", "1 route"),
        (100, "/other/%s/*", "100 routes"),
        (10_000, "/other/%s/*", "10,000 routes"),
        (10_000, "/other/*-%s", "10,000, all globs"),
    ):
        if count == made > 1:
            asyncio.run(_other_routes(bench, _NO_OTHERS))
            made = 1
        if count > made:
            asyncio.run(_other_routes(bench, _OTHERS, f"{HOST}:{bench.upstream}", pattern, made, count - 1))
            made = count
        say(f"{what:18} proxy   {bench.run(side, request, 16)}   {load_average()}")
    asyncio.run(_other_routes(bench, _NO_OTHERS))


def workers(bench: Bench) -> None:
    """A second worker on the same port."""
    bench.deployment.start("proxy-1")
    side = bench.proxy()
    request = side.request(f"{bench.prefix}/small")
    for clients in (16, 64):
        say(f"two workers, {clients:2}    proxy   {bench.run(side, request, clients)}   {load_average()}")
    bench.deployment.stop("proxy-1")


def memory(bench: Bench) -> None:
    """Measure whether the proxy grows while it works."""
    bench.deployment.stop("proxy")
    bench.deployment.start("proxy")
    pace, side, path = bench.pace, bench.proxy(), f"{bench.prefix}/small"
    bench.run(side, side.request(path), 16)
    closing = load.request("GET", path, **side.headers, Connection="close")
    for what, request, count in (
        ("requests", side.request(path), pace.requests),
        ("connections", closing, pace.one_shot),
    ):
        # Two halves: what is filled once, grows in the first and not in the second.
        resident = [bench.deployment.memory()["proxy"]]
        for _ in range(2):
            figures = load.run_all(side.port, request, count // 2, clients=16)
            resident.append(bench.deployment.memory()["proxy"])
        say(
            f"{f'{count:,} {what}':18} proxy   {figures}   memory {' -> '.join(map(str, resident))} MiB   {load_average()}"
        )


def load_average() -> str:
    """Tell how busy the machine was: its load average over the last minute, ours included."""
    return f"load {os.getloadavg()[0]:.1f}"


@contextmanager
def stage(pace: Pace) -> Iterator[tuple[Bench, Side, Path]]:
    """A deployment with an upstream, and a route to it with a secret."""
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        certificate = Authority(Path(folder)).leaf("upstream", HOST)
        ca_file = Path(folder, "ca.pem")
        trusted = {"SERVICE_PROXY_EXTRA_CA_FILE": str(ca_file), "SERVICE_PROXY_ALLOW_PRIVATE_HOSTS": HOST}
        with (
            running([sys.executable, "-m", "bench.upstream", certificate]) as address,
            running([sys.executable, "-m", "bench.upstream", certificate]) as other,
            Deployment(**trusted) as deployment,
        ):
            port, other_port = (int(one.rpartition(":")[2]) for one in (address, other))
            tokens = list(deployment.agents(2, prefix=AGENT).values())
            secret = _secret(deployment)
            for one in (port, other_port):
                _route(deployment, secret, one)
            deployment.start("proxy")
            yield (
                Bench(deployment, pace, [port, other_port], tokens),
                Side("direct", port, Way(str(ca_file)), {}),
                ca_file,
            )


def _secret(deployment: Deployment) -> str:
    said = {"name": "upstream", "value": "sk-bench-" + "0123456789abcdef" * 2}
    return str(deployment.call("POST", "/secrets", said, **{"X-Service-Key": deployment.tenant_key})["id"])


def _route(deployment: Deployment, secret: str, port: int) -> None:
    key = {"X-Service-Key": deployment.tenant_key}
    route = {
        "secretId": secret,
        "hostPattern": f"{HOST}:{port}",
        "injectAs": "header",
        "injectKey": "authorization",
        "injectFormat": "Bearer {value}",
        "priority": -1,
    }
    deployment.call("POST", "/secrets/routes", route, **key)


async def _other_routes(bench: Bench, statement: str, *arguments: object) -> None:
    """Change routes behind the signer's back; they are never used, so nobody looks at their MACs."""
    connection = await asyncpg.connect(bench.deployment.owner_url)
    secret = await connection.fetchval("SELECT id FROM secrets")
    await connection.execute(statement, *([secret, *arguments] if arguments else []))
    await connection.execute("UPDATE credential_heads SET version = version + 1")
    await connection.close()


def _cpu_seconds(pids: list[int]) -> float:
    """Sum the processor time that processes have used so far."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _version() -> str:
    from mitmproxy import version  # noqa: PLC0415 - its import takes a while

    return version.VERSION


if __name__ == "__main__":
    main()

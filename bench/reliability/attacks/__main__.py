"""Every attack once, and what an innocent tenant notices: `python -m bench.reliability.attacks [--only NAME ...]`.

Attackers have what anybody may have: tenants, agents, a server of their own, addresses of this machine. They run as
processes that give way to the service, for this machine is theirs too. Beside each attack an innocent tenant reads,
signs and calls through the proxy; none of it may fail, nor its 99th percentile be three times that of an idle service.
Everything stays on loopback and ends by itself.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256

import msgspec

from bench.reliability.attacks import on_api, on_proxy
from bench.reliability.attacks.innocent import KINDS, Innocent, Noticed
from bench.reliability.attacks.target import Attack, Attacker, Hostile, Target
from custody.chains.node_shares import QUESTIONS_A_MINUTE
from tests.fixtures.callers import Client, Tenant, new_tenant
from tests.fixtures.deployments import killable_postgres, owner_of
from tests.fixtures.people import member, sign_in
from tests.fixtures.proxied import Proxied, Proxy
from tests.outside.processes import PROJECT, running
from tests.outside.upstream import running_upstream

ATTACKS: dict[str, Attack] = {
    **{
        f"api: {act.__name__}": act
        for act in (
            on_api.rules,
            on_api.batches,
            on_api.store_rules,
            on_api.backtests,
            on_api.histories,
            on_api.strangers,
            on_api.typed_data,
            on_api.streams,
            on_api.searches,
            on_api.half_heads,
            on_api.many_addresses,
            on_api.full_lists,
            on_api.balances,
        )
    },
    **{
        f"proxy: {act.__name__}": act
        for act in (
            on_proxy.encodings,
            on_proxy.types,
            on_proxy.idle,
            on_proxy.small_chunks_up,
            on_proxy.small_chunks_down,
            on_proxy.early_hints,
            on_proxy.small_frames,
            on_proxy.downloads,
            on_proxy.names,
            on_proxy.frozen_agent,
            on_proxy.no_route,
            on_proxy.held_bodies,
            on_proxy.half_heads,
        )
    },
}
TENANTS, AGENTS = 8, 30
WORST = 3.0
# Below this an idle service is as fast as the machine's own hiccups.
LEAST_MS = 20.0
# As an operator gets it; most tests do without.
DEFAULTS = {
    "MAX": 30_000,
    "ANONYMOUS_MAX": 3_000,
    "NONCE": 30,
    "VERIFY": 10,
    "CODES": 5,
    "REFRESH": 60,
    "DEVICE_CODE": 20,
    "DEVICE_TOKEN": 60,
    "NODE_CALLS": QUESTIONS_A_MINUTE,
}


class Row(msgspec.Struct, frozen=True):
    """One line of the table."""

    name: str
    times: dict[str, float]
    p99: dict[str, float]
    failures: list[str]
    attacker: str

    @property
    def held(self) -> bool:
        """True if the innocent tenant was left in peace."""
        return not self.failures and all(times < WORST for times in self.times.values())


def main() -> None:
    """Run them, print the table, exit with 1 if one of them was felt."""
    given = _arguments()
    if given.act:
        target = msgspec.json.decode(sys.stdin.buffer.read(), type=Target)
        print(msgspec.json.encode(asyncio.run(ATTACKS[given.act](target, given.seconds))).decode())
        return
    names = [name for name in ATTACKS if not given.only or any(part in name for part in given.only)]
    with _world() as (found, innocent, admin):
        _say("idle")
        idle = asyncio.run(innocent.lives(given.seconds * 2))
        rows = []
        for name in names:
            target = msgspec.structs.replace(found, admin=admin() if name == "api: searches" else "")
            rows.append(_row(name, idle, *_beside(name, target, innocent, given.seconds)))
            _say(_line(rows[-1]))
            _let_rest(innocent)
    print(_table(idle, rows))
    sys.exit(0 if all(row.held for row in rows) and not idle.failures else 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.reliability.attacks", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="how long each attack goes on")
    parser.add_argument("--only", nargs="*", default=[], help="attacks whose name has one of these words")
    parser.add_argument("--act", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def _beside(name: str, target: Target, innocent: Innocent, seconds: float) -> tuple[Noticed, str]:
    """Measure what the innocent notices while an attack goes on, and what the attacker saw."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "bench.reliability.attacks", "--act", name, "--seconds", str(seconds)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: os.nice(19),  # noqa: PLW1509
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(target))
    process.stdin.close()
    process.stdin = None
    noticed = asyncio.run(innocent.lives(seconds))
    try:
        said, wrong = process.communicate(timeout=seconds * 4 + 30)
    except subprocess.TimeoutExpired:
        process.kill()
        said, wrong = process.communicate()
    if process.returncode != 0:
        return noticed, f"ended with {process.returncode}: {wrong.decode()[-200:].strip()}"
    seen = Counter(msgspec.json.decode(said, type=dict[str, int]))
    return noticed, ", ".join(f"{count} {what}" for what, count in seen.most_common(4))


def _row(name: str, idle: Noticed, noticed: Noticed, attacker: str) -> Row:
    p99 = {kind: noticed.p99(kind) for kind in KINDS}
    times = {kind: p99[kind] / max(idle.p99(kind), LEAST_MS) for kind in KINDS}
    return Row(name, times, p99, noticed.failures, attacker)


def _let_rest(innocent: Innocent) -> None:
    """Wait until what an attack left behind (connections that time out) is over."""
    deadline = time.monotonic() + 60
    while asyncio.run(innocent.lives(1.0)).failures and time.monotonic() < deadline:
        pass


@contextmanager
def _world() -> Iterator[tuple[Target, Innocent, "Admin"]]:
    """A deployment with the limits that an operator gets, attackers and one innocent tenant."""
    with ExitStack() as stack:
        postgres = stack.enter_context(killable_postgres())
        upstream = stack.enter_context(running_upstream())
        # The attacker's server has a certificate as good as anybody's.
        words = ["bench.reliability.attacks.hostile_upstream", upstream.ca_file.with_name("good.pem")]
        hostile = stack.enter_context(running([sys.executable, "-P", "-m", *words]))
        limits = {f"SERVICE_RATE_LIMIT_{name}": str(value) for name, value in DEFAULTS.items()}
        node = stack.enter_context(running([sys.executable, "-P", "-m", "bench.reliability.attacks.slow_node"]))
        service = Proxied(postgres.database, upstream, SERVICE_RPC_URL_31337=f"http://{node}", **limits)
        try:
            service.start("signer", "identity", "api", "scheduler")
            proxy = stack.enter_context(service.another_proxy("bench.reliability.attacks.slow_names_proxy"))
            port = int(hostile.rpartition(":")[2])
            attackers = [new_tenant(service) for _ in range(TENANTS)]
            person = _tenants_of_one_person(service)
            target = Target(service.port, proxy.port, port, [_attacker(one, port) for one in attackers], person)
            asyncio.run(_long_audit_trail(service, attackers[0].id))
            yield target, _innocent(service, proxy), Admin(service, attackers[0])
            stack.close()
        finally:
            service.stop()
            shutil.rmtree(service.home)


class Admin:
    """Signs an admin of a tenant in, with a second factor, when one is needed."""

    def __init__(self, service: Proxied, tenant: Tenant) -> None:
        self._service, self._tenant = service, tenant

    def __call__(self) -> str:
        """The session's token."""
        return str(member(self._service, self._tenant, "admin", mfa=True).headers["Authorization"]).split()[1]


def _attacker(tenant: Tenant, port: int) -> Attacker:
    secret = tenant.ok("POST", "/secrets", {"name": "s", "value": "sk-\"<&'> of the attacker/+="})
    fields = {"secretId": secret["id"], "injectAs": "header", "injectKey": "X-Key", "injectFormat": "{value}"}
    tenant.ok("POST", "/secrets/routes", {**fields, "hostPattern": f"localhost:{port}"})
    tenant.ok("POST", "/secrets/routes", {**fields, "hostPattern": "*.slow.test"})
    body = {**fields, "injectAs": "body", "injectKey": "key", "pathPattern": "/into-body"}
    tenant.ok("POST", "/secrets/routes", {**body, "hostPattern": f"localhost:{port}", "priority": 10})
    agents = [tenant.agent() for _ in range(AGENTS)]
    made = [Hostile(agent.id, str(agent.headers["Authorization"]).split()[1]) for agent in agents]
    return Attacker(tenant.id, tenant.key, made)


def _tenants_of_one_person(service: Proxied) -> list[Attacker]:
    made = []
    with closing(sign_in(service)) as person:
        for number in range(TENANTS):
            key = uuid.uuid4().hex
            body = {
                "id": f"one-of-many-{number}",
                "name": "One of many",
                "apiKeyHash": sha256(key.encode()).hexdigest(),
            }
            person.ok("POST", "/tenants", body)
            with Client(base_url=service.url, headers={"X-Service-Key": key}) as tenant:
                agents = [tenant.ok("POST", "/agents", {"id": f"a-{n}", "name": "A"})["id"] for n in range(5)]
            made.append(Attacker(body["id"], key, [Hostile(agent, "") for agent in agents]))
    return made


def _innocent(service: Proxied, proxy: Proxy) -> Innocent:
    tenant = new_tenant(service)
    agent = tenant.agent()
    secret = tenant.ok("POST", "/secrets", {"name": "s", "value": "sk-of-the-innocent"})
    where = {"hostPattern": f"localhost:{service.upstream.port}"}
    how = {"injectAs": "header", "injectKey": "Authorization", "injectFormat": "Bearer {value}"}
    tenant.ok("POST", "/secrets/routes", {"secretId": secret["id"], **where, **how})
    token = str(agent.headers["Authorization"]).split()[1]
    return Innocent(service.url, f"{proxy.url}/up/echo", tenant.key, agent.id, token)


async def _long_audit_trail(service: Proxied, tenant: str) -> None:
    """90,000 rows, as of a tenant that has worked for months."""
    async with owner_of(service.database) as owner:
        await owner.execute("SELECT set_config('custody.tenant', $1, false)", tenant)
        await owner.execute(
            "SELECT audit_append('agent', 'a', 'proxy.request', 'agent', 'a', '{\"a\": {\"b\": \"x\"}}', NULL) "
            "FROM generate_series(1, 90000)"
        )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _line(row: Row) -> str:
    felt = ", ".join(f"{what} x{count}" for what, count in Counter(row.failures).most_common(3)) or "none failed"
    cells = "  ".join(f"{kind} {row.p99[kind]:6.0f} ms ({row.times[kind]:.1f})" for kind in KINDS)
    return f"{'held' if row.held else 'FELT'}  {row.name:26}  {cells}  {felt}  | attacker: {row.attacker}"


def _table(idle: Noticed, rows: list[Row]) -> str:
    head = "p99 of an innocent tenant beside each attack, in ms and as a multiple of idle (at least 20 ms)"
    first = "  ".join(f"{kind} {idle.p99(kind):6.0f} ms      " for kind in KINDS)
    return "\n".join([head, f"      {'idle':26}  {first}", *map(_line, rows)])


if __name__ == "__main__":
    main()

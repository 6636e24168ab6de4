"""The cost of intents and accounts: an execution beside a plain order, lists of a million, balances over chains.

`python -m bench.intents`
"""

import asyncio
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import asyncpg
import msgspec

from bench import load
from bench.deployment import Deployment
from bench.people import OFF, Owner

ORDER = {"to": f"0x{1:040x}", "value": "1", "chainId": 31337, "broadcast": False}
AGENTS = 50
CLIENTS = 16
ROUNDS = 5
# Fewer than a tenant may have open.
INTENTS = 900
FEW, MANY = 1_000, 1_000_000
# What a node far away takes to answer.
FAR_SECONDS = 0.05
CHAINS = (1, 10, 137, 8453)
_ROWS = """
INSERT INTO intents (tenant_id, id, agent_id, type, payload, digest, status, created_by, expires_at, created_at, updated_at, mac)
SELECT $1, gen_random_uuid(), NULL, 'rpc', '{"chainId":1,"method":"eth_chainId","params":[]}', sha256('d'),
       (ARRAY['executed','failed','expired','canceled'])[1 + g % 4], 'tenant_key:bench', now() - g * interval '1 minute',
       now() - g * interval '1 minute', now() - g * interval '1 minute', sha256('m')
  FROM generate_series(1, $2::integer) g
"""


def measure() -> None:
    """Everything, one line each."""
    with _far_node() as node:
        nodes = {f"SERVICE_RPC_URL_{chain}": node for chain in CHAINS}
        with Deployment(**OFF, **nodes) as deployment:
            owner = Owner(deployment)
            executions(deployment, owner)
            lists(deployment)
            balances(deployment)


def executions(deployment: Deployment, owner: Owner) -> None:
    """Intents of one transfer each, executed; and in the same round as many orders of the agents themselves."""
    agents, key = deployment.agents(AGENTS), {"X-Service-Key": deployment.tenant_key}
    plain = [
        load.request("POST", f"/vault/{agent}/sign", msgspec.json.encode(ORDER), Authorization=f"Bearer {token}")
        for agent, token in agents.items()
    ]
    ratios = []
    for _ in range(ROUNDS):
        bearer = {"Authorization": f"Bearer {owner.token}"}
        executes = []
        for number in range(INTENTS):
            body = {"intentType": "transfer", "agentId": f"agent-{number % AGENTS}", "payload": ORDER}
            intent = deployment.call("POST", "/intents", body, **key)["id"]
            owner.call("POST", f"/intents/{intent}/authorize", {})
            executes.append(load.request("POST", f"/intents/{intent}/execute", b"{}", **bearer))
        signed = load.run_each(deployment.port, (plain * (INTENTS // AGENTS + 1))[:INTENTS], clients=CLIENTS)
        done = load.run_each(deployment.port, executes, clients=CLIENTS)
        ratios.append(done.rate / signed.rate)
        print(f"plain order, {CLIENTS} clients      {signed}", flush=True)
        print(f"execute an intent, {CLIENTS} clients {done}", flush=True)
    print(f"  median: an execution has {statistics.median(ratios):.2f} of the plain order's rate", flush=True)


def lists(deployment: Deployment) -> None:
    """The first page, one state and one type, of a tenant with a thousand intents and of one with a million."""
    platform = {"X-Service-Platform-Key": (deployment.home.path / "platform.key").read_text().strip()}
    keys = {}
    for count in (FEW, MANY):
        tenant = {"id": f"has-{count}", "name": "Bench"}
        keys[count] = deployment.call("POST", "/platform/tenants", tenant, **platform)["apiKey"]
        asyncio.run(_fill(deployment.owner_url, tenant["id"], count))
    for query in ("", "?status=failed", "?intentType=rpc&status=expired", "?offset=400"):
        times = {}
        for count, key in keys.items():
            request = load.request("GET", f"/intents{query}", X_Service_Key=key)
            times[count] = load.run(deployment.port, [request], clients=1, seconds=3).p50
        ratio = times[MANY] / times[FEW]
        said = ", ".join(f"{count:,}: {milliseconds:.2f} ms" for count, milliseconds in times.items())
        print(f"GET /intents{query:32} {said}   ratio {ratio:.2f}", flush=True)


async def _fill(owner_url: str, tenant: str, count: int) -> None:
    connection = await asyncpg.connect(owner_url)
    await connection.execute(_ROWS, tenant, count)
    await connection.execute("ANALYZE intents")
    await connection.close()


def balances(deployment: Deployment) -> None:
    """One wallet on one chain, five wallets on four; each question takes a node 50 ms."""
    key = {"X-Service-Key": deployment.tenant_key}
    families = [{"chain_type": "evm", "wallet_id": f"agent-{number}"} for number in range(5)]
    for name, wallets in (("one", families[:1]), ("five", families)):
        deployment.call("POST", "/accounts", {"id": name, "wallets_configuration": wallets}, **key)
    taken = {}
    for path in ("/accounts/one/balance?chainId=1", "/accounts/five/balance"):
        times = []
        for _ in range(20):
            began = time.perf_counter()
            found = deployment.call("GET", path, **key)
            times.append(time.perf_counter() - began)
        taken[path] = statistics.median(times)
        print(f"GET {path:34} {len(found['balances']):2} balances in {taken[path] * 1000:6.1f} ms", flush=True)
    one, five = taken.values()
    print(f"  twenty balances cost {five / one:.2f} of one", flush=True)


@contextmanager
def _far_node() -> Iterator[str]:
    class Node(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = msgspec.json.decode(self.rfile.read(int(self.headers["content-length"])))
            time.sleep(FAR_SECONDS)
            several = asked if isinstance(asked, list) else [asked]
            told = [{"jsonrpc": "2.0", "id": one["id"], "result": "0x1"} for one in several]
            body = msgspec.json.encode(told if isinstance(asked, list) else told[0])
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Node) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


if __name__ == "__main__":
    measure()

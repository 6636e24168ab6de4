"""Priced calls at the signer: how many charges a second one agent gets: `python -m bench.calls [--seconds N]`.

Each is judged by a budget in dollars and committed before its answer; what waits goes in one commit. Beside it the same
questions for the secret of a free route, which write nothing. Nothing here fails on time.
"""

import argparse
import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable

from bench.deployment import Deployment
from bench.load import HOST
from bench.proxy import load_average, say
from custody.kit.callers import AgentCaller, Origin, Proof
from custody.protocol.client import SignerClient
from custody.protocol.signer.calls import ChargeCall
from custody.protocol.signer.secrets import RevealForRoute

BUDGET = {"type": "spending-limit", "enabled": True, "config": {"maxPerDay": str(10**15), "asset": "usd"}}
CLIENTS = (1, 16, 64)


def main() -> None:
    """Measure the charges alone."""
    parser = argparse.ArgumentParser(prog="python -m bench.calls", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    measure(parser.parse_args().seconds)


def measure(seconds: float = 4.0) -> None:
    """Measure everything, one line each."""
    with Deployment() as deployment:
        key = {"X-Service-Key": deployment.tenant_key}
        token = deployment.agents(1, "spender")["spender-0"]
        deployment.call("PUT", "/agents/spender-0/policies", [BUDGET], **key)
        secret = deployment.call("POST", "/secrets", {"name": "key", "value": "sk-bench"}, **key)["id"]
        fields = {"secretId": secret, "hostPattern": HOST, "injectAs": "header", "injectKey": "Authorization"}
        priced = deployment.call("POST", "/secrets/routes", fields | {"costMicroUsd": 2}, **key)["id"]
        asyncio.run(_measure(str(deployment.home.file("run", "reveal.sock")), token, priced, seconds))


async def _measure(socket: str, token: str, route: str, seconds: float) -> None:
    client = SignerClient(socket, "proxy")
    caller = AgentCaller(proof=Proof("agent", token), origin=Origin("bench"), tenant="bench", agent="spender-0")

    async def charge() -> object:
        return await client.ask(ChargeCall(route, str(uuid.uuid4())), caller)

    async def reveal() -> object:
        return await client.ask(RevealForRoute(route), caller)

    for clients in CLIENTS:
        for name, ask in (("charged", charge), ("revealed", reveal)):
            rate, p50 = await _rate(ask, clients, seconds)
            say(f"one agent, {clients:2} at once, {name:8} {rate:7.0f}/s   p50 {p50:6.2f} ms   load {load_average()}")
    await client.close()


async def _rate(ask: Callable[[], Awaitable[object]], clients: int, seconds: float) -> tuple[float, float]:
    taken: list[float] = []
    end = time.perf_counter() + seconds

    async def one() -> None:
        while (began := time.perf_counter()) < end:
            await ask()
            taken.append(time.perf_counter() - began)

    await ask()
    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(clients)))
    return len(taken) / (time.perf_counter() - began), sorted(taken)[len(taken) // 2] * 1000


if __name__ == "__main__":
    main()

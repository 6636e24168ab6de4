"""Signatures of 1,000 agents, with and without one limit over all of them: `python -m bench.fleet [--agents N]`.

In turns of a few seconds each, so that both meet the same load of the machine; then the same with an Idempotency-Key on
each order. The ratio is the median of the pairs. Nothing here fails on time.
"""

import argparse
import itertools
import statistics
from collections.abc import Sequence

from bench import load
from bench.deployment import Deployment
from bench.proxy import load_average, say
from bench.works import ORDER

LIMIT = {"maxPerDay": str(10**15), "maxPerWeek": str(10**16), "scope": "set"}
POLICIES = [{"type": "spending-limit", "enabled": True, "config": LIMIT}]
PATH = "/policy-sets/tenant"
CLIENTS = (1, 16, 64)
# Each order of a run has a key of its own: more of them than a run can send.
_KEYED = 20_000


def main() -> None:
    """Measure it alone."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__)
    parser.add_argument("--agents", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--pairs", type=int, default=3)
    given = parser.parse_args()
    measure(given.agents, given.seconds, given.pairs)


def measure(agents: int = 1_000, seconds: float = 4.0, pairs: int = 3) -> None:
    """Measure everything, one line each."""
    with Deployment() as deployment:
        tokens = deployment.agents(agents)
        keys = itertools.count()
        plain = [_order(agent, token) for agent, token in tokens.items()]
        load.run_each(deployment.port, plain, clients=8)
        for clients in CLIENTS:
            _compare(deployment, plain, f"{clients:2} clients", clients, seconds, pairs)

        def orders_with_keys() -> list[bytes]:
            given = itertools.islice(itertools.cycle(tokens.items()), _KEYED)
            return [_order(agent, token, Idempotency_Key=f"order-{next(keys)}") for agent, token in given]

        ratios = []
        for _ in range(pairs):
            rates = []
            for limited in (False, True):
                _limit(deployment, limited=limited)
                rates.append(load.run(deployment.port, orders_with_keys(), clients=16, seconds=seconds).rate)
            ratios.append(rates[1] / rates[0])
        say(f"with keys, 16 clients: {statistics.median(ratios):.2f} of the rate without a limit")


def _compare(
    deployment: Deployment, requests: Sequence[bytes], what: str, clients: int, seconds: float, pairs: int
) -> None:
    ratios = []
    for _ in range(pairs):
        found = []
        for limited in (False, True):
            _limit(deployment, limited=limited)
            found.append(load.run(deployment.port, requests, clients=clients, seconds=seconds))
        ratios.append(found[1].rate / found[0].rate)
        for limited, figures in zip(("without", "limited"), found, strict=True):
            say(f"{what} {limited} {figures}   load {load_average()}")
    say(f"{what}: {statistics.median(ratios):.2f} of the rate without a limit")


def _limit(deployment: Deployment, *, limited: bool) -> None:
    body = {"name": "All", "policies": POLICIES if limited else []}
    deployment.call("PUT", PATH, body, **{"X-Service-Key": deployment.tenant_key})


def _order(agent: str, token: str, **more: str) -> bytes:
    return load.request("POST", f"/vault/{agent}/sign", ORDER, Authorization=f"Bearer {token}", **more)


if __name__ == "__main__":
    main()

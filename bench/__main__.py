"""`make bench`: the figures of this machine, each beside what the bare database (or an empty proxy) does.

Nothing here fails on time.
"""

import random
import statistics
import time
from collections.abc import Callable

import httpx
import msgspec

from bench import clients, console, history, load, people, proxy, scale_out, signers, works
from bench.deployment import RATE_LIMIT, Deployment

SECONDS = 4.0
TURNS = 5


def main() -> None:
    """Measure everything, one line each."""
    say(
        f"Limiter on, SERVICE_RATE_LIMIT_MAX={RATE_LIMIT}; {works.AGENTS} agents with 4 policies, broadcast off; load, Postgres and service share this machine."
    )
    began = time.perf_counter()
    with Deployment() as deployment:
        say(f"start to ready, first time (database made)    {time.perf_counter() - began:6.2f} s")
        tokens = deployment.agents(works.AGENTS)
        stage = works.prepare(deployment, tokens)
        in_turn(stage)
        beside_a_hot_agent(deployment, stage.signs)
        reads_and_creates(deployment, list(tokens))
        histories(deployment)
        restarts(deployment, next(iter(tokens.items())))
        memory(deployment, stage.signs)
    people.measure()
    signers.measure()
    proxy.measure()
    scale_out.measure()
    console.measure()
    clients.measure()


def say(text: str) -> None:
    """One line, at once."""
    print(text, flush=True)


def sign(agent: str, token: str) -> bytes:
    """A request for a signature."""
    return load.request("POST", f"/vault/{agent}/sign", works.ORDER, Authorization=f"Bearer {token}")


def in_turn(stage: works.Stage) -> None:
    """Measure the works that compare revisions: each as often as the others, so that a slow minute is in all."""
    found: dict[str, list[works.Measured]] = {work.name: [] for work in works.WORKS}
    for _ in range(TURNS):
        for work in works.WORKS:
            found[work.name].append(stage.turn(work, SECONDS))
    say(f"Medians of {TURNS} turns (least to most); us of processor an act, pgbench in the same turn:")
    for work in works.WORKS:
        turns = found[work.name]
        rate, p50, p99, cpu = (
            works.Spread.of(getattr(turn, name) for turn in turns) for name in ("rate", "p50", "p99", "service_cpu")
        )
        shares = [turn.of_bare for turn in turns if turn.of_bare is not None]
        said = f"{work.says:<34}{rate:.0f}/s   p50 {p50:.1f} ms   p99 {p99:.1f} ms   CPU {cpu:.0f} us"
        say(said + (f"   of pgbench {works.Spread.of(shares):.2f}" if shares else ""))
        wrong = {status for turn in turns for status in turn.statuses} - {200}
        if wrong:
            say(f"  also answered {wrong}")


def beside_a_hot_agent(deployment: Deployment, signs: list[bytes]) -> None:
    """Measure what the others have left beside one agent that many use."""
    alone = load.run(deployment.port, signs[1:], clients=4, seconds=SECONDS)
    hot, others = load.together(deployment.port, [(signs[:1], 64), (signs[1:], 4)], seconds=SECONDS)
    say(f"others, 4 clients, alone          {alone}")
    say(
        f"others beside 64 on one agent     {others}   share of alone {others.rate / alone.rate:.2f}   (hot {hot.rate:.0f}/s)"
    )


def reads_and_creates(deployment: Deployment, agents: list[str]) -> None:
    """Measure the reads that consoles repeat, and the creations that tenants do in bulk."""
    key = {"X_Service_Key": deployment.tenant_key}
    gets = [load.request("GET", f"/agents/{agent}", **key) for agent in agents]
    for count in (1, 4):
        say(
            f"GET /agents/:id, {count:2} clients       {load.run(deployment.port, gets, clients=count, seconds=SECONDS)}"
        )
    bodies = [msgspec.json.encode({"id": f"made-{n}", "name": "Made"}) for n in range(30_000)]
    creates = [load.request("POST", "/agents", body, **key) for body in bodies]
    say(f"create an agent, 8 clients        {load.run(deployment.port, creates, clients=8, seconds=SECONDS)}")


def histories(deployment: Deployment) -> None:
    """One agent with and without a past, in interleaved pairs."""
    fresh, old = deployment.agents(2, prefix="history").items()
    for rows in (10_000, 100_000):
        history.give(deployment, old[0], rows)
        ratios = []
        for turn in range(4):
            # Each is first as often as it is second.
            pair = (fresh, old) if turn % 2 else (old, fresh)
            rates = {
                agent[0]: load.run(deployment.port, [sign(*agent)], clients=16, seconds=3.0).rate for agent in pair
            }
            ratios.append(rates[old[0]] / rates[fresh[0]])
        say(
            f"hot agent with {rows:7,} transactions of history: {statistics.median(ratios):.2f} of its rate without (median of 4 pairs)"
        )


def restarts(deployment: Deployment, agent: tuple[str, str]) -> None:
    """Measure how long nobody can sign after a signer died; the supervisor's own reaction is not in it."""
    times = []
    for _ in range(5):
        process = deployment.processes.pop("signer")
        process.kill()
        process.wait()
        began = time.perf_counter()
        deployment.start("signer")
        wait_for(lambda: signs(deployment, *agent))
        times.append(time.perf_counter() - began)
    say(
        f"signer killed to signing again    median {statistics.median(times):.2f} s, longest {max(times):.2f} s of {len(times)}"
    )
    for process in deployment.processes.values():
        process.terminate()
        process.wait(20)
    deployment.processes.clear()
    say(f"all three, start to ready         {deployment.start('signer', 'identity', 'api'):6.2f} s")


def signs(deployment: Deployment, agent: str, token: str) -> bool:
    """Tell whether a signature can be had right now."""
    try:
        answer = deployment.http.post(
            f"/vault/{agent}/sign",
            content=works.ORDER,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
    except httpx.HTTPError:
        return False
    return answer.status_code == 200


def wait_for(test: Callable[[], bool]) -> None:
    """Ask until it is so."""
    while not test():
        time.sleep(0.005)


def memory(deployment: Deployment, signs: list[bytes]) -> None:
    """Measure whether any process grows while it works."""
    random.Random(1).shuffle(signs)
    load.run(deployment.port, signs, clients=16, seconds=10.0)
    before = deployment.memory()
    count = sum(load.run(deployment.port, signs, clients=16, seconds=30.0).statuses.values())
    after = deployment.memory()
    say(
        "memory over {:,} more signatures   {}".format(
            count, ", ".join(f"{name} {before[name]} -> {after[name]} MiB" for name in before)
        )
    )


if __name__ == "__main__":
    main()

"""Two of each process against one, behind a pooler, and with limits that processes share: `python -m bench.scale_out`.

A second set of processes on the same database stands for a second machine. Here it has the same cores as the first, so
it cannot be faster; what is shown is what a second costs, and that it works. Each line is of pairs in turn.
"""

import argparse
from collections.abc import Callable, Sequence

import msgspec

from bench import load, proxy, works
from bench.deployment import Deployment, Partner
from bench.load import Figures
from bench.works import Spread
from tests.outside.pgbouncer import running_pgbouncer, version
from tests.outside.redis_server import running_redis

AGENTS, CLIENTS, STATEMENTS = 200, 16, 500
Side = Callable[[], tuple[Figures, float]]


class Pace(msgspec.Struct, frozen=True):
    """The length of each turn, and the number of pairs."""

    seconds: float
    pairs: int


FULL = Pace(4.0, 4)


def main() -> None:
    """These lines alone."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale_out", description="Measure two of each against one.")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each turn lasts (4)")
    parser.add_argument("--pairs", type=int, default=4, help="how often each is measured (4)")
    given = parser.parse_args()
    measure(Pace(given.seconds, given.pairs))


def measure(pace: Pace = FULL) -> None:
    """Measure everything, one line each."""
    with proxy.stage(proxy.FULL) as (bench, _, _):
        first = bench.deployment
        stage = works.prepare(first, first.agents(AGENTS))
        with Partner(first) as second:
            both(pace, "sign", stage.signs, [first, second], [first.port, second.port])
            both(pace, "GET an agent", stage.gets, [first, second], [first.port, second.port])
            second.start("proxy")
            side = bench.proxy()
            request = side.request(f"{bench.prefix}/small")
            both(pace, "proxied", [request], [first, second], [first.proxy_port, second.proxy_port])
        behind_poolers(pace, stage)
        with running_redis() as store, Partner(first, SERVICE_RATE_LIMIT_STORE=store.url) as shared:
            against(pace, "GET an agent, limits in Valkey, of limits in memory", stage.gets, first, shared)


def both(pace: Pace, what: str, requests: Sequence[bytes], sets: list[Deployment], ports: list[int]) -> None:
    """The same clients on two sets of processes, and on the first alone."""
    pairs(
        pace,
        f"{what}, two of each, of one of each",
        lambda: ask(pace, sets, ports[:1], requests),
        lambda: ask(pace, sets, ports, requests),
    )


def behind_poolers(pace: Pace, stage: works.Stage) -> None:
    """Signing through PgBouncer, in each of its modes, against signing without."""
    first, name = stage.deployment, ".".join(map(str, version()))
    urls = {file.stem: file.read_text().strip() for file in first.home.file("db").glob("*.url")}
    for mode in ("session", "transaction"):
        what = f"sign, PgBouncer {name} in {mode} mode"
        with running_pgbouncer(urls, mode=mode, statements=STATEMENTS) as through:
            given = {f"SERVICE_DATABASE_URL_{process.upper()}": url for process, url in through.items()}
            try:
                with Partner(first, **given) as second:
                    against(pace, f"{what}, of direct", stage.signs, first, second)
            except RuntimeError as refused:
                say(f"{what}: refused: {str(refused).strip().splitlines()[-1]}")


def against(pace: Pace, what: str, requests: Sequence[bytes], first: Deployment, other: Deployment) -> None:
    """Another set of processes against the first."""
    pairs(
        pace,
        what,
        lambda: ask(pace, [first], [first.port], requests),
        lambda: ask(pace, [other], [other.port], requests),
    )


def ask(pace: Pace, sets: list[Deployment], ports: list[int], requests: Sequence[bytes]) -> tuple[Figures, float]:
    """One turn: what the clients saw, and microseconds of processor an act."""
    before = _cpu(sets)
    figures = load.run(ports, requests, clients=CLIENTS, seconds=pace.seconds)
    return figures, (_cpu(sets) - before) / figures.asked


def pairs(pace: Pace, what: str, first: Side, other: Side) -> None:
    """Measure both in turn, each as often first as second; show the ratio of each pair."""
    rates, costs, medians, wrong = [], [], [], set[int]()
    for number in range(pace.pairs):
        turns = [first(), other()] if number % 2 == 0 else [other(), first()][::-1]
        (one, one_cpu), (two, two_cpu) = turns
        rates.append(two.rate / one.rate)
        costs.append(two_cpu / one_cpu)
        medians.append(two.rate)
        wrong |= (one.statuses.keys() | two.statuses.keys()) - {200}
    also = f"   also answered {', '.join(map(str, sorted(wrong)))}" if wrong else ""
    say(
        f"{what}, {CLIENTS} clients: rate {Spread.of(rates):.2f}   CPU an act {Spread.of(costs):.2f}"
        f"   ({Spread.of(medians):.0f}/s){also}"
    )


def say(text: str) -> None:
    """One line, at once."""
    print(text, flush=True)


def _cpu(sets: list[Deployment]) -> float:
    """Of all processes, and of the Postgres they share once."""
    found = [each.cpu() for each in sets]
    return sum(used for each in found for name, used in each.items() if name != "postgres") + found[0]["postgres"]


if __name__ == "__main__":
    main()

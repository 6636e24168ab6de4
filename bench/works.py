"""Works that are measured when revisions are compared: each is one kind of request from so many clients."""

import statistics
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import msgspec

from bench import bare, load
from bench.deployment import Deployment
from bench.installed import Tree

AGENTS = 1000
ORDER = msgspec.json.encode({"to": f"0x{1:040x}", "value": "1", "broadcast": False})
# Of Postgres' own and of pgbench's processor, beside the names of our processes.
LOAD, BARE_POSTGRES, BARE_LOAD = "load", "bare postgres", "bare load"


class Work(msgspec.Struct, frozen=True):
    """One line of a comparison. pgbench writes the same orders with so many clients, or none for what it cannot do."""

    name: str
    says: str
    clients: int
    bare_clients: int = 0
    hot: bool = False


WORKS = (
    Work("sign1", "sign, many agents, 1 client", 1, 1),
    Work("sign16", "sign, many agents, 16 clients", 16, 16),
    Work("sign64", "sign, many agents, 64 clients", 64, 64),
    # One agent's orders wait for each other, so the database alone is fastest with one client.
    Work("hot", "sign, one hot agent, 16 clients", 16, 1, hot=True),
    Work("get", "GET an agent, 16 clients", 16),
)


class Measured(msgspec.Struct, frozen=True):
    """One turn of one work: `cpu` has microseconds an act, by process; `of_bare` is the share of pgbench's rate."""

    rate: float
    p50: float
    p99: float
    cpu: dict[str, float]
    statuses: dict[int, int]
    bare_rate: float | None = None

    @property
    def service_cpu(self) -> float:
        """Microseconds an act of everything that serves it, Postgres included."""
        return sum(used for name, used in self.cpu.items() if name not in {LOAD, BARE_POSTGRES, BARE_LOAD})

    @property
    def of_bare(self) -> float | None:
        """Share of pgbench's rate."""
        return self.rate / self.bare_rate if self.bare_rate else None


class Spread(msgspec.Struct, frozen=True):
    """The result of several turns: the median, and how far the others are from it."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, numbers: Iterable[float]) -> "Spread":
        """The spread of at least one number."""
        found = sorted(numbers)
        return cls(statistics.median(found), found[0], found[-1])

    def __format__(self, form: str) -> str:
        """The median, and in parentheses the others, each in the form of a number."""
        return f"{self.median:{form}} ({self.least:{form}} to {self.most:{form}})"


class Stage(msgspec.Struct, frozen=True):
    """A deployment and what is sent to it."""

    deployment: Deployment
    signs: list[bytes]
    gets: list[bytes]

    def turn(self, work: Work, seconds: float) -> Measured:
        """Do one work for so long, and right after it what pgbench makes of it."""
        requests = self.gets if work.name == "get" else self.signs[:1] if work.hot else self.signs
        before = self.deployment.cpu()
        figures = load.run(self.deployment.port, requests, clients=work.clients, seconds=seconds)
        after = self.deployment.cpu()
        cpu = {name: (after[name] - before[name]) / figures.asked for name in after} | {
            LOAD: figures.cpu / figures.asked
        }
        measured = Measured(figures.rate, figures.p50, figures.p99, cpu, figures.statuses)
        return self._beside(measured, work, seconds) if work.bare_clients else measured

    def _beside(self, measured: Measured, work: Work, seconds: float) -> Measured:
        before = self.deployment.cpu()["postgres"]
        done = bare.orders(
            self.deployment.signer_url,
            agents=1 if work.hot else len(self.signs),
            clients=work.bare_clients,
            seconds=max(2, round(seconds)),
        )
        postgres = (self.deployment.cpu()["postgres"] - before) / done.count
        cpu = measured.cpu | {BARE_POSTGRES: postgres, BARE_LOAD: done.cpu / done.count}
        return msgspec.structs.replace(measured, cpu=cpu, bare_rate=done.rate)


@contextmanager
def stage(tree: Tree, agents: int = AGENTS) -> Iterator[Stage]:
    """A deployment of some sources with agents that have policies and tokens."""
    with Deployment(tree) as deployment:
        yield prepare(deployment, deployment.agents(agents))


def prepare(deployment: Deployment, tokens: dict[str, str]) -> Stage:
    """Prepare a deployment's requests; each agent is asked once, so that later requests find everything checked."""
    key = {"X_Service_Key": deployment.tenant_key}
    signs = [
        load.request("POST", f"/vault/{agent}/sign", ORDER, Authorization=f"Bearer {token}")
        for agent, token in tokens.items()
    ]
    gets = [load.request("GET", f"/agents/{agent}", **key) for agent in tokens]
    load.run_each(deployment.port, signs + gets, clients=8)
    deployment.make_agents(len(tokens), bare.PREFIX)
    return Stage(deployment, signs, gets)


def choose(names: str | None) -> tuple[Work, ...]:
    """The works that a command line names with commas between them; all of them if it names none."""
    if not names:
        return WORKS
    there = {work.name: work for work in WORKS}
    if unknown := set(names.split(",")) - set(there):
        raise SystemExit(f"--only: there is no {', '.join(sorted(unknown))}; there are {', '.join(there)}")
    return tuple(there[name] for name in there if name in names.split(","))

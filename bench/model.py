"""The load that a machine carries, from the cost of an act: the model of docs/operate.md, and how well it fits.

An act takes so many microseconds of processor; a machine has cores times a million of them a second, and under enough
clients does nothing else. Where a disk or one agent's row is the bound, less is carried than the model says.
"""

from collections.abc import Iterator, Mapping

from bench import works
from bench.works import Measured

MACHINES = (4, 16, 64)


def capacity(cores: float, microseconds: float) -> float:
    """Acts a second."""
    return cores * 1_000_000 / microseconds


def share(turn: Measured, cores: int) -> float:
    """Divide the measured rate by the model's for a machine that serves and asks at once."""
    return turn.rate / capacity(cores, turn.service_cpu + turn.cpu[works.LOAD])


def bare_share(turn: Measured, cores: int) -> float | None:
    """The same for pgbench, where Postgres has the machine for itself but for pgbench."""
    if turn.bare_rate is None:
        return None
    return turn.bare_rate / capacity(cores, turn.cpu[works.BARE_POSTGRES] + turn.cpu[works.BARE_LOAD])


def page(line: Mapping[str, str]) -> Iterator[str]:
    """Write the model's view of a line of figures."""
    whole, postgres = float(line["sign64_cpu_us"]), float(line["sign64_postgres_us"])
    fit = min(1.0, float(line["sign64_pgbench_of_model"]))
    yield (
        f"An order costs {whole:.0f} us of processor at 64 clients, {postgres:.0f} of them in Postgres. pgbench reached"
        f" {fit:.2f} of what the model says of this machine, so the table takes that share of it:"
    )
    yield ""
    yield "| Cores | Orders a second, all on one machine | one Postgres of its own, others elsewhere |"
    yield "|---|---|---|"
    for cores in MACHINES:
        yield f"| {cores} | {_round(fit * capacity(cores, whole))} | {_round(fit * capacity(cores, postgres))} |"


def _round(number: float) -> str:
    """To two digits: the model knows no more."""
    size = 10 ** max(0, len(str(int(number))) - 2)
    return f"{int(number / size + 0.5) * size:,}"

"""Two revisions side by side: another one's deployment and this tree's, measured in turn on the same machine.

`python -m bench.compare REV [--seconds S] [--pairs N] [--only sign16,hot]`, or `make bench-compare REV=...`. A machine
changes its pace from minute to minute, so only the ratios count: each pair measures both, and each is first as often as
it is second.
"""

import argparse
import os
from collections.abc import Callable, Iterator

from bench import bare, works
from bench.installed import checked_out, here
from bench.works import Measured, Spread, Stage, Work

Turns = list[tuple[Measured, Measured]]
# What a line is called, and the number it shows of one side of a pair.
_COLUMNS: tuple[tuple[str, Callable[[Measured], float | None]], ...] = (
    ("a second", lambda turn: turn.rate),
    ("ms at 50 %", lambda turn: turn.p50),
    ("ms at 99 %", lambda turn: turn.p99),
    ("of pgbench", lambda turn: turn.of_bare),
    ("CPU us an act", lambda turn: turn.service_cpu),
)
# Whose processor, in the order in which an act passes them; the first four are the service's.
_CPU = {
    "api": "of it api",
    "identity": "of it identity",
    "signer": "of it signer",
    "postgres": "of it Postgres",
    works.LOAD: "beside it asking",
    works.BARE_POSTGRES: "pgbench's Postgres",
    works.BARE_LOAD: "pgbench itself",
}


def main() -> None:
    """Print one block for each work, as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description="Measure two revisions side by side.")
    parser.add_argument("revision", metavar="REV", help="the revision that this tree is compared with")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each turn lasts (4)")
    parser.add_argument("--pairs", type=int, default=6, help="how often each is measured (6)")
    parser.add_argument("--agents", type=int, default=works.AGENTS, help=f"how many there are ({works.AGENTS})")
    parser.add_argument("--only", metavar="WORKS", help=f"some of {','.join(work.name for work in works.WORKS)}")
    given = parser.parse_args()
    wanted = works.choose(given.only)
    with (
        checked_out(given.revision) as tree,
        works.stage(tree, given.agents) as there,
        works.stage(here(), given.agents) as ours,
    ):
        commit = bare.commits(ours.deployment.signer_url, 1).milliseconds
        print(
            f"{tree.revision} and {here().revision}: {given.pairs} pairs of {given.seconds:g} s in turn, {given.agents:,} agents,"
            f" {os.cpu_count()} cores, a commit {commit:.2f} ms. Median (least to most); the ratio is of each pair."
        )
        for work in wanted:
            turns = [pair(there, ours, work, given.seconds, number) for number in range(given.pairs)]
            print("\n".join(block(work, turns, tree.revision, here().revision)), flush=True)


def pair(there: Stage, ours: Stage, work: Work, seconds: float, number: int) -> tuple[Measured, Measured]:
    """Measure both, this tree's second in even pairs and first in odd ones."""
    if number % 2:
        second = ours.turn(work, seconds)
        return there.turn(work, seconds), second
    first = there.turn(work, seconds)
    return first, ours.turn(work, seconds)


def block(work: Work, turns: Turns, *names: str) -> Iterator[str]:
    """The lines of one work."""
    yield f"\n{work.says:<32}{names[0]:>26}{names[1]:>26}   ratio"
    for name, number in _COLUMNS:
        yield from line(name, turns, number)
    there = {name for pair in turns for side in pair for name in side.cpu}
    for process in (process for process in _CPU if process in there):
        yield from line(f"  {_CPU[process]}", turns, lambda turn, process=process: turn.cpu.get(process))
    for name, side in zip(names, zip(*turns, strict=True), strict=True):
        wrong = {status for turn in side for status in turn.statuses} - {200, 201}
        if wrong:
            yield f"  {name} also answered {', '.join(str(status) for status in sorted(wrong))}"


def line(name: str, turns: Turns, number: Callable[[Measured], float | None]) -> Iterator[str]:
    """One line, if there is anything to show: both sides, and the ratio of this tree's to the other's."""
    pairs = [(number(there), number(ours)) for there, ours in turns]
    theirs, ours = ([side for side in column if side is not None] for column in zip(*pairs, strict=True))
    if not theirs and not ours:
        return
    ratios = [mine / other for other, mine in pairs if mine is not None and other]
    ratio = f"{Spread.of(ratios):.2f}" if ratios else "-"
    yield f"  {name:<30}{show(theirs):>26}{show(ours):>26}   {ratio}"


def show(numbers: list[float]) -> str:
    """A spread in a column's width."""
    if not numbers:
        return "-"
    spread = Spread.of(numbers)
    return f"{spread:.0f}" if spread.median >= 100 else f"{spread:.2f}"


if __name__ == "__main__":
    main()

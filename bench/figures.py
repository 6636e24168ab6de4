"""The figures of this revision, kept: one line of `bench/figures.csv` for each revision or release.

`make bench-figures`, or `python -m bench.figures [--seconds S] [--turns N]`. A revision that has a line gets it
replaced. The newest line is what docs/operate.md shows; absolute figures tell of the machine they were measured on, so
compare the shares of pgbench, and revisions by `make bench-compare`.
"""

import argparse
import csv
import os
from collections.abc import Callable, Iterable, Mapping

from bench import bare, model, works
from bench.installed import PROJECT, here
from bench.works import Measured, Spread, Work
from custody.kit import clock

FILE = PROJECT / "bench" / "figures.csv"
PAGE = PROJECT / "docs" / "operate.md"
_BEGIN, _END = "<!-- figures: make bench-figures -->\n", "<!-- end of figures -->\n"
_WHAT = ("revision", "date", "cores", "turns", "commit_ms")
# A column's ending, and what it has of one turn.
_OF_WORK: dict[str, Callable[[Measured], float | None]] = {
    "of_pgbench": lambda turn: turn.of_bare,
    "of_model": lambda turn: model.share(turn, os.cpu_count() or 1),
    "rate": lambda turn: turn.rate,
    "p50_ms": lambda turn: turn.p50,
    "p99_ms": lambda turn: turn.p99,
    "cpu_us": lambda turn: turn.service_cpu,
    "postgres_us": lambda turn: turn.cpu["postgres"],
    "pgbench_rate": lambda turn: turn.bare_rate,
    "pgbench_postgres_us": lambda turn: turn.cpu.get(works.BARE_POSTGRES),
    "pgbench_of_model": lambda turn: model.bare_share(turn, os.cpu_count() or 1),
}
COLUMNS = (*_WHAT, *(f"{work.name}_{ending}" for work in works.WORKS for ending in _OF_WORK))


def main() -> None:
    """Measure this tree, keep its line, and put the newest into the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description="Measure this revision and keep it.")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each turn lasts (4)")
    parser.add_argument("--turns", type=int, default=7, help="how often each work is measured (7)")
    parser.add_argument("--page", action="store_true", help="measure nothing; write the newest line into the page")
    given = parser.parse_args()
    if not given.page:
        keep(measure(given.seconds, given.turns))
    PAGE.write_text(with_figures(PAGE.read_text(), newest()))


def measure(seconds: float, turns: int) -> dict[str, str]:
    """One line: medians of all works, which take turns so that a slow minute is in each."""
    found: dict[str, list[Measured]] = {work.name: [] for work in works.WORKS}
    with works.stage(here()) as stage:
        commit = bare.commits(stage.deployment.signer_url, 2).milliseconds
        for _ in range(turns):
            for work in works.WORKS:
                found[work.name].append(stage.turn(work, seconds))
    line = dict(
        zip(
            _WHAT,
            (here().revision, f"{clock.now():%Y-%m-%d}", str(os.cpu_count()), str(turns), f"{commit:.2f}"),
            strict=True,
        )
    )
    return line | {column: text for work in works.WORKS for column, text in _columns(work, found[work.name]).items()}


def _columns(work: Work, turns: list[Measured]) -> dict[str, str]:
    found = {}
    for ending, number in _OF_WORK.items():
        numbers = [value for turn in turns if (value := number(turn)) is not None]
        found[f"{work.name}_{ending}"] = round_off(Spread.of(numbers).median) if numbers else ""
    return found


def round_off(number: float) -> str:
    """As many digits as two runs have in common."""
    return f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def read_lines() -> list[dict[str, str]]:
    """Every line, the oldest first."""
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        return list(csv.DictReader(file))


def keep(line: Mapping[str, str]) -> None:
    """Append a line, or replace the one of the same revision."""
    lines = [other for other in read_lines() if other["revision"].rstrip("+") != line["revision"].rstrip("+")]
    with FILE.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows([*lines, line])


def newest() -> dict[str, str]:
    """The line that the page shows."""
    return read_lines()[-1]


def with_figures(page: str, line: Mapping[str, str]) -> str:
    """A page with its table made again from a line."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return "".join([before, _BEGIN, *(f"{row}\n" for row in _table(line)), _END, after])


def _table(line: Mapping[str, str]) -> Iterable[str]:
    yield (
        f"Revision {line['revision'].rstrip('+')}, {line['date']}, {line['cores']} cores that also carried the load,"
        f" {works.AGENTS:,} agents, a commit {line['commit_ms']} ms; medians of {line['turns']}:"
    )
    yield ""
    yield "| Work | a second | of pgbench | ms at 50 / 99 % | CPU us an act | of it Postgres | of the model |"
    yield "|---|---|---|---|---|---|---|"
    for work in works.WORKS:
        of = {ending: line[f"{work.name}_{ending}"] or "-" for ending in _OF_WORK}
        yield (
            f"| {work.says} | {of['rate']} | {of['of_pgbench']} | {of['p50_ms']} / {of['p99_ms']} | {of['cpu_us']}"
            f" | {of['postgres_us']} | {of['of_model']} |"
        )
    yield ""
    yield "\n".join(model.page(line))


if __name__ == "__main__":
    main()

"""Writes the tables of docs/proxy.md from what is declared: `make clients` does it when all of it holds."""

from pathlib import Path

from tests.clients.installed import version_of
from tests.clients.table import STEPS, Client, Run, runs

PAGE = Path(__file__).parents[2] / "docs" / "proxy.md"
BEGIN, END = "<!-- from tests/clients/table.py -->", "<!-- end -->"


def tables() -> str:
    """The two tables: what is done, and each client with what came of it."""
    lines = ["| Step | What the client does | What comes of it |", "|---|---|---|"]
    lines += [f"| {name} | {step.done} | {step.result} |" for name, step in STEPS.items()]
    lines += ["", "| Client | Version | Form | Token | Done | Result |", "|---|---|---|---|---|---|"]
    for client, run in runs():
        lines += [_row(client, run, *part) for part in _parts(run)]
    return "\n".join(lines)


def fill(page: str) -> str:
    """The page with its tables as they are declared."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


def _parts(run: Run) -> list[tuple[str, str]]:
    works = [step for step in run.steps if step not in run.refused]
    parts = [(", ".join(works), "as above")] if works else []
    return parts + [(step, words) for step, (_, words) in run.refused.items()]


def _row(client: Client, run: Run, done: str, result: str) -> str:
    return f"| {client.name} | {version_of(*client.package)} | {run.form} | {run.place} | {done} | {result} |"


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text()))

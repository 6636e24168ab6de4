"""Every client of the table does what its row says, with nothing set but what its user would set."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients import installed
from tests.clients.conftest import World
from tests.clients.table import Client, Run, judge, quick_runs, runs

pytestmark = pytest.mark.long
# CI tries each place of the token once; `make clients` everything.
TRIED = list(runs() if os.environ.get("TEST_CLIENTS") else quick_runs())
NAMES = [f"{client.name}-{run.form}-{run.place}" for client, run in TRIED]


def version(client: Client) -> str:
    """The version that runs here."""
    kind, name = client.package
    if kind != "system":
        return installed.version_of(kind, name)
    said = subprocess.run([name, "--version"], capture_output=True, text=True, check=True, timeout=30).stdout
    return next(word for word in said.split() if word[0].isdigit())


@pytest.mark.parametrize(("client", "run"), TRIED, ids=NAMES)
def test_the_client_works_as_the_table_says(
    world: World, client: Client, run: Run, tmp_path: Path, record_property: Any
) -> None:
    got = world.run(client, run, tmp_path)
    verdicts = {step: judge(step, got.get(step), run) for step in run.steps}
    shown = {"client": client.name, "version": version(client), "form": run.form, "place": run.place}
    for name, value in shown.items():
        record_property(name, value)
    record_property("results", {step: words for step, (_, words) in verdicts.items()})

    wrong = {step: words for step, (good, words) in verdicts.items() if not good}
    assert (wrong, world.strays()) == ({}, [])
    assert not world.leaks()
    assert world.faults() == []

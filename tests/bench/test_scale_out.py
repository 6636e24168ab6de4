"""Two of each process on one database, behind a pooler and with shared limits, answer what one of each answers."""

import subprocess
import sys

import pytest

from bench.installed import PROJECT
from tests.outside.pgbouncer import KEEPS_STATEMENTS, version


@pytest.mark.long
def test_two_of_each_answer_every_request() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "bench.scale_out", "--seconds", "1", "--pairs", "1"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-4000:]
    lines = done.stdout.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "sign",
        "GET an agent",
        "proxied",
        "sign",
        "sign",
        "GET an agent",
    ]
    refused = [line for line in lines if "forgets prepared statements" in line]
    assert len(refused) == (version() < KEEPS_STATEMENTS)
    assert [line for line in lines if "also answered" in line] == []

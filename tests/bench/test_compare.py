"""Two revisions are deployed side by side, measured in turn, and leave nothing behind."""

import subprocess
import sys

import pytest

from bench.installed import PROJECT

# Sources that were unpacked from an archive have no revisions.
pytestmark = pytest.mark.skipif(
    subprocess.run(["git", "-C", PROJECT, "rev-parse", "HEAD"], capture_output=True, check=False).returncode != 0,
    reason="it compares revisions, and this is no checkout",
)


def git(*words: str) -> str:
    return subprocess.run(["git", "-C", PROJECT, *words], capture_output=True, text=True, check=True).stdout


def compare(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "bench.compare", *words], cwd=PROJECT, capture_output=True, text=True, check=False
    )


@pytest.mark.long
def test_a_revision_is_measured_against_this_tree() -> None:
    before = git("worktree", "list")

    done = compare("HEAD", "--agents", "3", "--pairs", "2", "--seconds", "1", "--only", "sign1,get")

    assert done.returncode == 0, done.stderr[-4000:]
    blocks = done.stdout.split("\n\n")
    assert [block.split("  ")[0] for block in blocks[1:]] == ["sign, many agents, 1 client", "GET an agent, 16 clients"]
    lines = {line[:30].strip(): line for line in blocks[1].splitlines()}
    assert {
        "a second",
        "ms at 99 %",
        "of pgbench",
        "CPU us an act",
        "of it api",
        "of it signer",
        "of it Postgres",
        "pgbench's Postgres",
    } <= lines.keys()
    assert "also answered" not in done.stdout
    assert git("worktree", "list") == before


def test_an_unknown_revision_or_work_is_refused_with_a_sentence() -> None:
    unknown = compare("no-such-revision")
    wrong = compare("HEAD", "--only", "sign16,nothing")

    assert (unknown.returncode, wrong.returncode) == (1, 1)
    assert "no-such-revision" in unknown.stderr
    assert "--only: there is no nothing; there are sign1, sign16, sign64, hot, get" in wrong.stderr
    assert "Traceback" not in unknown.stderr + wrong.stderr

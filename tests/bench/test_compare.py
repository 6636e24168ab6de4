"""What cannot be compared is refused before anything is deployed."""

import subprocess
import sys

import pytest

from bench.installed import PROJECT

# Sources that were unpacked from an archive have no revisions.
pytestmark = pytest.mark.skipif(
    subprocess.run(["git", "-C", PROJECT, "rev-parse", "HEAD"], capture_output=True, check=False).returncode != 0,
    reason="it compares revisions, and this is no checkout",
)


def compare(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "bench.compare", *words], cwd=PROJECT, capture_output=True, text=True, check=False
    )


def test_an_unknown_revision_or_work_is_refused_with_a_sentence() -> None:
    unknown = compare("no-such-revision")
    wrong = compare("HEAD", "--only", "sign16,nothing")

    assert (unknown.returncode, wrong.returncode) == (1, 1)
    assert "no-such-revision" in unknown.stderr
    assert "--only: there is no nothing; there are sign1, sign16, sign64, hot, get" in wrong.stderr
    assert "Traceback" not in unknown.stderr + wrong.stderr

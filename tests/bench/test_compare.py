"""Comparisons that are impossible are refused before anything is deployed."""

import subprocess
import sys

from bench.installed import PROJECT


def compare(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "bench.compare", *words], cwd=PROJECT, capture_output=True, text=True, check=False
    )


def test_an_unknown_revision_or_work_is_refused_with_a_sentence() -> None:
    unknown = compare("no-such-revision")
    wrong = compare("HEAD", "--only", "sign16,nothing")

    assert (unknown.returncode, wrong.returncode) == (1, 1)
    # What git says of it; of sources that were unpacked from an archive, that they have no revisions.
    assert unknown.stderr.startswith("git ")
    assert "--only: there is no nothing; there are sign1, sign16, sign64, hot, get" in wrong.stderr
    assert "Traceback" not in unknown.stderr + wrong.stderr

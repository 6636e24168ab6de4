"""Redocly finds nothing to say about the contract; redocly.yaml names what it is not asked, and why."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.generators import installed

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(installed.missing() is not None, reason=installed.missing() or ""),
]


def test_the_contract_is_clean_by_the_strict_rules_of_redocly(contract: Path) -> None:
    installed.install_node()

    done = subprocess.run(
        [installed.NODE / "redocly", "lint", "--config", installed.HERE / "redocly.yaml", contract],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"},
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in (done.stdout + done.stderr).replace("Deprecation warning: Node.js", "")

"""Fixtures of the console's tests."""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.image import SVGImageSnapshotExtension


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration folder of this test's own."""
    return tmp_path / "config"


@pytest.fixture
def pictures(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Compare a picture with the kept one; `make snapshots` keeps new ones."""
    return snapshot.use_extension(SVGImageSnapshotExtension)

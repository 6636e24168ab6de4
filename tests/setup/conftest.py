"""A state folder for each test, in a place that unprivileged users can enter, as an installation would be."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from custody.cli import places


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A short folder that others may enter."""
    folder = Path(tempfile.mkdtemp(prefix="cs-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def home(open_folder: Path) -> places.Home:
    """A fresh state folder."""
    return places.open_home(open_folder / "home")

"""A state folder for each test, in a place that unprivileged users can enter, as an installation would be."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ops import places


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A short folder that others may enter."""
    with _open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def shared_folder() -> Iterator[Path]:
    """The same for all tests of a file: what is dear to set up is set up once."""
    with _open_folder() as folder:
        yield folder


@contextmanager
def _open_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="cs-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def home(open_folder: Path) -> places.Home:
    """A fresh state folder."""
    return places.open_home(open_folder / "home")

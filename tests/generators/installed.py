"""Foreign generators, each as its lock file has it, installed once; the product depends on none of them."""

from pathlib import Path

from tests.outside import foreign_python, npm
from tests.outside.npm import missing

__all__ = ["NODE", "PYTHON", "install_node", "install_python", "missing"]

HERE = Path(__file__).parent
NODE = HERE / "node_modules" / ".bin"
PYTHON = foreign_python.folder_of("generators")


def install_node() -> None:
    """Install what package-lock.json names."""
    npm.install(HERE)


def install_python() -> None:
    """Install what requirements.lock names into an environment of its own."""
    foreign_python.install(HERE, "generators")

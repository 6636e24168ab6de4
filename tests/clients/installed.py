"""The clients, each as its lock file has it, installed once; the product depends on none of them."""

import re
from pathlib import Path

import msgspec

from tests.outside import foreign_python, npm
from tests.outside.npm import missing

__all__ = ["PYTHON", "install_node", "install_python", "missing", "version_of"]

HERE = Path(__file__).parent
NODE_MODULES = HERE / "node_modules"
PYTHON = foreign_python.folder_of("clients") / "python"


def install_node() -> None:
    """Install what package-lock.json names."""
    npm.install(HERE)


def install_python() -> None:
    """Install what requirements.lock names into an environment of its own."""
    foreign_python.install(HERE, "clients")


def version_of(kind: str, package: str) -> str:
    """Read from the lock file which version of a package is tried; of a program of the system no page can say it."""
    if kind == "python":
        found = re.search(rf"^{re.escape(package)}==(\S+)", (HERE / "requirements.lock").read_text(), re.MULTILINE)
        return found[1] if found else ""
    if kind == "node":
        lock = msgspec.json.decode((HERE / "package-lock.json").read_bytes())
        return str(lock["packages"][f"node_modules/{package}"]["version"])
    return "the system's"

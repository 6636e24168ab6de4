"""Libraries that the client adapts to, in the lowest and the newest versions, each set apart."""

from pathlib import Path

from tests.outside import foreign_python

HERE = Path(__file__).parent
SETS = ("lowest", "newest")


def python_of(name: str) -> Path:
    """Return the Python of a set, installing what its lock names if that was not done yet."""
    return foreign_python.install(HERE / name, f"sdk-{name}")

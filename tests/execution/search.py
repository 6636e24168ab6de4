"""Looks for the first case that breaks a law: `python -m tests.execution.search KIND CASES` writes what it found.

For controls, which run it on a copy of the package in which a fault was put back.
"""

import importlib
import sys
from collections.abc import Callable

import msgspec

import custody
from custody.chains import built_in, families
from tests.execution.cases import Case, Run, Tally

KINDS = ("evm", "typed", "solana")


class Found(msgspec.Struct, frozen=True):
    """The package that was searched, after how many cases the search ended, and what broke the law, if anything did."""

    package: str
    cases: int
    law: str | None = None
    says: str | None = None


def kind_of(name: str) -> tuple[Callable[[int], Case], Run]:
    """Look up how a kind of case is drawn, and run."""
    module = importlib.import_module(f"tests.execution.{name}_cases")
    return module.case, module.run


def search(name: str, most: int) -> Found:
    """Run cases until one breaks a law."""
    case, run = kind_of(name)
    package = str(custody.__path__[0])
    for number in range(most):
        for wrong in run(case(number), Tally()):
            return Found(package, number + 1, wrong.law, str(wrong))
    return Found(package, most)


if __name__ == "__main__":
    families.hand_in(built_in.LISTED)
    sys.stdout.write(msgspec.json.encode(search(sys.argv[1], int(sys.argv[2]))).decode())

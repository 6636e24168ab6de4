"""How much a stranger reads to audit a worker, with all our own modules that it imports: `make check` prints it."""

import sys

from tests.fixtures.imports import PACKAGES, closure, modules_of

# What each may come to, in lines.
MOST = {"the signer": 29_900, "identity": 18_940, "one order: signer/decide.py": 19_600}


def starts() -> dict[str, list[str]]:
    """The modules whose imports are followed."""
    found = {"the signer": modules_of("signer"), "one order: signer/decide.py": ["signer.decide"]}
    return found | ({"identity": modules_of("identity")} if "identity" in PACKAGES else {})


def lines_and_files(modules: list[str]) -> tuple[int, int]:
    """The size of some modules and of what they import."""
    files = closure(modules)
    return sum(len(file.read_text().splitlines()) for file in files), len(files)


if __name__ == "__main__":
    over = False
    for what, modules in starts().items():
        lines, files = lines_and_files(modules)
        over = over or lines > MOST[what]
        print(f"{what}: {lines:,} lines in {files} files, of at most {MOST[what]:,}")
    sys.exit(over)

"""The amount a stranger reads to audit a worker, with all our own modules that it imports: `make check` prints it."""

import sys

from tests.fixtures.imports import PACKAGES, closure, modules_of

# What each may come to, in lines. It may fall without a word; what raises it needs a record that says what is given up.
MOST = {
    "the signer": 31_000,
    "identity": 19_300,
    "an EVM order": 11_630,
    "typed data": 12_460,
    "a Solana order": 11_720,
    "a PSBT": 13_260,
    "a message": 11_340,
}
# The path that all take, the plainest way to come, and the kind of order: `signer/__main__.py` hands the others in.
ORDERS = {
    "an EVM order": "evm",
    "typed data": "typed_data",
    "a Solana order": "solana",
    "a PSBT": "bitcoin",
    "a message": "message",
}


def starts() -> dict[str, list[str]]:
    """The modules whose imports are followed."""
    found = {"the signer": modules_of("signer")}
    found |= {what: ["signer.decide", "signer.direct", f"signer.orders.{kind}"] for what, kind in ORDERS.items()}
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

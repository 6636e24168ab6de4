"""The amount a stranger reads to audit a worker, with all our own modules that it imports: `make check` prints it."""

import sys

from tests.fixtures.imports import PACKAGES, ROOT, closure, modules_of

# What each may come to, in lines. It may fall without a word; what raises it needs a record that says what is given up.
MOST = {
    "the signer": 37_700,
    "identity": 20_680,
    "an EVM order": 9_185,
    "typed data": 10_465,
    "a Solana order": 9_705,
    "a PSBT": 11_245,
    "a message": 8_955,
    "the kinds of rule": 2_500,
}
# A kind of rule is read by whose agents have it: the path of an order knows none, and they are counted by themselves.
RULES = "custody.policies.kinds"
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
    return (
        found
        | ({"identity": modules_of("identity")} if "identity" in PACKAGES else {})
        | {"the kinds of rule": [RULES]}
    )


def lines_and_files(what: str, modules: list[str]) -> tuple[int, int]:
    """The size of what a stranger reads for one of them."""
    rules = {file for file in closure([RULES]) if file.parent == ROOT / RULES.replace(".", "/")}
    files = closure(modules)
    if what == "the kinds of rule":
        files = rules
    elif what in ORDERS:
        files = files - rules
    return sum(len(file.read_text().splitlines()) for file in files), len(files)


if __name__ == "__main__":
    over = False
    for what, modules in starts().items():
        lines, files = lines_and_files(what, modules)
        over = over or lines > MOST[what]
        print(f"{what}: {lines:,} lines in {files} files, of at most {MOST[what]:,}")
    sys.exit(over)

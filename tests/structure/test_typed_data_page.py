"""docs/orders.md names every kind of document that is read, and no other one."""

import re
from pathlib import Path

from custody.chains.evm.typed_kinds import CALLS, HARMLESS, READERS, UNREAD, WITNESSES

PAGE = (Path(__file__).parents[2] / "docs" / "orders.md").read_text()
KINDS = re.split(r"^##", PAGE.split("### Which kinds are read\n", 1)[1], flags=re.MULTILINE)[0]
ROWS = [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\|.*\|$", KINDS, re.MULTILINE)][2:]
# Known by their shape, since what they hold differs; and a type that only another one holds.
SHAPES = {"BulkOrder", "PermitWitnessTransferFrom", "PermitBatchWitnessTransferFrom", "BurnIntent"}
# What other rows refer to without naming a kind of their own.
PARTS = {"PermitDetails", "TokenPermissions"}


def names(spelled: object) -> set[str]:
    return {each.split("(", 1)[0] for each in spelled}  # type: ignore[attr-defined]


def test_every_kind_has_its_row_and_every_row_its_kind() -> None:
    told = {name for row in ROWS for name in re.findall(r"`((?:[A-Z]\w+:)?[A-Z]\w+)`", row[1])}
    known = names(READERS) | names(CALLS) | names(WITNESSES) | names(UNREAD) | names(HARMLESS) | SHAPES

    assert told - known - {"GatewayWalletBatched"} == set()
    assert known - told == PARTS


def test_a_row_says_of_each_kind_that_counts_what_counts() -> None:
    read = {
        name for row in ROWS if row[2] not in ("nothing", "moves nothing") for name in re.findall(r"`([\w:]+)`", row[1])
    }

    assert (names(READERS) | names(CALLS)) - read == set()
    assert all(all(row) and len(row) == 5 for row in ROWS)

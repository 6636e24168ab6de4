"""All that a worker seals or authenticates stands in a registry of the rotation, or nothing would move it on."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from custody.worker.registry import ENDS, IDENTITY_TABLES, Kind, Maced
from custody.worker.token_keys import AGENT_KEYS, SESSION_KEYS
from identity.rotation import registry as identitys
from signer.rotation import registry as signers

ROOT = Path(__file__).parents[2]
KINDS: tuple[Kind, ...] = (*signers.KINDS, *identitys.KINDS)
MACS = {kind.purpose for kind in KINDS if isinstance(kind, Maced)} | {end.purpose for end in ENDS}
PURPOSES = signers.PURPOSES | identitys.PURPOSES
# What makes, moves and checks whatever the registry says.
MACHINERY = {
    "custody/worker/sealing.py",
    "custody/worker/registry.py",
    "signer/rotation/registry.py",
    "identity/rotation/registry.py",
    "signer/statement_keys.py",
}
# A statement key authenticates by itself: it is sealed, and stays the same under every version of the master key.
BY_ITSELF = "statement_keys"


def calls(*names: str) -> Iterator[tuple[str, Any, ast.Call]]:
    """Every call in a worker of something with one of these names: its file, its module, the call."""
    for file in sorted(
        file for folder in ("signer", "identity", "custody/worker") for file in (ROOT / folder).rglob("*.py")
    ):
        place = str(file.relative_to(ROOT))
        if place in MACHINERY:
            continue
        tree = ast.parse(file.read_text())
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) in names]
        for call in (call for call in found if BY_ITSELF not in ast.unparse(call.func)):
            yield place, importlib.import_module(place.removesuffix(".py").replace("/", ".")), call


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def value_of(module: Any, said: ast.expr) -> str:
    """The text that an expression of a module is; what is no constant is spelled out so that this can be read."""
    if isinstance(said, ast.Constant):
        return str(said.value)
    if isinstance(said, ast.Name):
        return str(getattr(module, said.id, f"<{said.id}>"))
    if isinstance(said, ast.Attribute) and isinstance(said.value, ast.Name):
        return str(getattr(getattr(module, said.value.id), said.attr))
    return ast.unparse(said)


def test_every_purpose_of_a_mac_has_its_entry() -> None:
    used: dict[str, str] = {}
    for place, module, call in calls("mac", "mac_like", "check_mac", "_check"):
        said = call.args[0 if _name(call.func) == "mac" else 1]
        if _name(call.func) == "_check" and place != "custody/worker/proofs.py":
            continue
        used[value_of(module, said)] = place
    # The checker in proofs passes on what its callers say.
    assert {purpose: place for purpose, place in used.items() if purpose not in MACS | {"<purpose>"}} == {}
    assert {purpose for purpose in MACS if purpose not in used} == set(), "in the registry, but nothing makes it"


def test_every_place_of_a_sealed_value_has_its_entry() -> None:
    # There it is a field.
    token_keys = "custody/worker/token_keys.py"
    used = {
        (value_of(module, call.args[1]), place)
        for place, module, call in calls("Context")
        if len(call.args) >= 4 and place != token_keys
    }
    used |= {(store.owner_kind, token_keys) for store in (AGENT_KEYS, SESSION_KEYS)}

    assert {(kind, place) for kind, place in used if kind not in PURPOSES} == set()
    assert set(PURPOSES) == {kind for kind, _ in used}


def test_the_signer_knows_what_identity_keeps() -> None:
    """Else it would retire a version of the key that identity's rows still need."""
    assert {kind.table: kind.what for kind in identitys.KINDS} == IDENTITY_TABLES


def test_the_page_and_the_registry_name_the_same() -> None:
    page = (ROOT / "docs/sealed-blob.md").read_text()

    assert {purpose for purpose in MACS if f"| `{purpose}` |" not in page} == set()
    for kind, purposes in PURPOSES.items():
        assert f"`{kind}`" in page
        assert [purpose for purpose in purposes if f"`{purpose}`" not in page] == []


@pytest.mark.parametrize("column", ["mac", "blob"])
def test_every_column_that_holds_one_is_of_a_table_in_the_registry(column: str) -> None:
    sql = "".join(file.read_text() for file in sorted((ROOT / "custody/migrations").glob("*.sql")))
    tables = {
        block.split("(")[0].strip() for block in sql.split("CREATE TABLE ")[1:] if f"\n  {column} " in _columns(block)
    }

    known = {kind.table for kind in KINDS} | {end.table for end in ENDS}
    assert tables - known == set()
    assert tables


def _columns(block: str) -> str:
    """A table's columns, with one blank behind each name."""
    lines = block.split("\n);", maxsplit=1)[0].splitlines()
    return "\n".join("  " + " ".join(line.split()) for line in lines)

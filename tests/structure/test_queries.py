"""Decision 0007: SQL is called from stores only, so that one place says which tenant's rows are read."""

import ast
from pathlib import Path

from tests.fixtures.each import each
from tests.outside.processes import PROJECT

_CALLS = {"fetch", "fetchrow", "fetchval", "execute", "executemany", "copy_records_to_table"}
# The connection itself, what stands before it, a bound on one, and what every worker does in a command's transaction.
_BESIDE = {f"custody/kit/{name}.py" for name in ("db", "models", "poolers", "reading", "schema_version")}
# What jobs hold while they run, and how they end.
_BESIDE |= {"scheduler/run.py"}
FILES = [
    path.relative_to(PROJECT)
    for package in ("api", "custody", "scheduler")
    for path in sorted((PROJECT / package).rglob("*.py"))
    if "custody/worker" not in path.as_posix() and "custody/database" not in path.as_posix()
]


@each("path", FILES, ids=str)
def test_only_a_store_runs_sql(path: Path) -> None:
    name = str(path)
    if name in _BESIDE or name.endswith(("store.py", "/ledger.py")):
        return
    tree = ast.parse((PROJECT / name).read_text())
    found = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CALLS
    ]
    assert found == []

"""The tools are held against the contract: each code has a class, and each field that is read is one of an answer's."""

import json
import re
from typing import Any

from mcp_server.outcomes import CLASSES
from tests.fixtures.imports import ROOT

# The operations behind the tools; `wait_for_decision` and tasks read and withdraw a transaction.
OPERATIONS = {
    "getAgent",
    "getBalance",
    "getDashboard",
    "getMe",
    "getTransaction",
    "listCallableApis",
    "listTransactions",
    "payDemand",
    "signEvmTransaction",
    "signTypedData",
    "simulateOrder",
    "withdrawTransaction",
}
# Codes that are an outcome of their own.
OUTCOMES = {"approval_required"}
READ = re.compile(r'\.get\("(\w+)"\)')
# Words of an argument, and of what the tools make themselves.
OTHERS = {"asset", "body", "payment_name", "outcome"}
CONTRACT: dict[str, Any] = json.loads((ROOT / "openapi.json").read_text())


def operations() -> list[dict[str, Any]]:
    return [
        operation
        for path in CONTRACT["paths"].values()
        for operation in path.values()
        if operation.get("operationId") in OPERATIONS
    ]


def follow(schema: Any) -> Any:
    while isinstance(schema, dict) and "$ref" in schema:
        found: Any = CONTRACT
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def fields(schema: Any, seen: set[int]) -> set[str]:
    schema = follow(schema)
    if id(schema) in seen:
        return set()
    seen.add(id(schema))
    if isinstance(schema, list):
        return set().union(*(fields(one, seen) for one in schema))
    if not isinstance(schema, dict):
        return set()
    named = set(schema.get("properties", {}))
    return named.union(*(fields(one, seen) for one in schema.values()))


def codes() -> set[str]:
    found = set()
    for operation in operations():
        for answer in operation["responses"].values():
            found |= set(re.findall(r"`([a-z0-9_]+)`", follow(answer).get("description", "")))
    return found


def test_every_operation_of_the_tools_is_in_the_contract() -> None:
    assert {operation["operationId"] for operation in operations()} == OPERATIONS


def test_every_code_of_the_tools_operations_has_a_class() -> None:
    assert codes() - CLASSES.keys() - OUTCOMES == set()


def test_every_code_of_the_proxy_has_a_class() -> None:
    page = (ROOT / "docs/proxy.md").read_text()
    statuses = page[page.index("\n## Statuses") : page.index("\n## Limits")]
    said = set(re.findall(r"`([a-z]+_[a-z0-9_]+|crowded|frozen|internal|unavailable)`", statuses))
    assert said - CLASSES.keys() - OUTCOMES - {"authentication_error", *re.findall(r"`(\w+_error)`", statuses)} == set()


def test_every_field_that_a_tool_reads_is_in_an_answer() -> None:
    answers: set[str] = set()
    for operation in operations():
        for answer in operation["responses"].values():
            answers |= fields(follow(answer).get("content", {}), set())
    read = {
        name
        for file in sorted((ROOT / "mcp_server").glob("*.py"))
        if file.name not in ("settings.py", "install.py", "arguments.py")
        for name in READ.findall(file.read_text())
    }
    assert len(read) > 20
    assert read - answers - OTHERS == set()

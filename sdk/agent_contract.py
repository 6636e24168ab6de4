"""The agent's part of the contract: what a token of an agent may call, and every schema that it reaches.

`scripts/sdk` writes it to `sdk/agent.json`. Clients in every language are made from that file, and by hand beside it.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CONTRACT, WRITTEN = HERE.parent / "openapi.json", HERE / "agent.json"
TOKEN = "agent_token"  # noqa: S105  the name of a scheme
# Whom else an operation takes, and what a page shows: nothing that a client of an agent is made from.
LEFT_OUT = frozenset({"example", "examples", "x-service-roles", "x-service-mfa"})
# Between these and the texts of their members stand names that somebody chose.
NAMED = frozenset({"properties", "mapping", "schemas", "responses", "headers", "parameters", "content", "paths"})


def cut(contract: Any) -> dict[str, Any]:
    """Cut a contract to the operations that take an agent's token alone, and to what they need."""
    paths: dict[str, Any] = {}
    for path, methods in contract["paths"].items():
        for method, operation in methods.items():
            if takes_a_token(operation):
                paths.setdefault(path, {})[method] = bare(operation) | {"security": [{TOKEN: []}]}
    tags = {tag for methods in paths.values() for operation in methods.values() for tag in operation["tags"]}
    about = {"title": "Custody, for agents", "version": contract["info"]["version"]}
    return {
        "openapi": contract["openapi"],
        "info": about | {"description": "What an agent's token may call; a part of /openapi.json."},
        "tags": [tag for tag in contract["tags"] if tag["name"] in tags],
        "paths": paths,
        "components": components(contract["components"], paths)
        | {"securitySchemes": {TOKEN: contract["components"]["securitySchemes"][TOKEN]}},
    }


def takes_a_token(operation: Any) -> bool:
    """Say whether an operation is there, and takes an agent's token with nothing beside it."""
    return {TOKEN: []} in operation.get("security", ()) and not operation.get("deprecated")


def bare(node: Any, *, named: bool = False) -> Any:
    """Return a part of a contract without examples, and with each field by one name."""
    if isinstance(node, list):
        return [bare(item) for item in node if not is_second(item)]
    if not isinstance(node, dict):
        return node
    return {
        name: bare(value, named=not named and name in NAMED)
        for name, value in node.items()
        if named or name not in LEFT_OUT
        if not (named and is_second(value))
    }


def is_second(node: Any) -> bool:
    """Say whether a field is the second name of another one."""
    return isinstance(node, dict) and "x-service-same-as" in node


def components(all_of_them: Any, paths: Any) -> dict[str, Any]:
    """Return the components that some paths refer to, directly or by others."""
    found: dict[str, dict[str, Any]] = {}
    todo = sorted(references(paths))
    while todo:
        _, _, kind, name = todo.pop().split("/")
        if name not in found.setdefault(kind, {}):
            found[kind][name] = bare(all_of_them[kind][name])
            todo += references(found[kind][name])
    return {kind: dict(sorted(parts.items())) for kind, parts in sorted(found.items())}


def references(node: Any) -> Iterator[str]:
    """Find every reference to a component."""
    if isinstance(node, dict):
        if isinstance(found := node.get("$ref"), str):
            yield found
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def text_of(contract: Any) -> str:
    """Return the file's text."""
    return json.dumps(cut(contract), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text_of(json.loads(CONTRACT.read_text())))

"""The contract in its plain form: each field by one name alone, for generators that make one name of two spellings.

Most typed languages do: `wallet_ids` and `walletIds` are one field to them. It says less than the contract and nothing
else, so a client that is made from it sends and reads what the contract has.
"""

from typing import Any

from api.http.contract.schemas import present


def plain(node: Any) -> Any:
    """The same part of the contract without second names."""
    if isinstance(node, list):
        return [plain(item) for item in node if not _is_second(item)]
    if not isinstance(node, dict):
        return node
    if "schema" in node and "example" in node:
        # A value; a property of that name stands among others, and none is called `schema`.
        return node | {"schema": plain(node["schema"])}
    shown = {name: plain(value) for name, value in node.items() if name != "x-service-needs"}
    if isinstance(node.get("properties"), dict) and node.get("type") == "object":
        shown["properties"] = {name: plain(one) for name, one in node["properties"].items() if not _is_second(one)}
        wanted = {*node.get("required", ()), *node.get("x-service-needs", ())}
        for name in node.get("x-service-needs", ()):
            # The other name cannot be sent in its place.
            shown["properties"][name] = present(shown["properties"][name])
        if required := [name for name in shown["properties"] if name in wanted]:
            shown["required"] = required
    if shown.get("format") == "uuid":
        # The form says it all, and some make a type of it that takes no pattern.
        shown = {name: value for name, value in shown.items() if name not in ("pattern", "minLength", "maxLength")}
    return shown


def _is_second(node: Any) -> bool:
    return isinstance(node, dict) and "x-service-same-as" in node

"""The types of the Python client, from `sdk/agent.json`: a `TypedDict` for each object, and a table of the operations.

They are for a type checker and for readers. Nothing is decoded by them: an answer with a field that a client does not
know is as good as one without.
"""

import json
import keyword
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CONTRACT, WRITTEN = HERE / "agent.json", HERE / "python/custody_sdk/_types.py"
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
HEAD = '''"""Types of what an agent sends and gets: made from sdk/agent.json, never edited."""

from __future__ import annotations

from typing import Any, Final, Literal, NotRequired, TypedDict

# Method and path of each operation.
'''


class Types:
    """The types of one contract, as they are found."""

    def __init__(self, contract: Any) -> None:
        self._schemas: dict[str, Any] = contract["components"]["schemas"]
        self._written: dict[str, str] = {}
        self._paths = contract["paths"]

    def text(self) -> str:
        """Return the module, before it is formatted."""
        table = self._table()
        written = "\n\n".join(self._written[name] for name in sorted(self._written))
        operations = "".join(f"    {name!r}: ({method!r}, {path!r}),\n" for name, (method, path) in table.items())
        return f"{HEAD}OPERATIONS: Final[dict[str, tuple[str, str]]] = {{\n{operations}}}\n\n{written}\n"

    def _table(self) -> dict[str, tuple[str, str]]:
        """Return method and path of each operation, writing the types of what each sends and gets."""
        table = {}
        for path, methods in self._paths.items():
            for method, operation in methods.items():
                table[operation["operationId"]] = (method.upper(), path)
                for schema in sent_and_got(operation):
                    self._reach(schema)
        return dict(sorted(table.items()))

    def _reach(self, schema: Any) -> None:
        """Write the type of a body, or of what an answer says in its envelope."""
        if name := name_of(schema):
            found = self._schemas[name]
            if {"ok", "data"} <= found.get("properties", {}).keys():
                self._reach(found["properties"]["data"])
            else:
                self._write(name, found)
        elif schema.get("type") == "array":
            self._reach(schema["items"])
        else:
            for one in schema.get("oneOf", schema.get("anyOf", ())):
                self._reach(one)

    def _write(self, name: str, schema: Any) -> None:
        if name in self._written:
            return
        # Before its parts, which may lead back to it.
        self._written[name] = ""
        properties = schema.get("properties")
        if properties is None:
            self._written[name] = f"type {name} = {self._type(schema, name)}"
            return
        required = schema.get("required", ())
        fields = {}
        for field, one in properties.items():
            kind = self._type(one, name + field[0].upper() + field[1:])
            fields[field] = kind if field in required else f"NotRequired[{kind}]"
        about = str(schema.get("description", f"A {name}.")).split("\n")[0].replace("\\", "\\\\")
        if all(field.isidentifier() and not keyword.iskeyword(field) for field in fields):
            lines = "".join(f"    {field}: {kind}\n" for field, kind in fields.items())
            self._written[name] = f'class {name}(TypedDict):\n    """{about}"""\n\n{lines}'
        else:
            # A field such as `from` can be named in no class.
            lines = "".join(f"        {field!r}: {kind!r},\n" for field, kind in fields.items())
            self._written[name] = f"# {about}\n{name} = TypedDict(\n    {name!r},\n    {{\n{lines}    }},\n)"

    def _type(self, schema: Any, name: str) -> str:
        """Return the type of a field; one that has fields itself gets this name."""
        if target := name_of(schema):
            self._write(target, self._schemas[target])
            return target
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            return f"Literal[{', '.join(repr(value) for value in values)}]"
        if union := schema.get("anyOf") or schema.get("oneOf"):
            return " | ".join(dict.fromkeys(self._type(one, name) for one in union))
        kind = schema.get("type")
        if kind == "array":
            return f"list[{self._type(schema.get('items', {}), name)}]"
        if kind == "object":
            if "properties" in schema:
                self._write(name, schema)
                return name
            inside = schema.get("additionalProperties")
            return f"dict[str, {self._type(inside, name) if isinstance(inside, dict) else 'Any'}]"
        return PLAIN.get(kind, "Any")


def name_of(schema: Any) -> str:
    """Return the name of the schema that this refers to, if it does."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def sent_and_got(operation: Any) -> Iterator[Any]:
    """Find the schemas of an operation's body and of its answers."""
    for part in (operation.get("requestBody", {}), *operation["responses"].values()):
        for medium in part.get("content", {}).values():
            yield medium["schema"]


def with_ruff(source: str) -> str:
    """Return it as `ruff format` has it."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(WRITTEN), "-"]
    ended = subprocess.run(command, input=source, capture_output=True, text=True, check=True, cwd=HERE.parent)  # noqa: S603
    return ended.stdout


def text_of(contract: Any) -> str:
    """Return the module's text."""
    return with_ruff(Types(contract).text())


if __name__ == "__main__":
    sys.stdout.write(text_of(json.loads(CONTRACT.read_text())))

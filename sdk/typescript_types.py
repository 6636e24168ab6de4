"""The types of the TypeScript client, from `sdk/agent.json`: an interface for each object, and the table of operations.

Nothing is decoded by them: an answer with a field that a client does not know is as good as one without.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any

from sdk.python_types import CONTRACT, HERE, Types

WRITTEN = HERE / "typescript/src/types.ts"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
HEAD = """// Types of what an agent sends and gets: made from sdk/agent.json, never edited.

/** Method and path of each operation. */
export const OPERATIONS = {
"""


class TypeScriptTypes(Types):
    """The types of one contract, as they are found, in TypeScript."""

    def text(self) -> str:
        """Return the module."""
        table = self._table()
        operations = "".join(f"  {name}: [{q(method)}, {q(path)}],\n" for name, (method, path) in table.items())
        written = "\n\n".join(self._written[name] for name in sorted(self._written))
        return f"{HEAD}{operations}}} as const;\n\n{written}\n"

    def _write(self, name: str, schema: Any) -> None:
        if name in self._written:
            return
        # Before its parts, which may lead back to it.
        self._written[name] = ""
        about = str(schema.get("description", f"A {name}.")).split("\n")[0].replace("*/", "* /")
        if "properties" in schema:
            self._written[name] = f"/** {about} */\nexport interface {name} {self._fields(schema, name)}"
        else:
            self._written[name] = f"/** {about} */\nexport type {name} = {self._type(schema, name)};"

    def _fields(self, schema: Mapping[str, Any], name: str) -> str:
        required = schema.get("required", ())
        lines = [
            f"  {field}{'' if field in required else '?'}: {self._type(one, name + field[0].upper() + field[1:])};\n"
            for field, one in schema["properties"].items()
        ]
        return f"{{\n{''.join(lines)}}}"

    def _type(self, schema: Any, name: str) -> str:
        """Return the type of a field; one that has fields itself gets this name."""
        if "const" in schema or "enum" in schema:
            return " | ".join(q(value) for value in schema.get("enum", [schema.get("const")]))
        if union := schema.get("anyOf") or schema.get("oneOf"):
            return " | ".join(dict.fromkeys(self._type(one, name) for one in union))
        kind = schema.get("type")
        if kind == "array":
            return f"Array<{self._type(schema.get('items', {}), name)}>"
        if kind == "object" and "properties" not in schema:
            inside = schema.get("additionalProperties")
            return f"Record<string, {self._type(inside, name) if isinstance(inside, dict) else 'unknown'}>"
        if kind == "object" or "$ref" in schema:
            return super()._type(schema, name)
        return PLAIN.get(kind, "unknown")


def q(value: Any) -> str:
    """Return a value as it is written in TypeScript."""
    return json.dumps(value, ensure_ascii=False)


def text_of(contract: Any) -> str:
    """Return the module's text."""
    return TypeScriptTypes(contract).text()


if __name__ == "__main__":
    sys.stdout.write(text_of(json.loads(CONTRACT.read_text())))

"""Arguments of tools: each with its form and an example, checked before anything is asked of the service."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mcp_server.outcomes import ToolError

# A document or a demand, as JSON; the service takes less.
MAX_OBJECT_BYTES = 256 << 10
_LARGEST = 2**53


@dataclass(frozen=True)
class Argument:
    """One argument. `schema` is its JSON Schema; `form` and `example` are for the sentence that refuses another."""

    schema: dict[str, Any]
    form: str
    example: str
    required: bool = True

    @property
    def optional(self) -> "Argument":
        """The same, not required."""
        return Argument(self.schema, self.form, self.example, required=False)


def text(pattern: str, description: str, form: str, example: str) -> Argument:
    """An argument that is a text of one form."""
    return Argument({"type": "string", "pattern": f"^{pattern}$", "description": description}, form, example)


def any_text(description: str, example: str) -> Argument:
    """An argument that is any text."""
    return Argument({"type": "string", "description": description}, "a text", example)


def number(least: int, most: int, description: str, example: int) -> Argument:
    """An argument that is a whole number."""
    schema = {"type": "integer", "minimum": least, "maximum": most, "description": description}
    return Argument(schema, f"a whole number from {least} to {most}", str(example))


def one_of(words: tuple[str, ...], description: str) -> Argument:
    """An argument that is one of a few words."""
    return Argument(
        {"type": "string", "enum": list(words), "description": description}, f"one of {', '.join(words)}", words[0]
    )


def thing(description: str, form: str, example: str, *, or_text: bool = False) -> Argument:
    """An argument that is a JSON object, or where `or_text` says so a text that stands for one."""
    return Argument({"type": ["object", "string"] if or_text else "object", "description": description}, form, example)


PAYMENT_NAME = text(
    "[!-~]{3,64}",
    "Your name for THIS payment, such as invoice-4711. Use it again only to repeat this same payment: "
    "then it is paid once.",
    "3 to 64 letters, digits or signs without spaces",
    "invoice-4711",
)
RECIPIENT = text("0x[0-9a-fA-F]{40}", "The address that gets the money.", "0x and 40 hex digits", "0x" + "1" * 40)
AMOUNT = text(
    "[0-9]{1,78}",
    "Whole smallest units: wei, or of USDC millionths.",
    "decimal digits of whole smallest units, no point, sign or exponent",
    "2500000",
)
ASSET = text(
    "(native|evm:[0-9]{1,16}:native|(evm:[0-9]{1,16}:)?0x[0-9a-fA-F]{40})",
    "native (the chain's coin, the default), or the token's contract.",
    "native, 0x and 40 hex digits, or a name such as evm:8453:0x...",
    "native",
).optional
CHAIN = number(1, _LARGEST, "The EVM chain's number, such as 8453 for Base.", 8453)
TRANSACTION = text(
    "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "The transaction_id of an earlier result.",
    "an id as an earlier result had it",
    "0192f0c1-2d3e-7f00-8123-456789abcdef",
)


def schema(arguments: Mapping[str, Argument]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments; what it does not name is refused."""
    return {
        "type": "object",
        "properties": {name: argument.schema for name, argument in arguments.items()},
        "required": [name for name, argument in arguments.items() if argument.required],
        "additionalProperties": False,
    }


def check(arguments: Mapping[str, Argument], given: Mapping[str, Any]) -> None:
    """Raise ToolError for the first argument that is missing, unknown or of another form."""
    names = ", ".join(arguments) or "none"
    for name in given:
        if name not in arguments:
            raise ToolError(
                f"unknown_argument: There is no argument {_printable(name)}; there are {names}. "
                "Nothing was done. Change it and call again."
            )
    for name, argument in arguments.items():
        if name not in given:
            if argument.required:
                raise _wrong("argument_missing", name, argument)
        elif not _fits(argument.schema, given[name]):
            raise _wrong("bad_argument", name, argument)


def _wrong(code: str, name: str, argument: Argument) -> ToolError:
    return ToolError(
        f"{code}: {name} must be {argument.form}, for example {argument.example}. "
        "Nothing was done. Change that argument and call again."
    )


def _fits(wanted: Mapping[str, Any], value: Any) -> bool:
    kinds = wanted["type"]
    if "enum" in wanted:
        return value in wanted["enum"] and isinstance(value, str)
    if isinstance(value, str) and "string" in kinds:
        return len(value) <= MAX_OBJECT_BYTES and bool(
            "pattern" not in wanted or re.fullmatch(wanted["pattern"], value)
        )
    if isinstance(value, dict) and "object" in kinds:
        return _bytes_of(value) <= MAX_OBJECT_BYTES
    if isinstance(value, int) and not isinstance(value, bool) and kinds == "integer":
        return bool(wanted["minimum"] <= value <= wanted["maximum"])
    return False


def _bytes_of(value: object) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (RecursionError, OverflowError, ValueError):
        # Nested too deeply, or a number that no reader of the service takes.
        return MAX_OBJECT_BYTES + 1


def _printable(name: str) -> str:
    return "".join(letter for letter in name[:40] if letter.isascii() and letter.isprintable()) or "of that name"

"""Files of rules, as YAML or JSON."""

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from tenant_command.files import STANDARD_INPUT, read_file
from tenant_command.kinds import Kind, Place
from words.shapes import PolicyRule


def read_document(file: str) -> Any:
    """Read a file of YAML or JSON; raises UsageError for what is neither, or cannot be read."""
    return Kind().take(read_file(file), Place("standard input" if file == STANDARD_INPUT else file))


def rules_of(document: Any, file: str) -> list[dict[str, Any]]:
    """The rules in a document: a list of them, or an object with it as `policies`. They stay as they were written."""
    found = document.get("policies") if isinstance(document, dict) else document
    if not isinstance(found, list):
        raise click.UsageError(f'{file} has no rules: write a list of them, or {{"policies": [...]}}')
    try:
        shapes_of(found)
    except msgspec.ValidationError as problem:
        raise click.UsageError(f"{file} has no rules: {problem}") from None
    return found


def shapes_of(rules: Sequence[Any]) -> list[PolicyRule]:
    """Rules as they are compared and put into words."""
    return msgspec.convert(rules, list[PolicyRule])

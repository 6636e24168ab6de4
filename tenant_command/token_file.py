"""A token that the service tells once, written into a file of its owner's alone."""

import os
from pathlib import Path
from typing import Any

import click

from console import private_file
from console.wire.failures import Failure


def check_writable(file: Path) -> None:
    """Refuse before the token is there: it is shown once, and would be lost. Raises UsageError."""
    folder = file.parent
    if file.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise click.UsageError(f"{file} cannot be written")


def write_token(file: Path, answer: dict[str, Any], cure: str) -> dict[str, Any]:
    """Write the token of an answer, and give the rest of it with the file's name; raises Failure with the cure."""
    try:
        private_file.write(file, f"{answer['token']}\n")
    except OSError as problem:
        raise Failure(f"The token is lost, for {file} cannot be written: {problem.strerror}. {cure}") from None
    return {name: value for name, value in answer.items() if name != "token"} | {"file": str(file)}

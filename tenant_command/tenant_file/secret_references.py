"""The values of secrets, from where a file says they are: the environment, or a file. They are never in the file."""

import os
from pathlib import Path
from typing import Any

from tenant_command.files import BadFile
from tenant_command.secret_value import read_value_file


def check_reference(name: str, reference: dict[str, Any]) -> None:
    """Raise BadFile for a reference that names no place, or two."""
    if len([one for one in (reference.get("env"), reference.get("file")) if one]) != 1:
        raise BadFile(f"The `value` of secret {name!r} must be `env: NAME` or `file: PATH`: one of them.")
    if (path := reference.get("file")) and (Path(path).is_absolute() or ".." in Path(path).parts):
        # Who sends somebody a file must not get at what else is on their disk.
        raise BadFile(f"The `value` of secret {name!r} must be a file beside this one, or in a folder below it.")


def is_there(reference: dict[str, Any], folder: Path) -> bool:
    """Tell whether there is something at that place."""
    return bool(os.environ.get(reference["env"])) if reference.get("env") else _file(reference, folder).is_file()


def place_of(reference: dict[str, Any]) -> str:
    """The place in words."""
    return f"the variable {reference['env']}" if reference.get("env") else f"the file {reference['file']}"


def value_of(name: str, reference: dict[str, Any], folder: Path) -> str:
    """Read a value; raises BadFile, or UsageError for a file that cannot be one."""
    if variable := reference.get("env"):
        found = str(os.environ.get(variable, ""))
        if not found:
            raise BadFile(f"secret {name!r}: the environment has no variable {variable}.")
        return found
    return read_value_file(_file(reference, folder))


def _file(reference: dict[str, Any], folder: Path) -> Path:
    """The file itself, behind whatever links lead to it; BadFile where they lead out of the folder."""
    file: Path = (folder / reference["file"]).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise BadFile(f"The file {reference['file']} is a link that leads out of the folder of this file.")
    return file

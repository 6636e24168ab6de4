"""A tenant's file, read and checked as far as that needs no service."""

from typing import Any

from tenant_command.files import STANDARD_INPUT, BadFile, read_file
from tenant_command.kinds import Place
from tenant_command.tenant_file.secret_references import check_reference
from tenant_command.tenant_file.shape import TENANT, VERSION


def read_tenant_file(path: str) -> dict[str, Any]:
    """Read a file; gives what it says and nothing else. Raises BadFile."""
    place = Place("standard input" if path == STANDARD_INPUT else path)
    wanted: dict[str, Any] = TENANT.take(read_file(path), place)
    if wanted["version"] != VERSION:
        raise BadFile(f"{place.file} is of version {wanted['version']}; this command reads version {VERSION}.")
    for secret in wanted.get("secrets") or ():
        if secret.get("value") is not None:
            check_reference(secret["name"], secret["value"])
    return wanted

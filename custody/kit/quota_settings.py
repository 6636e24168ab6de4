"""The operator's figures, as the environment and a file say them."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from custody.kit import environment
from custody.kit.environment import BadSetting
from custody.kit.quotas import HIGHEST, Figure, Limits, People, Quotas
from custody.kit.shapes import TenantId

FILE: Final = "SERVICE_QUOTAS_FILE"


def load(source: Mapping[str, str]) -> Limits:
    """Read `SERVICE_QUOTA_*`, and the file that gives some tenants figures of their own.

    The file is TOML: a table for each tenant's id; what it leaves out is as for everybody.
    """
    everybody = _read(source, Quotas)
    path = source.get(FILE, "").strip()
    apart = _from_file(Path(path).expanduser(), everybody) if path else {}
    return Limits(everybody=everybody, people=_read(source, People), apart=apart)


def _read[S: msgspec.Struct](source: Mapping[str, str], kind: type[S]) -> S:
    return kind(
        **{
            field.name: environment.integer(source, _variable(field.name), field.default, high=HIGHEST)
            for field in msgspec.structs.fields(kind)
        }
    )


def _variable(name: str) -> str:
    return f"SERVICE_QUOTA_{name.upper()}"


def _from_file(path: Path, everybody: Quotas) -> dict[str, Quotas]:
    try:
        tables = msgspec.convert(tomllib.loads(path.read_text()), dict[TenantId, dict[str, Figure]])
        usual = msgspec.to_builtins(everybody)
        return {tenant: msgspec.convert(usual | table, Quotas) for tenant, table in tables.items()}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise BadSetting(FILE, str(problem)) from None

"""Read the files in `functions/` and `types/`: what each promises, whose rights it runs with, which roles execute it.

Pure: no connection. `custody migrate` applies the result (custody/database/apply.py).
"""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

FOLDER = Path(__file__).parent
ROLES = ("api", "signer", "identity", "scheduler", "proxy", "definer")
_FUNCTION = re.compile(
    r"-- Promises: (?P<promise>[^\n]+(?:\n--   [^\n]+)*)\n"
    r"-- Runs as: (?P<runs_as>caller|definer)\n"
    r"-- Execute: (?P<execute>[a-z, ]+)\n"
    r"(?P<tables>-- Needed by: tables\n)?"
    r"\n"
    r"(?P<sql>CREATE FUNCTION (?P<name>[a-z_]+)\([^$]+ AS \$\$.+\$\$;)\n",
    re.DOTALL,
)
_TYPE = re.compile(
    r"-- Promises: (?P<promise>[^\n]+(?:\n--   [^\n]+)*)\n\n(?P<sql>CREATE TYPE (?P<name>[a-z_]+) AS \([^;]+\);)\n"
)


class BadText(ValueError):
    """A file does not have the form that docs/recipes.md describes."""


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """One file. A type has neither rights of its own nor roles."""

    kind: Literal["function", "type"]
    name: str
    promise: str
    sql: str
    file: str
    runs_as: Literal["caller", "definer"] = "caller"
    execute: tuple[str, ...] = ()
    needed_by_tables: bool = False

    @property
    def signature(self) -> str:
        """Return what makes it this function and no other: while it stays, `CREATE OR REPLACE` is enough."""
        return signature_of(self.sql)


def signature_of(sql: str) -> str:
    """Name, arguments and result; how it runs (its language, `STABLE`, `SECURITY DEFINER`) is not part of it."""
    return " ".join(re.split(r"\sLANGUAGE\s", sql.partition(" AS $$")[0], maxsplit=1)[0].split())


def parse(name: str, file: str) -> Text:
    """The text of one file, or BadText."""
    promise = (
        (found := _FUNCTION.fullmatch(file) or _TYPE.fullmatch(file)) and " ".join(found["promise"].split("\n--   "))
    ) or ""
    if found is None or found["name"] != name:
        raise BadText(f"{name}.sql has not the form of docs/recipes.md, or makes something of another name")
    if found.re is _TYPE:
        return Text(kind="type", name=name, promise=promise, sql=found["sql"], file=file)
    execute = () if found["execute"] == "nobody" else tuple(found["execute"].split(", "))
    if unknown := set(execute) - set(ROLES):
        raise BadText(f"{name}.sql names roles that there are not: {', '.join(sorted(unknown))}")
    runs_as: Literal["caller", "definer"] = "definer" if found["runs_as"] == "definer" else "caller"
    head = found["sql"].partition(" AS $$")[0]
    # What runs with more rights than its caller must not look names up in a schema that the caller chose.
    said = "SECURITY DEFINER SET search_path = public, pg_temp"
    if not (head.endswith(said) if runs_as == "definer" else "SECURITY" not in head):
        raise BadText(f"{name}.sql says that it runs as {runs_as}, and its SQL says otherwise")
    return Text(
        kind="function",
        name=name,
        promise=promise,
        sql=found["sql"],
        file=file,
        runs_as=runs_as,
        execute=execute,
        needed_by_tables=found["tables"] is not None,
    )


def read(folder: Path = FOLDER) -> list[Text]:
    """Every text of a folder, types first, by name."""
    files = [*sorted(folder.glob("types/*.sql")), *sorted(folder.glob("functions/*/*.sql"), key=lambda file: file.stem)]
    texts = [parse(file.stem, file.read_text()) for file in files]
    if doubles := sorted({text.name for text in texts if sum(text.name == other.name for other in texts) > 1}):
        raise BadText(f"more than one file makes {', '.join(doubles)}")
    return texts


def digest(files: Iterable[tuple[str, str]]) -> str:
    """One word for files by their names. The function `schema_version` computes the same over what was applied."""
    return hashlib.sha256("".join(name + file for name, file in sorted(files)).encode()).hexdigest()


@cache
def current() -> str:
    """The digest of the texts that belong to this code."""
    return digest((text.name, text.file) for text in read())

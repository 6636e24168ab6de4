"""Give a database the current text of every function and type. `custody migrate` calls it within its transaction.

Before the migrations `take_down` drops what an earlier run made, so that tables and types may change freely; after them
`put_up` makes everything from the files. Functions that tables stand on (a default, a trigger) stay and are replaced;
only another name, other arguments or another result make a new function. What stands on a function that is dropped is
taken off and put back (custody/database/dependents.py): on those of tables before the migrations, on others after them.
"""

from collections.abc import Iterable
from typing import Any

from custody.database.dependents import take_off
from custody.database.texts import ROLES, Text, digest, signature_of

_DEFINER = "custody_definer"
_TABLE = (
    "CREATE TABLE IF NOT EXISTS applied_sql"
    " (name text PRIMARY KEY, kind text NOT NULL, signature text NOT NULL, file text NOT NULL)"
)
_NOTE = "COMMENT ON TABLE applied_sql IS 'The files of custody/database/ as custody migrate applied them.'"
_IN_USE = """
SELECT EXISTS (SELECT FROM pg_depend WHERE refclassid = 'pg_proc'::regclass AND refobjid = $1::text::regproc
                  AND deptype IN ('n', 'a'))
"""


async def applied_digest(connection: Any) -> str:
    """The digest of what a database has."""
    begun = await connection.fetchval("SELECT to_regclass('public.applied_sql') IS NOT NULL")
    rows = await connection.fetch("SELECT name, file FROM applied_sql") if begun else []
    return digest((row["name"], row["file"]) for row in rows)


async def take_down(connection: Any, texts: list[Text]) -> list[str]:
    """Drop what was applied and is not kept, and make what the migrations need; the statements that put back."""
    await connection.execute(f"{_TABLE}; {_NOTE}")
    wanted = {text.name: text for text in texts}
    tables, others, types = [], [], []
    for name, kind, signature in await connection.fetch("SELECT name, kind, signature FROM applied_sql ORDER BY name"):
        now = wanted.get(name)
        if kind == "type":
            types.append(name)
        elif now is None and await connection.fetchval(_IN_USE, name):
            continue  # the migrations take off what stands on it; put_up drops it
        elif now is None or not now.needed_by_tables:
            others.append(name)
        elif now.signature != signature_of(signature):
            tables.append(name)
    # What stands on functions of both kinds is among the first: it comes back when all of them are there.
    later = await take_off(connection, others)
    back = await take_off(connection, tables)
    for name in (*others, *tables):
        await connection.execute(f"DROP FUNCTION {name}")
    for name in types:  # functions take them
        await connection.execute(f"DROP TYPE {name}")
    await _make(connection, [text for text in texts if text.needed_by_tables])
    for statement in back:
        await connection.execute(statement)
    return later


async def put_up(connection: Any, texts: list[Text], back: list[str]) -> None:
    """Make every type and function, put back what was taken off, and note what the database has now."""
    wanted = [text.name for text in texts]
    for row in await connection.fetch(
        "SELECT name FROM applied_sql WHERE kind = 'function' AND name <> ALL ($1)", wanted
    ):
        await connection.execute(f"DROP FUNCTION IF EXISTS {row['name']}")
    await _make(connection, [text for text in texts if not text.needed_by_tables])
    for statement in back:
        await connection.execute(statement)
    await connection.execute("DELETE FROM applied_sql")
    await connection.executemany(
        "INSERT INTO applied_sql (name, kind, signature, file) VALUES ($1, $2, $3, $4)",
        [(text.name, text.kind, text.signature, text.file) for text in texts],
    )


async def _make(connection: Any, texts: list[Text]) -> None:
    # A function may call another that comes later: bodies are checked when all of them are there.
    await connection.execute(f"SET LOCAL check_function_bodies = off; GRANT CREATE ON SCHEMA public TO {_DEFINER}")
    for text in texts:
        await connection.execute(statements(text))
    await connection.execute(f"SET LOCAL check_function_bodies = on; REVOKE CREATE ON SCHEMA public FROM {_DEFINER}")
    await connection.execute(
        "SELECT CASE l.lanname WHEN 'sql' THEN fmgr_sql_validator(p.oid) ELSE plpgsql_validator(p.oid) END"
        "  FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang"
        " WHERE p.pronamespace = 'public'::regnamespace AND p.proname = ANY ($1)",
        [text.name for text in texts if text.kind == "function"],
    )


def statements(text: Text) -> str:
    """The SQL that makes one text: itself, its owner, exactly its roles, and its promise as the comment."""
    note = text.promise.replace("'", "''")
    if text.kind == "type":
        return f"{text.sql}\nCOMMENT ON TYPE {text.name} IS '{note}';"
    lines = [
        text.sql.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1),
        # The owner goes first: rights are granted by the one who has the function.
        f"ALTER FUNCTION {text.name} OWNER TO {_DEFINER if text.runs_as == 'definer' else 'CURRENT_USER'};",
        f"REVOKE ALL ON FUNCTION {text.name} FROM {', '.join(['PUBLIC', *_roles(set(ROLES) - {text.runs_as})])};",
        f"COMMENT ON FUNCTION {text.name} IS '{note}';",
    ]
    if text.execute:
        lines.append(f"GRANT EXECUTE ON FUNCTION {text.name} TO {', '.join(_roles(text.execute))};")
    return "\n".join(lines)


def _roles(names: Iterable[str]) -> list[str]:
    return [f"custody_{name}" for name in sorted(names)]

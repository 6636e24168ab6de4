"""Give a database the current text of every function and type. `custody migrate` calls it within its transaction.

Before the migrations `take_down` drops what an earlier run made, so that tables and types may change freely; after them
`put_up` makes everything from the files. Functions that tables stand on (a default, a trigger) stay and are replaced;
where such a one changes its signature, the defaults and policies on it are taken off and set back. What nobody thought
of (a view, an index) stops the whole with Postgres' own message, and nothing has changed.
"""

from collections.abc import Iterable
from typing import Any

from custody.database.texts import ROLES, Text, digest

_DEFINER = "custody_definer"
_TABLE = (
    "CREATE TABLE IF NOT EXISTS applied_sql"
    " (name text PRIMARY KEY, kind text NOT NULL, signature text NOT NULL, file text NOT NULL)"
)
_NOTE = "COMMENT ON TABLE applied_sql IS 'The files of custody/database/ as custody migrate applied them.'"
# Defaults of columns and policies that stand on a function, as the statements that take them off and set them back.
_STANDS_ON = """
SELECT format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', d.adrelid::regclass, a.attname) AS off,
       format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', d.adrelid::regclass, a.attname,
              pg_get_expr(d.adbin, d.adrelid)) AS back
  FROM pg_depend p JOIN pg_attrdef d ON p.classid = 'pg_attrdef'::regclass AND d.oid = p.objid
  JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum AND a.attgenerated = ''
 WHERE p.refclassid = 'pg_proc'::regclass AND p.refobjid = $1::text::regproc
UNION ALL
SELECT format('DROP POLICY %I ON %s', l.polname, l.polrelid::regclass),
       format('CREATE POLICY %I ON %s AS %s FOR %s TO %s %s %s', l.polname, l.polrelid::regclass,
              CASE WHEN l.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
              CASE l.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE'
                            ELSE 'ALL' END,
              (SELECT string_agg(CASE r WHEN 0 THEN 'PUBLIC' ELSE r::regrole::text END, ', ')
                 FROM unnest(l.polroles) r),
              'USING (' || pg_get_expr(l.polqual, l.polrelid) || ')',
              'WITH CHECK (' || pg_get_expr(l.polwithcheck, l.polrelid) || ')')
  FROM (SELECT DISTINCT objid FROM pg_depend WHERE classid = 'pg_policy'::regclass
           AND refclassid = 'pg_proc'::regclass AND refobjid = $1::text::regproc) p
  JOIN pg_policy l ON l.oid = p.objid
"""
_IN_USE = """
SELECT EXISTS (SELECT FROM pg_depend WHERE refclassid = 'pg_proc'::regclass AND refobjid = $1::text::regproc
                  AND deptype IN ('n', 'a'))
"""


async def applied(connection: Any) -> str:
    """The digest of what a database has."""
    begun = await connection.fetchval("SELECT to_regclass('public.applied_sql') IS NOT NULL")
    rows = await connection.fetch("SELECT name, file FROM applied_sql") if begun else []
    return digest((row["name"], row["file"]) for row in rows)


async def take_down(connection: Any, texts: list[Text]) -> list[str]:
    """Drop what was applied and is not kept, and make what the migrations need; the statements that set back."""
    await connection.execute(f"{_TABLE}; {_NOTE}")
    back: list[str] = []
    wanted = {text.name: text for text in texts}
    earlier = await connection.fetch("SELECT name, kind, signature FROM applied_sql ORDER BY kind, name")
    for name, kind, signature in earlier:  # functions before the types that they take
        now = wanted.get(name)
        if kind == "type":
            await connection.execute(f"DROP TYPE {name}")
        elif now is not None and now.needed_by_tables and now.signature == signature:
            continue
        elif now is None and await connection.fetchval(_IN_USE, name):
            continue  # the migrations take off what stands on it; put_up drops it
        else:
            for row in await connection.fetch(_STANDS_ON, name):
                await connection.execute(row["off"])
                back.append(row["back"])
            await connection.execute(f"DROP FUNCTION {name}")
    await _make(connection, [text for text in texts if text.needed_by_tables])
    return back


async def put_up(connection: Any, texts: list[Text], back: list[str]) -> None:
    """Make every type and function, set back what was taken off, and note what the database has now."""
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

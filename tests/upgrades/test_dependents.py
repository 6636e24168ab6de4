"""Whatever stands on a function is there again after the function was dropped and made, or nothing has changed."""

import asyncio

import asyncpg
import pytest

from custody.database.texts import Text, parse, read
from ops import places
from ops.migrate import FUNCTIONS, migrate
from tests.fixtures.postgres import in_database
from tests.upgrades.schemas import schema

# One of each kind, some on each other, with grants, comments and settings that must not be lost.
STANDING = """
CREATE TABLE standing (
  id integer PRIMARY KEY, made bytea CHECK (key_version_of(made, 1) < 9), at timestamptz DEFAULT service_now(),
  version integer NOT NULL GENERATED ALWAYS AS (key_version_of(made, 1)) STORED, UNIQUE (version, id));
GRANT SELECT (version) ON standing TO custody_api;
COMMENT ON COLUMN standing.version IS 'Which key made it.';
COMMENT ON CONSTRAINT standing_made_check ON standing IS 'Bounded.';
CREATE INDEX standing_versions ON standing (key_version_of(made, 1) DESC) WHERE key_version_of(made, 1) > 1;
COMMENT ON INDEX standing_versions IS 'By key.';
ALTER TABLE standing ADD CONSTRAINT alone EXCLUDE USING btree (key_version_of(made, 2) WITH =);
ALTER TABLE standing ENABLE ROW LEVEL SECURITY;
CREATE POLICY awake ON standing AS RESTRICTIVE FOR SELECT TO custody_api, custody_proxy USING (service_now() > at);
CREATE POLICY checked ON standing FOR INSERT WITH CHECK (key_version_of(made, 1) = 0);
COMMENT ON POLICY awake ON standing IS 'Never from the future.';
CREATE VIEW today WITH (security_barrier = true) AS SELECT utc_day() AS day, service_now() AS at;
ALTER VIEW today OWNER TO custody_definer;
GRANT SELECT ON today TO custody_api WITH GRANT OPTION;
COMMENT ON VIEW today IS 'A view.';
CREATE VIEW "and so" AS SELECT day, version FROM today, standing;
CREATE RULE quiet AS ON INSERT TO today DO INSTEAD SELECT service_now();
CREATE RULE aside AS ON DELETE TO standing WHERE key_version_of(old.made, 1) > 5 DO INSTEAD NOTHING;
CREATE TRIGGER queued AFTER INSERT ON standing FOR EACH ROW WHEN (key_version_of(new.made, 1) > 3)
  EXECUTE FUNCTION audit_queue();
ALTER TABLE standing DISABLE TRIGGER queued;
COMMENT ON TRIGGER queued ON standing IS 'Off.';
"""
_DEFINER = " SECURITY DEFINER SET search_path = public, pg_temp AS $$"
# What changes, by function. Two arguments more make another function; other rights make the same one run otherwise.
CHANGES = {
    "a default": {"service_now": ("service_now()", "service_now(p_zone text DEFAULT 'UTC')")},
    "an index": {"key_version_of": ("p_from integer)", "p_from integer, p_more integer DEFAULT 0)")},
    "a view": {"utc_day": ("utc_day()", "utc_day(p_zone text DEFAULT 'UTC')")},
    "all": {
        "service_now": ("service_now()", "service_now(p_zone text DEFAULT 'UTC')"),
        "key_version_of": ("p_from integer)", "p_from integer, p_more integer DEFAULT 0)"),
        "utc_day": ("utc_day()", "utc_day(p_zone text DEFAULT 'UTC')"),
    },
    "rights": {"audit_queue": (" AS $$", _DEFINER), "keep_figures": (" AS $$", _DEFINER)},
    "nothing": {},
}


@pytest.fixture
def full_database(postgres_home: places.Home, worker_id: str, request: pytest.FixtureRequest) -> str:
    """The owner's address of a database that is up to date, and on whose functions much stands."""
    owner_url = postgres_home.file("db", "owner.url").read_text()
    name = f"standing_{worker_id}_{abs(hash(request.node.nodeid))}"

    async def create() -> None:
        connection = await asyncpg.connect(in_database(owner_url, "postgres"))
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        await connection.close()
        await migrate(in_database(owner_url, name), postgres_home)
        connection = await asyncpg.connect(in_database(owner_url, name))
        await connection.execute(STANDING)
        await connection.close()

    asyncio.run(create())
    return in_database(owner_url, name)


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
async def test_all_that_stands_on_a_function_is_put_back(
    full_database: str, postgres_home: places.Home, changes: dict[str, tuple[str, str]]
) -> None:
    before = schema(full_database)
    later = [with_changes(text, changes) for text in read() if text.name != "usage_read"]

    assert await migrate(full_database, postgres_home, texts=later) == [FUNCTIONS]
    between = schema(full_database)
    assert await migrate(full_database, postgres_home) == [FUNCTIONS]

    assert schema(full_database) == before
    # In between there was all of it too, on functions that are others: what is not theirs is as it was.
    assert [line for line in made_of(before) if line not in between.splitlines()] == []
    owner = await asyncpg.connect(full_database)
    await owner.execute("INSERT INTO standing (id, made) VALUES (1, '\\x0000000200')")
    row = await owner.fetchrow("SELECT version, at <= clock_timestamp() FROM standing")
    await owner.close()
    assert tuple(row) == (2, True)


async def test_an_unknown_kind_stops_the_migration_and_nothing_has_changed(
    full_database: str, postgres_home: places.Home
) -> None:
    owner = await asyncpg.connect(full_database)
    await owner.execute("CREATE MATERIALIZED VIEW kept AS SELECT key_version_of('\\x00', 1)")
    await owner.close()
    before = schema(full_database)

    with pytest.raises(
        RuntimeError, match=r"nothing has changed(?s:.*)materialized view kept depends on function key_version_of"
    ):
        await migrate(full_database, postgres_home, texts=[with_changes(text, CHANGES["an index"]) for text in read()])

    assert schema(full_database) == before


def with_changes(text: Text, changes: dict[str, tuple[str, str]]) -> Text:
    """A text with a part of it changed, its head saying what its SQL says."""
    old, new = changes.get(text.name, ("", ""))
    if not old:
        return text
    assert old in text.file
    file = text.file.replace(old, new, 1)
    return parse(text.name, file.replace("Runs as: caller", "Runs as: definer") if new == _DEFINER else file)


def made_of(schema: str) -> list[str]:
    """The lines that make, grant and explain something, but for functions themselves."""
    words = ("CREATE TRIGGER", "CREATE VIEW", "CREATE INDEX", "CREATE POLICY", "CREATE RULE", "GRANT", "COMMENT ON")
    return [line for line in schema.splitlines() if line.startswith(words) and " FUNCTION " not in line]

"""Checks of `custody doctor` on the database: what it promises about a commit, its clock, and the way to it."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

import asyncpg

from custody.kit import clock, environment
from custody.kit.db import DatabaseAway
from custody.kit.poolers import CURE, Pooler, find_pooler
from ops.connections import HOSTS
from ops.findings import Finding
from ops.roles import elsewhere, role_of
from ops.settings import PROCESSES, Settings

# Signed requests may be thirty seconds ahead; half of it is no accident any more.
_CLOCK = timedelta(seconds=15)
_WAITED_FOR = "start a replica that synchronous_standby_names names, or take its name out"
_HELD = (
    "SELECT rolname, rolconnlimit, (SELECT count(*) FROM pg_stat_activity WHERE usename = rolname) AS held"
    " FROM pg_roles WHERE rolname = ANY ($1) ORDER BY 1"
)
# The last is of Postgres 16 and newer.
_ROOM = (
    "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
    " - coalesce(current_setting('reserved_connections', true), '0')::int"
)
_BEFORE_FAILOVER = "name your replicas in synchronous_standby_names: otherwise a failover loses acknowledged commits"


async def durability(connection: asyncpg.Connection) -> Finding:
    """A commit that was acknowledged outlives a crash of the server, whatever role made it."""
    rows = await connection.fetch(
        "SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')"
        " UNION ALL SELECT 'synchronous_commit', split_part(one, '=', 2) FROM pg_db_role_setting, unnest(setconfig) one"
        " WHERE split_part(one, '=', 1) = 'synchronous_commit'"
        " AND (setrole = 0 OR setrole IN (SELECT oid FROM pg_roles WHERE rolname LIKE 'custody%'))"
    )
    off = sorted({row["name"] for row in rows if row["setting"] == "off"})
    if off:
        cure = f"set {', '.join(f'{name} = on' for name in off)} for the server, the database and every role"
        return Finding("commits", f"{', '.join(off)} off: acknowledged commits can be lost", cure)
    return Finding("commits", "survive a crash of the server")


async def replicas(connection: asyncpg.Connection) -> Finding:
    """Check that a commit waits for a replica, where there are any."""
    count, named = await connection.fetchrow(
        "SELECT (SELECT count(*) FROM pg_stat_replication), current_setting('synchronous_standby_names') <> ''"
    )
    if count and not named:
        return Finding("replicas", f"{count}, and no commit waits for one", _BEFORE_FAILOVER)
    if named and not count:
        return Finding("replicas", "none, and every commit waits for one: nothing is signed", _WAITED_FOR)
    return Finding("replicas", f"{count}, and a commit waits for them" if count else "none")


async def clocks(connection: asyncpg.Connection) -> Finding:
    """This machine and the database agree what time it is."""
    before = clock.now()
    theirs = await connection.fetchval("SELECT service_now()")
    # The truth lies somewhere between asking and hearing.
    ahead = max(theirs - clock.now(), before - theirs, timedelta())
    if ahead > _CLOCK:
        cure = "synchronise both by NTP: tokens, expiry and signed requests are checked against both"
        return Finding("clocks", f"the database's is {ahead.total_seconds():.0f} s off", cure)
    return Finding("clocks", "agree")


async def connections(connection: asyncpg.Connection, settings: Settings) -> Finding:
    """No role can hold so many connections that another's processes get none."""
    subject, wanted = "connections", {role_of(name): limit for name, limit in settings.connection_limits.items()}
    rows = await connection.fetch(_HELD, list(wanted))
    limited = {row["rolname"]: row["rolconnlimit"] for row in rows}
    others = {role: other for role in limited if (other := await elsewhere(connection, role)) is not None}
    if boundless := [role for role, limit in limited.items() if limit < 0]:
        return _boundless(boundless, others, wanted)
    if fewer := [role for role, limit in limited.items() if limit < wanted[role]]:
        found = f"{', '.join(fewer)} may hold fewer than their processes open"
        return Finding(subject, found, "run `custody migrate` with the settings of the processes")
    if full := [f"{row['rolname']} ({row['held']})" for row in rows if row["held"] >= row["rolconnlimit"]]:
        cure = f"with more hosts or workers, set {HOSTS} and run `custody migrate`; else see docs/database.md"
        return Finding(subject, f"none is left for {', '.join(full)}{_sharing(others)}", cure)
    room, together = await connection.fetchval(_ROOM), sum(limited.values())
    if together > room:
        cure = f"set max_connections of the server to {together + 10} or more, or have smaller pools"
        return Finding(subject, f"the roles may hold {together} together, and the server has {room}", cure)
    found = f"{sum(row['held'] for row in rows)} of at most {together}; the server has {room}"
    return Finding(subject, found + _sharing(others))


def _boundless(boundless: list[str], others: Mapping[str, str], wanted: Mapping[str, int]) -> Finding:
    """`custody migrate` sets no limit for a role that another database uses too: its processes count as well."""
    subject = "connections"
    if alone := [role for role in boundless if role not in others]:
        return Finding(subject, f"{', '.join(alone)} may hold all of the server's", "run `custody migrate`")
    found = f"{', '.join(boundless)} may hold all of the server's, and `custody migrate` leaves that{_sharing(others)}"
    each = "; ".join(f"ALTER ROLE {role} CONNECTION LIMIT {wanted[role]}" for role in boundless)
    return Finding(
        subject, found, f"use a server for each deployment; or run, with what the others need added to each: {each}"
    )


def _sharing(others: Mapping[str, str]) -> str:
    """That a limit of a role is one for all databases of the server, where others have its processes too."""
    databases = ", ".join(sorted(set(others.values())))
    return f"; {', '.join(others)} also in use by {databases}: one limit for all together" if others else ""


ASKING: tuple[Callable[[asyncpg.Connection], Awaitable[Finding]], ...] = (durability, replicas, clocks)


async def poolers(settings: Settings) -> Finding:
    """Every process whose address we may read reaches Postgres itself, or by a pooler that it can work behind."""
    behind: dict[Pooler, list[str]] = {kind: [] for kind in Pooler}
    for process in PROCESSES:
        try:
            url = environment.url_from_home(settings.environment, process)
            behind[await find_pooler(url)].append(process)
        except (environment.BadSetting, *DatabaseAway, asyncpg.PostgresError, ValueError):
            # Whether the database answers is another check's; that a role cannot sign in, its process says.
            continue
    between = "between Postgres and"
    if forgetful := behind[Pooler.FORGETFUL]:
        return Finding("pooler", f"one {between} {', '.join(forgetful)} forgets prepared statements", CURE)
    if dropping := behind[Pooler.TRANSACTION]:
        cure = "connect directly, or in session mode: a pooler in transaction mode drops notifications"
        return Finding("pooler", f"in transaction mode {between} {', '.join(dropping)}", cure)
    if passing := behind[Pooler.SESSION]:
        return Finding("pooler", f"in session mode {between} {', '.join(passing)}")
    looked = len(behind[Pooler.NONE])
    return Finding(
        "pooler", f"none in front of {looked} of {len(PROCESSES)} processes whose database URL is readable here"
    )

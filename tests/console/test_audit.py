"""The audit trail in the console: what is searched, what it finds, and what cannot be searched for."""

from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from console.widgets.listing import Listing
from tests.fixtures.callers import Tenant
from tests.fixtures.console_sessions import keep_session
from tests.fixtures.consoles import NARROW, WIDE, Driven, driving
from tests.fixtures.deployments import owner_of
from tests.fixtures.people import Person
from tests.fixtures.server import Service
from tests.outside.odd_api import OddApi, odd_api, says_nothing
from words.texts import filters
from words.texts.fields import indent
from words.texts.moments import clock, moment

pytestmark = pytest.mark.long


@asynccontextmanager
async def looking(service: Service | OddApi, folder: Path, person: Person, **settings: Any) -> Any:
    """A console of a person who is signed in, at the audit trail."""
    keep_session(folder, service.url, person)
    async with driving(service.url, folder, **settings) as console:
        await console.until(lambda: console.app.person, "the sign-in")
        await console.press("7")
        yield console


async def search(console: Driven, line: str) -> None:
    """Type a search into the line, in place of what stands there."""
    await console.sees("newest first")
    await console.press("slash", "end", "ctrl+u")
    await console.press(*(_KEYS.get(letter, letter) for letter in line))
    await console.press("enter")


_KEYS = {
    " ": "space",
    ".": "full_stop",
    "-": "minus",
    ":": "colon",
    "*": "asterisk",
    "_": "underscore",
    '"': "quotation_mark",
}


@pytest.fixture(name="frozen")
def frozen_agent(tenant: Tenant, as_owner: Person) -> str:
    """An agent that its owner froze, which stands in the trail; its id."""
    agent = tenant.agent(agent_id="buyer")
    as_owner.ok("POST", f"/agents/{agent.id}/freeze", {"reason": "[red]odd[/red] orders"})
    return agent.id


@pytest.fixture(name="numbers")
async def long_numbers(service: Service) -> None:
    """Numbers are given out for all tenants: those of a picture must have as many digits each time."""
    async with owner_of(service.database) as owner:
        name = await owner.fetchval("SELECT pg_get_serial_sequence('audit', 'seq')")
        await owner.execute("SELECT setval($1::text::regclass, greatest(10000000, nextval($1::text::regclass)))", name)


@pytest.mark.parametrize("look", [(WIDE, "dark"), (NARROW, "light")], ids=["wide", "narrow"])
async def test_it_looks_like_this(  # noqa: PLR0917 - fixtures
    numbers: None,
    service: Service,
    folder: Path,
    as_owner: Person,
    frozen: str,
    pictures: SnapshotAssertion,
    look: tuple[tuple[int, int], str],
) -> None:
    rows = as_owner.ok("GET", "/audit/events")["data"]
    seen = [str(row[name]) for row in rows for name in ("id", "request_id", "actor_id", "resource_id", "user_agent")]
    seen += [f"{row['seq']:,}" for row in rows] + [clock(moment(row["created_at"])) for row in rows]
    async with looking(service, folder, as_owner, size=look[0], theme=look[1]) as console:
        await console.sees("agent.frozen", "agent.created", "newest first", "reason: [red]odd[/red] orders")
        assert "agent.frozen" in next(line for line in console.text.splitlines() if line.startswith("▸"))

        assert await console.picture(as_owner.id, as_owner.wallet.address, *seen) == pictures


async def test_it_finds_what_one_looks_for(service: Service, folder: Path, as_owner: Person, frozen: str) -> None:
    async with looking(service, folder, as_owner) as console:
        await search(console, f"action:agent.froz* actor:user:{as_owner.id} resource:agent:buyer from:1h")
        await console.sees("1 row, newest first", "agent.frozen")
        await console.sees_no("agent.created", "membership.added")
        await search(console, "to:2020-01-01")

        await console.sees("No row matches the filter")


async def test_a_wrong_filter_stays_in_the_field_with_its_error(
    service: Service, folder: Path, as_owner: Person, frozen: str
) -> None:
    async with looking(service, folder, as_owner) as console:
        await search(console, "agent.frozen")
        await console.sees("agent.frozen is not a filter here. Known filters: action:, actor:, resource:")
        await console.press("ctrl+u", *"from", "colon", *"lunch", "enter")
        await console.sees("from: write a day (2026-01-31), a time", "from:lunch")
        await console.press("ctrl+u", *"action", "colon", *"tx", "percent_sign", "enter")

        await console.sees("action:tx%", "! action")
        await console.sees_no("agent.created")


async def test_until_a_new_search_is_answered_the_old_rows_are_gone(
    service: Service, folder: Path, as_owner: Person, frozen: str
) -> None:
    async with odd_api(service.url) as odd, looking(odd, folder, as_owner) as console:
        await console.sees("agent.created", "rows, newest first", "odd[/red] orders")
        odd.does(says_nothing, "/audit/events")
        await search(console, "action:tx.*")

        await console.sees("Loading…")
        await console.sees_no("agent.created", "agent.frozen", "newest first", "odd[/red] orders")
        odd.well()


async def test_it_shows_what_happens_while_one_looks(
    service: Service, tenant: Tenant, folder: Path, as_owner: Person, frozen: str
) -> None:
    async with looking(service, folder, as_owner, every=0.2) as console:
        await console.sees("agent.frozen")
        as_owner.ok("POST", f"/agents/{frozen}/unfreeze", {})

        await console.sees("agent.unfrozen")
        # The cursor stays on what one was reading.
        assert "agent.frozen" in next(line for line in console.text.splitlines() if line.startswith("▸"))


@pytest.mark.long
async def test_further_pages_come_as_one_scrolls(
    service: Service, tenant: Tenant, folder: Path, as_owner: Person
) -> None:
    async with owner_of(service.database) as owner, owner.transaction():
        await owner.execute("SELECT set_config('custody.tenant', $1, true)", tenant.id)
        await owner.execute(
            "SELECT audit_append('system', 'me', 'test.made', 'thing', n::text, '{}', '{}') "
            "FROM generate_series(1, 250) n"
        )
    total = as_owner.ok("GET", "/audit/events?limit=1")["pagination"]["total"]
    async with looking(service, folder, as_owner) as console:
        await console.sees(f"{total} rows")
        listing = console.one(Listing)
        for loaded in (200, total):
            await console.press("end")
            await console.until(lambda loaded=loaded: len(listing.rows) == loaded, f"{loaded} rows")

        await console.press("end")
        await console.sees("tenant.created")


def picture_of(line: str) -> dict[str, str]:
    """Return the request that a line of this screen makes to the API, on the last day of January."""
    now = datetime(2026, 1, 31, 12, tzinfo=UTC)
    fields = {
        "action": filters.beginning("action", "actionPrefix"),
        "actor": filters.kind_and_id(frozenset({"user", "agent"}), "actorType", "actorId"),
        "from": filters.time("from", "dateFrom", lambda: now),
        "to": filters.time("to", "dateTo", lambda: now, end=True),
        "meta.": filters.exactly("metadata."),
    }
    return filters.read(line, fields)


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("", {}),
        ("action:tx.signed", {"action": "tx.signed"}),
        ("action:tx.*", {"actionPrefix": "tx."}),
        ("actor:user", {"actorType": "user"}),
        ("actor:user:u-1", {"actorType": "user", "actorId": "u-1"}),
        ("actor:tenant-key:abcd", {"actorId": "tenant-key:abcd"}),
        ('actor:"two words"', {"actorId": "two words"}),
        ("meta.policy.kind:evm meta.x:1", {"metadata.policy.kind": "evm", "metadata.x": "1"}),
        ("from:2026-01-30", {"dateFrom": "2026-01-30T00:00:00.000Z"}),
        ("to:2026-01-30", {"dateTo": "2026-01-30T23:59:59.999Z"}),
        ("from:2026-01-30T10:00+02:00", {"dateFrom": "2026-01-30T08:00:00.000Z"}),
        ("from:3h", {"dateFrom": "2026-01-31T09:00:00.000Z"}),
        ("from:30d", {"dateFrom": "2026-01-01T12:00:00.000Z"}),
    ],
)
def test_a_line_is_read(line: str, asked: dict[str, str]) -> None:
    assert picture_of(line) == asked


@pytest.mark.parametrize(
    "line",
    [
        "word",
        "what:x",
        "action:",
        'action:"open',
        "action:a action:b",
        "from:yesterday",
        "from:99999999d",
        "from:d",
        "from:2026-02-30",
        "from:0001-01-01T00:00+14:00",
        "actor:user actor:user:x",
    ],
)
def test_a_line_that_cannot_be_read_is_refused_in_words(line: str) -> None:
    with pytest.raises(filters.BadFilter) as refused:
        picture_of(line)

    assert refused.value.sentence.endswith((".", ")."))


def test_metadata_is_laid_out_in_lines_of_a_bounded_length_and_number() -> None:
    deep: Any = "end"
    for _ in range(50):
        deep = {"in": deep}

    assert indent({"a": [1, {"b": None}], "c": {}, "d": True}) == [
        "a:",
        "  - 1",
        "  -",
        "    b: none",
        "c: empty",
        "d: true",
    ]
    assert max(len(line) for line in indent({"long": "x" * 10_000})) < 700
    assert len(indent(list(range(5_000)))) == 401
    assert indent(deep)[-1].strip() == "… (more inside)"

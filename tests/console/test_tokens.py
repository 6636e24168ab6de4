"""The store of tokens, and how two consoles of one profile go on with one session."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import datetime, timedelta
from pathlib import Path
from stat import S_IMODE
from typing import Any
from uuid import UUID

import asyncpg
import keyring
import pytest

from console.wire.api_client import ApiClient
from console.wire.credentials import Session
from console.wire.failures import AnswerLost, Away, SignedOut
from console.wire.tokens import Tokens, TokenStore
from tests.console.entering import keep_session
from tests.fixtures.people import Person, sign_in
from tests.fixtures.server import Service
from tests.outside.keyrings import MemoryKeyring
from words.texts.moments import local_now

URL = "https://custody.example"
THEN = datetime.fromisoformat("2026-01-01T00:15:00+00:00")
OLD = Tokens("old-token", "old-refresh", THEN, "a person", "a tenant")
NEW = Tokens("new-token", "new-refresh", THEN, "a person", "a tenant")


@pytest.fixture
def keys() -> Iterator[MemoryKeyring]:
    """A keyring of the system, for this test."""
    before, found = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(found)
    yield found
    keyring.set_keyring(before)


@pytest.fixture
def store(folder: Path) -> TokenStore:
    """The tokens of one profile."""
    return TokenStore(folder, "prod", URL)


def listen_to(store: TokenStore) -> list[str]:
    """Collect the store's messages from now on."""
    said: list[str] = []
    store.say = said.append
    return said


def test_without_a_keyring_they_are_in_a_file_for_oneself(store: TokenStore, folder: Path) -> None:
    (folder / "tokens").mkdir(parents=True, mode=0o755)

    store.write(OLD)
    store.write(NEW)

    assert store.read() == NEW
    assert [file.name for file in (folder / "tokens").iterdir()] == [store.file.name]
    assert (S_IMODE(store.file.stat().st_mode), S_IMODE((folder / "tokens").stat().st_mode)) == (0o600, 0o700)


@pytest.mark.parametrize(("profile", "url"), [("test", URL), ("prod", "https://other.example")])
def test_they_belong_to_one_profile_and_address(store: TokenStore, folder: Path, profile: str, url: str) -> None:
    other = TokenStore(folder, profile, url)
    store.write(OLD)
    assert other.read() is None

    store.file.rename(other.file)

    assert other.read() is None


def test_profiles_that_are_spelled_alike_keep_apart(folder: Path) -> None:
    TokenStore(folder, "a b", URL).write(OLD)

    assert TokenStore(folder, "a/b", URL).read() is None
    assert TokenStore(folder, "../../a b", URL).file.parent == folder / "tokens"


@pytest.mark.parametrize("mode", [0o640, 0o644, 0o602])
def test_a_file_that_others_can_read_is_not_used(store: TokenStore, mode: int) -> None:
    store.write(OLD)
    store.file.chmod(mode)
    said = listen_to(store)

    assert store.read() is None
    assert said == [f"Others can read {store.file}, so it is not used; run: chmod 600 {store.file}, or sign in again."]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"profile": "prod"}', "\x00", "null"])
def test_a_file_without_tokens_reads_as_none(store: TokenStore, content: str) -> None:
    store.write(OLD)
    store.file.write_text(content)

    assert store.read() is None


def test_a_keyring_is_used_where_there_is_one(store: TokenStore, folder: Path, keys: MemoryKeyring) -> None:
    store.write(OLD)

    assert TokenStore(folder, "prod", URL).read() == OLD
    assert list(keys.kept) == [("custody-console", f"prod {URL}")]
    assert not store.file.exists()
    store.forget()
    assert keys.kept == {}


def test_a_locked_keyring_leaves_the_file_and_older_tokens_do_not_come_back(
    store: TokenStore, keys: MemoryKeyring
) -> None:
    store.write(OLD)
    said = listen_to(store)
    keys.locked = True

    store.write(NEW)

    assert store.read() == NEW
    assert said == [
        f"The system's keyring cannot be used (the collection is locked); the session is saved in {store.file}."
    ]
    keys.locked = False
    assert store.read() == NEW
    store.write(NEW)
    assert (store.read(), store.file.exists()) == (NEW, False)


def test_a_keyring_that_is_named_and_not_there_leaves_the_file(
    store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "no.such.Backend")
    monkeypatch.setattr(keyring.core, "_keyring_backend", None)

    store.write(OLD)

    assert store.read() == OLD
    assert store.file.exists()


def test_a_folder_that_cannot_be_written_is_said_once(folder: Path) -> None:
    folder.write_text("a file where the folder should be")
    store = TokenStore(folder, "prod", URL)
    said = listen_to(store)

    store.write(OLD)
    store.write(OLD)

    assert said == [f"The session cannot be saved in {store.file} (Not a directory); it ends with this console."]


def test_nothing_of_them_is_printed(store: TokenStore) -> None:
    session = Session(store, OLD)

    printed = f"{OLD!r} {session!r} {vars(session)!r} {ApiClient(URL, session)!r} {store!r}"

    assert "old-" not in printed


class Clock:
    """This machine's clock, which a test may put forward."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return local_now() + self.ahead


@pytest.fixture
def clock() -> Clock:
    """A clock of this test's own."""
    return Clock()


@asynccontextmanager
async def consoles(
    service: Service, folder: Path, count: int = 1, clock: Clock | None = None
) -> AsyncIterator[list[ApiClient]]:
    """Consoles of one profile, each with what was kept."""
    async with AsyncExitStack() as stack:
        clients = list[ApiClient]()
        for _ in range(count):
            store = TokenStore(folder, "default", service.url)
            tokens = store.read()
            assert tokens is not None
            clients.append(ApiClient(service.url, Session(store, tokens, clock or local_now)))
            stack.push_async_callback(clients[-1].close)
        yield clients


async def who(client: ApiClient) -> str:
    """Ask the API for the person who is signed in."""
    return str((await client.get("/auth/session", dict[str, Any]))["user"]["id"])


async def renewals(owner: asyncpg.Connection, person: Person) -> int:
    """Count the renewals of the session; it lives still."""
    row = await owner.fetchrow("SELECT generation, revoked_at FROM sessions WHERE user_id = $1", UUID(person.id))
    assert row is not None
    assert row["revoked_at"] is None
    return int(row["generation"]) - 1


@pytest.mark.parametrize("changed", [{}, {"token": "no-longer-good"}], ids=["before-its-end", "after-a-401"])
async def test_two_consoles_go_on_with_one_session(
    service: Service, person: Person, folder: Path, owner: asyncpg.Connection, clock: Clock, changed: dict[str, str]
) -> None:
    keep_session(service, person, folder, 900 if changed else 0, **changed)

    async with consoles(service, folder, 2, clock) as (first, second):
        found = await asyncio.gather(*(who(client) for client in (first, second) * 3))

        assert found == [person.id] * 6
        assert await renewals(owner, person) == 1
        # Time passes, and both want new tokens again.
        clock.ahead = timedelta(seconds=850)
        assert await asyncio.gather(who(second), who(first)) == [person.id] * 2
        assert await renewals(owner, person) == 3


async def test_a_later_process_takes_the_tokens_stored_last(
    service: Service, person: Person, folder: Path, owner: asyncpg.Connection
) -> None:
    keep_session(service, person, folder, token="no-longer-good")

    async with consoles(service, folder, 2) as (first, second):
        await who(first)
        await who(second)

    assert await renewals(owner, person) == 1


async def test_a_console_that_is_given_up_keeps_what_it_has_asked_for(
    service: Service, person: Person, folder: Path, owner: asyncpg.Connection
) -> None:
    store = keep_session(service, person, folder, 0)

    async with consoles(service, folder) as (client,):
        async with store.alone():
            asking = asyncio.ensure_future(who(client))
            await asyncio.wait([asking], timeout=0.05)
            asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    assert await renewals(owner, person) == 1
    async with consoles(service, folder) as (client,):
        assert await who(client) == person.id


async def test_a_token_that_may_be_used_up_is_not_shown_again(store: TokenStore) -> None:
    store.write(OLD)
    session, shown = Session(store, OLD), list[str]()

    async def lose(refresh_token: str) -> Tokens:
        shown.append(refresh_token)
        raise AnswerLost("The answer was lost.")

    with pytest.raises(AnswerLost):
        await session.renew({"Authorization": "Bearer old-token"}, lose)

    assert await session.renew({"Authorization": "Bearer old-token"}, lose) is False
    assert shown == ["old-refresh"]
    kept_last = store.read()
    assert kept_last is not None
    assert kept_last.refresh_token == ""


async def test_a_refresh_under_way_does_not_undo_a_sign_out(store: TokenStore) -> None:
    store.write(OLD)
    mine, elsewhere = Session(store, OLD), Session(store, OLD)
    shown = list[str]()

    async def refresh(refresh_token: str) -> Tokens:
        shown.append(refresh_token)
        return NEW

    async def step_up() -> Tokens:
        return await refresh("")

    await mine.forget()

    for session in (mine, elsewhere):
        await session.freshen(refresh)
        assert await session.renew({"Authorization": "Bearer old-token"}, refresh) is False
        with pytest.raises(SignedOut):
            await session.advance(step_up)
    assert shown == []
    assert store.read() is None


async def test_a_session_that_cannot_be_kept_is_renewed_all_the_same(store: TokenStore) -> None:
    session = Session(store, OLD)
    # A full disk: no file can be made, and that there is none says nothing.
    store.write = lambda tokens: store.forget()  # type: ignore[method-assign]
    await session.keep()

    async def refresh(refresh_token: str) -> Tokens:
        return NEW

    assert await session.renew({"Authorization": "Bearer old-token"}, refresh) is True
    assert session.headers() == {"Authorization": "Bearer new-token"}


async def test_the_session_of_somebody_else_is_not_taken(service: Service, person: Person, folder: Path) -> None:
    store = keep_session(service, person, folder, 900, token="no-longer-good")

    async with consoles(service, folder) as (client,):
        with closing(sign_in(service)) as other:
            keep_session(service, other, folder, 900)
            with pytest.raises(SignedOut):
                await who(client)

    tokens = store.read()
    assert tokens is not None
    assert tokens.user == other.id


async def test_a_console_that_hangs_with_the_lock_is_not_waited_for_without_end(folder: Path) -> None:
    store = TokenStore(folder, "prod", URL, lock_seconds=0.05)

    async with store.alone():
        with pytest.raises(Away, match="Another console of this profile"):
            async with store.alone():
                pass

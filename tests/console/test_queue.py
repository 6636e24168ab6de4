"""The queue against a list that changes between its pages: nothing is lost, nothing stays."""

import asyncio
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

from console.queue.history import History
from console.queue.queue import (
    LATE,
    MOST_ENDED,
    MOST_WAITING,
    PAGE,
    Item,
    Outcome,
    Queue,
    Sweep,
    outcome_of,
)
from console.queue.queue_view import SORTINGS, View
from console.queue.watch import Rests, Watch
from console.widgets.queue_rows import QueueRows
from console.wire.api_client import ApiClient
from tests.outside.odd_api import OddApi, Request, odd_api, says_nothing, succeeds
from words.shapes import Approval, Effect

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADDRESS = "0x" + "11" * 20


def approval(number: int, **changed: Any) -> Approval:
    given = {
        "id": f"a{number:06}",
        "tx_id": f"t{number}",
        "agent_id": "agent-1",
        "agent_name": "Payer",
        "status": "pending",
        "requested_at": (NOON + timedelta(seconds=number)).isoformat(),
        "digest": "00",
        "kind": "evm",
        "chain_id": 31337,
    }
    return Approval(**{**given, **changed})


class Service:
    """The list as the API pages it: newest first."""

    def __init__(self, count: int) -> None:
        self._numbers = itertools.count(1)
        self.waiting: list[Approval] = []
        self.arrive(count)

    def arrive(self, count: int) -> None:
        for _ in range(count):
            self.waiting.insert(0, approval(next(self._numbers)))

    def leave(self, place: int, count: int) -> None:
        del self.waiting[place : place + count]

    def page(self, cursor: str | None = None) -> list[Approval]:
        """The newest behind a place, which is the id of the last one before it."""
        return [one for one in self.waiting if cursor is None or one.id < cursor][:PAGE]

    def cursor_behind(self, page: list[Approval]) -> str | None:
        return page[-1].id if page and self.page(page[-1].id) else None

    @property
    def ids(self) -> set[str]:
        return {one.id for one in self.waiting}


def read_first(queue: Queue, service: Service) -> list[Item]:
    return queue.merge_first(service.page(), len(service.waiting), NOON)


def read_all(queue: Queue, service: Service, shifts: list[tuple[int, int, int]] = []) -> None:  # noqa: B006
    """A sweep, with these arrivals and departures between its pages."""
    sweep, coming = Sweep(queue.items.keys()), iter(shifts)
    while not sweep.done:
        page = service.page(sweep.cursor)
        queue.merge_sweep(page, NOON)
        sweep.take([one.id for one in page], service.cursor_behind(page))
        arriving, place, leaving = next(coming, (0, 0, 0))
        service.arrive(arriving)
        service.leave(place, leaving)
    queue.conclude(sweep)


SHIFTS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 900), st.sampled_from([0, 1, 19, 150, 400])),
    max_size=8,
)


@settings(max_examples=40)
@given(count=st.integers(0, 1_000), shifts=SHIFTS)
def test_a_sweep_loses_nothing_that_waits_all_the_time(count: int, shifts: list[tuple[int, int, int]]) -> None:
    service, queue = Service(count), Queue()
    before = service.ids
    read_first(queue, service)

    read_all(queue, service, shifts)

    assert before & service.ids <= queue.items.keys()


@settings(max_examples=40)
@given(count=st.integers(0, 1_000), gone=st.lists(st.integers(0, 1_000), max_size=20), shifts=SHIFTS)
def test_a_sweep_keeps_nothing_that_had_gone_before(
    count: int, gone: list[int], shifts: list[tuple[int, int, int]]
) -> None:
    service, queue = Service(count), Queue()
    read_first(queue, service)
    read_all(queue, service)
    before = service.ids
    for place in gone:
        service.leave(place, 1)
    left = before - service.ids

    read_all(queue, service, shifts)

    assert not left & queue.items.keys()


@settings(max_examples=40)
@given(count=st.integers(0, 1_000), shifts=SHIFTS)
def test_when_the_list_stands_still_the_queue_is_the_list(count: int, shifts: list[tuple[int, int, int]]) -> None:
    service, queue = Service(count), Queue()
    read_first(queue, service)
    read_all(queue, service, shifts)

    read_first(queue, service)
    read_all(queue, service)

    assert queue.items.keys() == service.ids
    shown = View().of(queue.rows())
    assert [item.id for item in shown] == [one.id for one in service.waiting]
    assert not queue.differs
    assert queue.waiting == len(service.waiting)


@example(arriving=0, place=0, leaving=300)
@given(arriving=st.integers(0, 250), place=st.integers(0, 300), leaving=st.integers(0, 300))
def test_the_first_page_alone_tells_what_left_from_it(arriving: int, place: int, leaving: int) -> None:
    service, queue = Service(300), Queue()
    read_first(queue, service)
    service.arrive(arriving)
    service.leave(place, leaving)

    read_first(queue, service)

    on_page = {one.id for one in service.page()}
    assert on_page <= queue.items.keys()
    assert {key for key in queue.items if key >= min(on_page, default="")} == on_page


def test_a_short_page_is_the_whole_queue() -> None:
    service, queue = Service(3), Queue()
    read_first(queue, service)
    service.leave(0, 2)

    read_first(queue, service)

    assert list(queue.items) == ["a000001"]
    assert (queue.whole, queue.differs, queue.waiting) == (True, False, 1)


def test_until_all_is_read_the_count_is_the_services() -> None:
    service, queue = Service(PAGE + 50), Queue()

    read_first(queue, service)

    assert (len(queue.items), queue.whole, queue.waiting) == (PAGE, False, PAGE + 50)


def test_only_what_comes_after_the_first_look_is_news() -> None:
    service, queue = Service(PAGE + 5), Queue()

    assert read_first(queue, service) == []
    read_all(queue, service)
    assert read_first(queue, service) == []
    service.arrive(2)
    assert [item.id for item in read_first(queue, service)] == ["a000207", "a000206"]
    assert read_first(queue, service) == []


def test_a_decided_item_does_not_return_with_an_older_answer() -> None:
    service, queue = Service(2), Queue()
    read_first(queue, service)
    queue.end("a000001", Outcome("denied"))

    read_first(queue, service)

    assert list(queue.items) == ["a000002"]


def test_an_item_missing_from_one_answer_may_return_without_a_notice() -> None:
    service, queue = Service(2), Queue()
    read_first(queue, service)
    queue.end("a000001", Outcome("gone"))

    came = read_first(queue, service)

    assert (sorted(queue.items), came) == (["a000001", "a000002"], [])


def test_the_selected_item_stays_in_its_place_after_its_end() -> None:
    service, queue = Service(3), Queue()
    read_first(queue, service)
    queue.keep(queue.find("a000002"))

    queue.end("a000002", Outcome("denied", NOON, "user u1", "no invoice"))

    shown = View().of(queue.rows())
    assert [(item.id, item.outcome and item.outcome.word) for item in shown] == [
        ("a000003", None),
        ("a000002", "denied"),
        ("a000001", None),
    ]
    assert queue.waiting == 2
    queue.keep(queue.find("a000001"))
    assert [item.id for item in View().of(queue.rows())] == ["a000003", "a000001"]


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        ("gone", "approved", "approved"),
        ("approved", "denied", "approved"),
        ("denied", "gone", "denied"),
        ("expired", "approved", "expired"),
    ],
)
def test_the_outcome_of_an_item_is_announced_once(first: Any, second: Any, word: str) -> None:
    queue = Queue()
    read_first(queue, Service(1))

    queue.end("a000001", Outcome(first))
    queue.end("a000001", Outcome(second, by="somebody"))

    assert queue.ended["a000001"].word == word


def test_the_decider_is_added_to_the_outcome() -> None:
    queue = Queue()
    queue.end("a1", Outcome("denied", NOON))

    assert queue.end("a1", Outcome("denied", NOON, "user u1"))
    assert not queue.end("a1", Outcome("denied", NOON, "user u2"))

    assert queue.ended["a1"].by == "user u1"


def test_an_item_past_its_time_expires_by_itself() -> None:
    queue = Queue()
    due = approval(1, expires_at=NOON.isoformat())
    queue.merge_first([due, approval(2)], 2, NOON - timedelta(seconds=1))

    assert not queue.expire(NOON - timedelta(seconds=1))
    assert queue.expire(NOON)

    assert (list(queue.items), queue.ended["a000001"].word) == (["a000002"], "expired")


def test_an_item_still_listed_by_the_service_is_pending_whatever_the_local_clock_says() -> None:
    queue, due = Queue(), approval(1, expires_at=NOON.isoformat())
    queue.merge_first([due, approval(2)], 2, NOON - timedelta(hours=1))
    queue.keep(queue.find(due.id))
    fast = NOON + timedelta(days=2)
    queue.expire(fast)

    came = queue.merge_first([due, approval(2)], 2, fast)

    assert (sorted(queue.items), queue.ended, came) == ([due.id, "a000002"], {}, [])
    item = queue.latest(Item(due, Outcome("expired")))
    assert (item.outcome, item.is_due(fast), queue.find(due.id)) == (None, False, item)
    assert not queue.expire(fast + timedelta(seconds=1))
    # It ends when the service says so.
    queue.merge_first([approval(2)], 1, fast)
    assert queue.ended[due.id].word == "gone"


def test_an_item_expired_by_a_wrong_clock_is_pending_again() -> None:
    queue, one = Queue(), approval(1, expires_at=NOON.isoformat())
    before = NOON - timedelta(hours=1)
    queue.merge_first([one], 1, before)
    queue.expire(NOON + timedelta(hours=2))
    assert queue.ended[one.id].guessed

    queue.merge_first([one], 1, before)

    assert (list(queue.items), queue.ended, queue.differs) == ([one.id], {}, False)


def test_an_outcome_from_the_service_is_not_overruled_by_a_guess() -> None:
    queue, one = Queue(), approval(1, expires_at=NOON.isoformat())
    queue.merge_first([one], 1, NOON - timedelta(seconds=1))
    queue.expire(NOON)

    told = Item(one, Outcome("approved", NOON, "you"))

    assert queue.latest(told) == told
    assert queue.ended[one.id].wants_a_name


def test_a_console_that_starts_with_a_fast_clock_sees_what_waits() -> None:
    queue = Queue()

    queue.merge_first([approval(1, expires_at=NOON.isoformat())], 1, NOON + timedelta(days=2))

    assert (list(queue.items), queue.expire(NOON + timedelta(days=3))) == (["a000001"], False)


def test_an_answer_that_was_on_its_way_when_time_was_up_brings_nothing_back() -> None:
    queue, due = Queue(), approval(1, expires_at=NOON.isoformat())
    queue.merge_first([due], 1, NOON - timedelta(seconds=1))
    queue.expire(NOON)

    queue.merge_first([due], 1, NOON + LATE - timedelta(seconds=1))

    assert (list(queue.items), queue.ended[due.id].word) == ([], "expired")


def test_an_item_expired_by_the_service_stays_expired_however_it_is_listed() -> None:
    queue, due = Queue(), approval(1, expires_at=NOON.isoformat())
    queue.merge_first([due], 1, NOON)
    queue.end(due.id, Outcome("expired", NOON))

    queue.merge_first([due], 1, NOON + timedelta(days=2))

    assert (list(queue.items), queue.ended[due.id].word) == ([], "expired")


def test_a_decision_counts_more_than_what_our_clock_says() -> None:
    queue, due = Queue(), approval(1, expires_at=NOON.isoformat())
    queue.merge_first([due], 1, NOON - timedelta(seconds=1))
    queue.expire(NOON)

    assert queue.end(due.id, Outcome("approved", NOON, "you"))

    assert queue.ended[due.id].word == "approved"
    assert not queue.end(due.id, Outcome("expired", NOON, guessed=True))


def test_of_what_has_ended_the_newest_are_remembered_and_no_more() -> None:
    queue = Queue()
    queue.end("a0", Outcome("denied"))
    queue.end("a1", Outcome("denied"))
    # Who decided came to be known: that is new again.
    queue.end("a0", Outcome("denied", NOON, "user u1"))

    for number in range(2, MOST_ENDED + 1):
        queue.end(f"a{number}", Outcome("approved"))

    assert len(queue.ended) == MOST_ENDED
    assert ("a0" in queue.ended, "a1" in queue.ended, f"a{MOST_ENDED}" in queue.ended) == (True, False, True)
    kept = [name for name, held in vars(queue).items() if hasattr(held, "__len__") and len(held) > MOST_ENDED]
    assert kept == []


ENDLESS: dict[str, Callable[[int], list[str]]] = {
    "deeper and deeper": lambda read: [f"a{number}" for number in range(read * PAGE, (read + 1) * PAGE)],
    "always the same": lambda read: [f"a{number}" for number in range(PAGE)],
    "nothing, and more of it": lambda read: [],
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_list_without_an_end_is_not_read_for_ever(kind: str) -> None:
    queue = Queue()
    queue.merge_first([approval(number) for number in range(PAGE, 0, -1)], PAGE, NOON)
    sweep, read = Sweep(queue.items.keys()), 0
    while not sweep.done and read < 1_000:
        sweep.take(ENDLESS[kind](read), "on")
        read += 1

    assert (sweep.done, sweep.cut, read * PAGE) == (True, True, MOST_WAITING)
    queue.conclude(sweep)
    # What was not met may wait still, and that there is more is said.
    assert (len(queue.items), queue.whole, queue.more) == (PAGE, False, True)
    assert queue.waiting > len(queue.items)


def test_a_queue_that_is_full_takes_no_more_and_says_so() -> None:
    service, queue = Service(3 * PAGE), Queue(most=2 * PAGE)
    read_first(queue, service)
    for place in (PAGE, 2 * PAGE):
        queue.merge_sweep(service.page(service.waiting[place - 1].id), NOON)
    queue.conclude(Sweep())

    assert (len(queue.items), queue.whole, queue.waiting) == (2 * PAGE, False, 3 * PAGE)

    # Once there are fewer, all of them are read, and it is the whole again.
    service.leave(0, 2 * PAGE + 1)
    read_first(queue, service)
    assert (queue.items.keys(), queue.whole, queue.more) == (service.ids, True, False)


def test_a_count_that_is_the_least_differs_only_from_less() -> None:
    service, queue = Service(3 * PAGE), Queue()
    queue.merge_first(service.page(), 2 * PAGE, NOON, at_least=True)
    assert queue.differs

    read_all(queue, service)

    assert (queue.differs, queue.whole, queue.waiting) == (False, True, 3 * PAGE)


def swept_of(odd: OddApi) -> list[Request]:
    """Return the requests of a sweep."""
    return [one for one in odd.heard if "cursor=" in one.path]


async def test_a_truncated_list_is_not_swept_again_and_again() -> None:
    async def goes_on(api: OddApi, request: Request, writer: asyncio.StreamWriter) -> None:
        begin = int(dict(parse_qsl(urlsplit(request.path).query)).get("cursor", 10**6))
        page = [to_builtins(approval(number)) for number in range(begin, begin - PAGE, -1)]
        await succeeds(page, X_Total_Count="900", X_Next_Cursor=str(begin - PAGE))(api, request, writer)

    async with odd_api("http://127.0.0.1:9") as odd:
        odd.does(says_nothing, "/events")
        odd.does(goes_on, "/approvals")
        client, queue, looks = ApiClient(odd.url), Queue(most=3 * PAGE), asyncio.Queue[bool]()
        rests = Rests(glance=0.01, read=0.01, least=0.01, sweep=0.01)
        looked = looks.put_nowait
        watch = Watch(client, queue, lambda: NOON, changed=lambda _: looked(queue.more), away=print, rests=rests)
        watching = asyncio.ensure_future(watch.run())
        async with asyncio.timeout(60):
            while not await looks.get():
                pass
            swept = len(swept_of(odd))
            for _ in range(10):
                await looks.get()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await client.close()

        assert len(swept_of(odd)) == swept
        assert (queue.whole, queue.waiting) == (False, 900)


def test_every_order_has_its_first() -> None:
    ether, lamport = 10**18, 10**9
    queue = Queue()
    items = [
        approval(1, agent_name="Zoe", value=str(2 * ether), expires_at=(NOON + timedelta(hours=3)).isoformat()),
        approval(2, agent_name="Bob", kind="solana", chain_id=101, value=str(3 * lamport)),
        approval(3, agent_name="ann", value=str(ether), expires_at=(NOON + timedelta(hours=1)).isoformat()),
    ]
    queue.merge_first(items, 3, NOON)

    shown = {name: [item.id[-1] for item in View(sorting=name).of(queue.rows())] for name in SORTINGS}

    assert shown == {
        "newest first": ["3", "2", "1"],
        "oldest first": ["1", "2", "3"],
        "soonest to expire": ["3", "1", "2"],
        "largest native amount": ["2", "1", "3"],
        "by agent": ["3", "2", "1"],
    }


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("PAYER", True),
        ("agent-1", True),
        (ADDRESS[:9].upper(), True),
        ("a000001", True),
        ("t1", True),
        ("77", True),
        (" payer ", True),
        ("0x22", False),
    ],
)
def test_a_search_finds_agent_address_amount_and_id(search: str, found: bool) -> None:
    effects = [Effect(kind="transfer", asset="evm:native", amount="77", to=ADDRESS)]
    items = [Item(approval(1, effects=effects))]

    assert bool(View(search=search).of(items)) is found


PAYS = Effect(kind="transfer", asset="evm:native", amount="77", to=ADDRESS)
UNREAD = Effect(kind="unread", to=ADDRESS)


@pytest.mark.parametrize(
    ("order", "said", "tone"),
    [
        ({"effects": (PAYS,)}, "Sends", None),
        ({"effects": (PAYS, Effect(kind="fee", asset="evm:native", amount="1"))}, "Sends", None),
        ({"effects": (Effect(kind="call", to=ADDRESS),)}, "Calls", None),
        ({"effects": (), "kind": "typed_data"}, "Signs a document", None),
        ({"effects": (PAYS, UNREAD), "kind": "bitcoin"}, "Pays together", None),
        ({"effects": (Effect(kind="message"),), "kind": "evm_message"}, "Signs a message", None),
        ({"effects": (UNREAD,)}, "Cannot be decoded", "bad"),
        ({"effects": (PAYS, UNREAD)}, "Cannot be decoded", "bad"),
        ({"effects": (Effect(kind="opaque", to=ADDRESS, unknown=True),)}, "Unknown typed data", "bad"),
        ({"effects": (Effect(kind="mint", to=ADDRESS),)}, "Unknown effect", "bad"),
        ({"effects": ()}, "Effect unknown", "bad"),
        (
            {"effects": (Effect(kind="message", label="bytes"),), "kind": "evm_message"},
            "Signs bytes",
            "bad",
        ),
        ({"effects": (Effect(kind="approval", amount=str(2**256 - 1), spender=ADDRESS),)}, "UNLIMITED", "bad"),
    ],
)
def test_a_line_is_red_where_nobody_can_say_all_of_what_the_order_does(
    order: dict[str, Any], said: str, tone: str | None
) -> None:
    asks_for = next(one for one in QueueRows(lambda: NOON).columns() if one.title == "Asks for")

    cell = asks_for.cell(Item(approval(1, **order)))

    text, found = cell if isinstance(cell, tuple) else (cell, None)
    assert (said in text, found) == (True, tone)


def test_one_agents_items_can_be_seen_alone() -> None:
    items = [Item(approval(1)), Item(approval(2, agent_id="agent-2"))]

    assert [item.id for item in View(agent="agent-2").of(items)] == ["a000002"]


@pytest.mark.parametrize(
    ("resolved", "sentence"),
    [
        (
            {"status": "approved", "resolved_by": "manual", "resolved_by_user_id": "me"},
            "Approved by you at 2026-03-01 12:00:00 UTC.",
        ),
        (
            {"status": "rejected", "resolved_by": "manual", "resolved_by_user_id": "u2", "reason": "no invoice"},
            'Denied by user u2 at 2026-03-01 12:00:00 UTC. Reason: "no invoice".',
        ),
        (
            {
                "status": "approved",
                "resolved_by": "manual",
                "resolved_by_user_id": "u2",
                "resolved_by_name": "you",
                "comment": "paid\nbefore",
            },
            'Approved by "you" at 2026-03-01 12:00:00 UTC. Comment: "paid before".',
        ),
        (
            {"status": "rejected", "resolved_by": "manual"},
            "Denied by a holder of the tenant key at 2026-03-01 12:00:00 UTC.",
        ),
        ({"status": "expired", "resolved_by": "system"}, "Expired at 2026-03-01 12:00:00 UTC."),
    ],
    ids=["by you", "by another", "by another with a name", "by key", "expired"],
)
def test_outcomes_of_items_in_words(resolved: dict[str, Any], sentence: str) -> None:
    outcome = outcome_of(approval(1, resolved_at=NOON.isoformat(), **resolved), me="me")

    assert outcome is not None
    assert outcome.sentence == sentence


def test_a_history_is_read_on_from_its_last_page_whatever_comes_in_front() -> None:
    service, history = Service(3 * PAGE), History("approved", None)
    first = service.page()
    history.take_newest(first, 3 * PAGE, service.cursor_behind(first))
    service.arrive(5)
    first = service.page()
    history.take_newest(first, 3 * PAGE + 5, service.cursor_behind(first))

    while history.cursor is not None:
        assert history.wants_more(history.read - 1)
        page = service.page(history.cursor)
        history.take_more(page, service.cursor_behind(page))

    assert {item.id for item in history.items({})} == service.ids
    assert (history.progress, history.wants_more(history.read - 1)) == ("", False)


def test_a_history_with_a_gap_begins_again() -> None:
    service, history = Service(3 * PAGE), History("approved", None)
    first = service.page()
    history.take_newest(first, 2 * PAGE, service.cursor_behind(first), at_least=True)
    assert history.progress == "200 of at least 400 read"
    service.arrive(2 * PAGE)

    first = service.page()
    history.take_newest(first, 5 * PAGE, service.cursor_behind(first))

    assert [item.id for item in history.items({})] == [one.id for one in first]
    assert (history.cursor, history.progress) == (first[-1].id, "200 of 1,000 read")
